#!/usr/bin/env python3
"""Tunes the ten workloads as a user would (`rutter --onnx=... --tune=5m`) and prints, for each, default / tuned with its
interval. tune.py [--tune=5m] [--model=name]... [--rutter=build/bin/rutter] [--keep=FOLDER] [--args="--threads=1"]

The interval is the one that the tuner itself claims: over fresh processes, order swapped. "none found" is a result: the
default route stays. Models come from the cache of scripts/models (bench/peers.py names them and their shapes)."""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time

from peers import MODELS, ROOT, find, machine, shapes_flag


def records(journal):
    with open(journal) as f:
        return [json.loads(line) for line in f if line.endswith("}\n")]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--tune", default="5m")
    a.add_argument("--model", action="append", choices=list(MODELS))
    a.add_argument("--rutter", default=os.path.join(ROOT, "build/bin/rutter"))
    a.add_argument("--keep", default=tempfile.mkdtemp(prefix="rutter-bench-tune-"), help="where engines and records go")
    a.add_argument("--args", default="")
    o = a.parse_args()
    os.makedirs(o.keep, exist_ok=True)
    print("{}; --tune={} {}".format(machine(), o.tune, o.args))
    print("| model | default ms | default / tuned (95 %) | processes | distinct engines | wall s | busy | route |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in o.model or MODELS:
        path = find(name)
        if not path:
            print("| {} | not in the cache |".format(name), flush=True)
            continue
        engine = os.path.join(o.keep, name + ".engine")
        for old in (engine, engine + ".tune.jsonl", engine + ".tune.jsonl.journal"):
            if os.path.exists(old):
                os.unlink(old)
        command = [o.rutter, "--onnx=" + path, "--tune=" + o.tune, "--saveEngine=" + engine] + shlex.split(o.args)
        if name not in ("ddddocr_det", "resnet50", "mobilenet_v3_large", "bert_base_s128"):  # the others have fixed shapes
            command.append(shapes_flag(name))
        begin = time.time()
        with open(os.path.join(o.keep, name + ".log"), "w") as log:
            code = subprocess.call(command, stdout=log, stderr=subprocess.STDOUT)
        wall = time.time() - begin
        if code:
            print("| {} | exit code {}, see {} |".format(name, code, log.name), flush=True)
            continue
        all_ = records(engine + ".tune.jsonl.journal")
        base = next(r for r in all_ if r["type"] == "baseline")
        winner = [r for r in all_ if r["type"] == "winner"][-1]
        candidates = [r for r in all_ if r["type"] == "candidate"]
        distinct = len({r["engine_hash"] for r in candidates if r.get("engine_hash")})
        busy = next((l.split(",")[1].split("%")[0].strip() for l in open(log.name) if "building or measuring" in l), "?")
        won = winner["iter"] >= 0
        ratio = "{:.3f} ({:.3f} to {:.3f})".format(*(math.exp(winner[k]) for k in ("center", "lo", "hi"))) if won else "1, none found"
        print("| {} | {:.3f} | {} | {} | {} | {:.0f} | {} % | `{}` |".format(
            name, base["gpu_time"], ratio, winner["processes"], distinct, wall, busy,
            winner["build_route"]), flush=True)


if __name__ == "__main__":
    sys.exit(main())

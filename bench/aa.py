#!/usr/bin/env python3
"""A/A: the default against itself, for real. Every candidate is the default's own engine (bench_aa_worker builds and
measures it although it decides alike), so a claimed improvement is a false one: at most 1 in 40 runs.

aa.py [--runs=40] [--model=ppocrv2_cls] [--build=build] [--samples=FILE: the log ratios of fresh processes, run by run,
as tests/tuner/recorded keeps them]"""
import argparse
import json
import os
import subprocess
import tempfile

from peers import MODELS, ROOT, find, machine, shapes_flag


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--runs", type=int, default=40)
    a.add_argument("--model", default="ppocrv2_cls", choices=list(MODELS))
    a.add_argument("--build", default=os.path.join(ROOT, "build"))
    a.add_argument("--samples")
    o = a.parse_args()
    env = dict(os.environ, RUTTER_WORKER=os.path.join(o.build, "bin", "bench_aa_worker"))
    wins, samples = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for run in range(o.runs):
            cache = os.path.join(folder, "{}.jsonl".format(run))
            # A scope that no layer matches: the routes differ, the decisions do not.
            route = "-threads:limit@no_such_layer=[1|2|4]"
            code = subprocess.call([os.path.join(o.build, "bin", "rutter"), "--onnx=" + find(o.model), shapes_flag(o.model),
                                    "--tuneBuildRoutes=" + route, "--tuningCacheFile=" + cache, "--seed=%d" % run],
                                   stdout=subprocess.DEVNULL, env=env)
            if code:
                raise SystemExit("run {} ended with exit code {}".format(run, code))
            with open(cache + ".journal") as f:
                records = [json.loads(line) for line in f]
            built = [r for r in records if r["type"] == "candidate" and r["same_as"] is None]
            winner = [r for r in records if r["type"] == "winner"][-1]
            assert built, "nothing was built: the hook does not work"
            wins += winner["iter"] >= 0
            samples.append([round(sorted(r["log_ratios"])[len(r["log_ratios"]) // 2], 5)
                            for r in records if r["type"] == "samples" and r["status"] == "ok"])
            print("run {}: {} engines measured, {}".format(
                run, len(built), "CLAIMED {}".format(winner) if winner["iter"] >= 0 else "no improvement found"), flush=True)
    print("{} false claims in {} runs".format(wins, o.runs))
    if o.samples:
        with open(o.samples, "w") as f:
            json.dump({"what": "default against itself, " + o.model, "machine": machine(), "runs": samples}, f)
            f.write("\n")


if __name__ == "__main__":
    main()

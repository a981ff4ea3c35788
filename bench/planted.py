#!/usr/bin/env python3
"""A planted bad default, for real: how much of a known gap does --tune recover?

planted.py [--model=ppocrv4_det] [--tune=2m] [--plant=ROUTE] [--folder=build-planted]

Configures and builds a Rutter whose defaults of some knobs are wrong on purpose (RUTTER_PLANTED_DEFAULTS), tunes the model
with it, and then times three engines in turns in one process each: planted default, tuned, true default (the planted
build with every planted knob set back). Recovered = log(planted / tuned) / log(planted / true)."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

from peers import MODELS, ROOT, Runtime, find, interval, shape_flags, shapes_flag

PLANT = "-conv:tile_m=2 -conv:tile_n=8 -fuse:conv_activation=off -fuse:pointwise=off -pointwise:unroll=1 -conv:dw_tile=1"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--model", default="ppocrv4_det", choices=list(MODELS))
    a.add_argument("--tune", default="2m")
    a.add_argument("--plant", default=PLANT)
    a.add_argument("--folder", default=os.path.join(ROOT, "build-planted"))
    a.add_argument("--rounds", type=int, default=15)
    o = a.parse_args()
    subprocess.check_call(["cmake", "-S", ROOT, "-B", o.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRUTTER_TESTS=OFF",
                           "-DRUTTER_PLANTED_DEFAULTS=" + o.plant], stdout=subprocess.DEVNULL)
    subprocess.check_call(["ninja", "-C", o.folder, "rutter-cli", "rutter-worker", "rutter_model", "rutter_cpu"], stdout=subprocess.DEVNULL)
    path = find(o.model)
    with tempfile.TemporaryDirectory() as t:
        engine = os.path.join(t, "tuned.engine")
        command = [os.path.join(o.folder, "bin/rutter"), "--onnx=" + path, "--tune=" + o.tune, "--saveEngine=" + engine,
                   shapes_flag(o.model)]
        out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if out.returncode:
            sys.exit(out.stdout)
        best = next(l for l in out.stdout.splitlines() if "Best build route:" in l)
        tuned = best.split("'")[1]
    print("\n".join(l for l in out.stdout.splitlines() if "===" in l or "Default:" in l or "Best" in l or "candidates" in l))
    declared = json.loads(subprocess.check_output([os.path.join(ROOT, "build/bin/rutter"), "--helpBuildRoute"]))
    default = {k["option"]: k["default_value"] for k in declared["tuner_options"]}
    true = " ".join("{}={}".format(word.split("=")[0], default[word.split("=")[0]]) for word in o.plant.split())
    routes = {"planted": "", "tuned": tuned, "true": true}
    argv = [path] + shape_flags(o.model)
    all_ = {k: Runtime([os.path.join(o.folder, "bin/rutter_model"), "--serve", "--route=" + r] + argv) for k, r in routes.items()}
    samples = {k: [] for k in all_}
    for _ in range(o.rounds):
        order = list(all_)
        random.shuffle(order)
        for k in order:
            samples[k].append(np.median(all_[k].block(11)[1:]))
    for r in all_.values():
        r.close()
    s = {k: np.log(np.array(v)) for k, v in samples.items()}
    print("planted {:.3f} ms, tuned {:.3f} ms, true default {:.3f} ms".format(*(np.exp(np.median(s[k])) for k in ("planted", "tuned", "true"))))
    print("gap planted / true {:.3f} ({:.3f} to {:.3f}), planted / tuned {:.3f} ({:.3f} to {:.3f})".format(
        *interval(s["planted"] - s["true"]), *interval(s["planted"] - s["tuned"])))
    print("recovered {:.0f} %".format(100 * np.median(s["planted"] - s["tuned"]) / np.median(s["planted"] - s["true"])))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A/A: the default against itself, for real. Every candidate is the default's own engine (bench_aa_worker builds and
measures it although it decides alike), so a claimed improvement is a false one: at most 1 in 40 runs.

aa.py [--runs=40] [--model=ppocrv2_cls] [--build=build]"""
import argparse
import json
import os
import subprocess
import tempfile

from peers import MODELS, ROOT, find, shapes_flag


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--runs", type=int, default=40)
    a.add_argument("--model", default="ppocrv2_cls", choices=list(MODELS))
    a.add_argument("--build", default=os.path.join(ROOT, "build"))
    o = a.parse_args()
    env = dict(os.environ, RUTTER_WORKER=os.path.join(o.build, "bin", "bench_aa_worker"))
    wins = 0
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
            print("run {}: {} engines measured, {}".format(
                run, len(built), "CLAIMED {}".format(winner) if winner["iter"] >= 0 else "no improvement found"), flush=True)
    print("{} false claims in {} runs".format(wins, o.runs))


if __name__ == "__main__":
    main()

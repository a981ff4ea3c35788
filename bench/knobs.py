#!/usr/bin/env python3
"""Each value of each knob alone against the default on every model of the list: what docs/knobs.md reports.

knobs.py [--model=name]... [--knob=GLOB] [--seconds=1] [--program=build/bin/rutter_knobs] [--write]

--write: docs/knobs-measured.json, from which docs/knobs.md is generated. A knob counts as changing a model by 2 % when
the whole 95 % interval of one of its values lies beyond 2 %; as beating `auto` when that side is the faster one. Ratios
are default / candidate, within one process: they rank, they do not prove (see docs/tuning.md)."""
import argparse
import json
import os
import re
import subprocess
import sys

from peers import MODELS, ROOT, find, shape_flags

LINE = re.compile(r"^(-\S+?)=(\S+)\s+([\d.]+) \[([\d.]+) ([\d.]+)\]")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--model", action="append", choices=list(MODELS))
    a.add_argument("--knob", default="*")
    a.add_argument("--seconds", default="1")
    a.add_argument("--rounds", default="7")
    a.add_argument("--program", default=os.path.join(ROOT, "build/bin/rutter_knobs"))
    a.add_argument("--write", action="store_true")
    a.add_argument("--from-logs", nargs="*", help="read the output of earlier runs instead of measuring: model=file, or "
                   "model@machine=file for another machine than the first")
    o = a.parse_args()
    seen = {}  # knob -> [(ratio, low, high, value, model)]

    def take(model, line):
        m = LINE.match(line)
        if m:
            ratio, low, high = map(float, m.groups()[2:])
            seen.setdefault(m.group(1), []).append((ratio, low, high, m.group(2), model))

    if o.from_logs:
        for item in o.from_logs:
            label, path = item.split("=", 1)
            model, _, there = label.partition("@")
            with open(path) as f:
                for line in f:
                    take(model + (" ({})".format(there) if there else ""), line.removeprefix(model + " "))
    else:
        for model in o.model or MODELS:
            path = find(model)
            if not path:
                print(model, "is not in the cache", flush=True)
                continue
            p = subprocess.Popen([o.program, path, "--knob=" + o.knob, "--seconds=" + o.seconds, "--rounds=" + o.rounds] + shape_flags(model),
                                 stdout=subprocess.PIPE, text=True)
            for line in p.stdout:
                print(model, line, end="", flush=True)
                take(model, line)
            if p.wait():
                sys.exit("{}: exit code {}".format(model, p.returncode))
    moving = sorted(k for k, v in seen.items() if any(low > 1.02 or high < 0.98 for _, low, high, _, _ in v))
    winning = sorted(k for k, v in seen.items() if any(low > 1.02 for _, low, _, _, _ in v))
    print("{} knobs change some model by 2 % or more: {}".format(len(moving), " ".join(moving)))
    print("{} beat the default by 2 % somewhere: {}".format(len(winning), " ".join(winning)))
    if o.write:
        notes = {}
        for knob, v in sorted(seen.items()):
            best = max(v, key=lambda x: x[1])
            worst = min(v, key=lambda x: x[2])
            text = ["`{}` {:.2f} ({:.2f} to {:.2f}) on {}".format(x[3], x[0], x[1], x[2], x[4])
                    for x in ([best] if best[1] > 1 else []) + ([worst] if worst[2] < 1 else [])]
            notes[knob] = "; ".join(text) or "nothing beyond noise on {} models".format(len({x[4] for x in v}))
        with open(os.path.join(ROOT, "docs", "knobs-measured.json"), "w") as f:
            json.dump(notes, f, indent=1, sort_keys=True)
            f.write("\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Takes out of a journal what no decision reads, and all that says where it was recorded.

strip.py JOURNAL OUT

What stays is byte for byte what the tuner wrote, but for the checksums, which are made anew."""
import json
import sys

KEEP = {
    "header": ["type", "tuner_version", "searching_algorithm", "tuning_expr", "schema", "seed"],
    "session": ["type", "epoch", "searching_algorithm", "tuning_expr", "budget", "t"],
    "baseline": ["type", "status", "decision", "engine_hash", "gpu_time", "run_s", "knobs_read", "layers", "timed_route",
                 "t"],
    "candidate": ["type", "iter", "phase", "build_route", "status", "gpu_time", "log_ratios", "decision", "engine_hash",
                  "same_as", "build_ms", "layer_ms", "default_layer_ms", "t"],
    "samples": ["type", "iter", "build_route", "stage", "index", "status", "error_message", "log_ratios", "t"],
}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    spec = True
    with open(sys.argv[1]) as f, open(sys.argv[2], "w") as out:
        for line in f:
            record = json.loads(line)
            record.pop("crc")
            kind = record["type"]
            if kind == "header":
                spec = record["searching_algorithm"] != "tune"
            if kind in KEEP:
                record = {k: v for k, v in record.items() if k in KEEP[kind]}
            if kind == "baseline" and spec:  # only --tune looks into the default engine
                record["layers"], record["knobs_read"] = [], []
            body = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
            out.write('%s,"crc":"%08x"}\n' % (body[:-1], crc32c(body.encode())))


if __name__ == "__main__":
    main()

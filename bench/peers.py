#!/usr/bin/env python3
"""Default route against onnxruntime and OpenVINO, on the same inputs and threads.

peers.py [--threads=1,2] [--rounds=N] [--seconds=S] [--model=name]... [--rutter=build/bin/rutter_model] [--route=R]

Models come from the cache that scripts/models fills (.cache/models or $RUTTER_MODELS); resnet50, mobilenet_v3_large and
bert_base_s128 are put there by scripts/export_models.py, which needs PyTorch, and are used if they are there. Each
runtime lives in a process of its own, which sleeps while another is timed; blocks alternate in random order, with a
pause between them because peers' threads spin after a run. The first run of a block is dropped. A ratio is peer's time
/ Rutter's time of the same round: the median over rounds, with a bootstrap 95 % interval. The last column is against
the faster peer; the goal is 0.6 (or within 0.3 ms)."""
import argparse
import os
import random
import subprocess
import sys
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("RUTTER_MODELS") or os.path.join(ROOT, ".cache", "models")
MODELS = {
    "ppocrv4_det": {"x": (1, 3, 320, 320)},
    "ppocrv2_cls": {"x": (1, 3, 48, 192)},
    "ddddocr_det": {"images": (1, 3, 416, 416)},
    "opennsfw": {"input:0": (1, 224, 224, 3)},
    "minilm_l3_paraphrase": {"input_ids": (1, 128), "attention_mask": (1, 128)},
    "magika_v3_3": {"bytes": (1, 2048)},
    "resnet50": {"x": (1, 3, 224, 224)},
    "mobilenet_v3_large": {"x": (1, 3, 224, 224)},
    "bert_base_s128": {"input_ids": (1, 128), "attention_mask": (1, 128)},
    "ppocrv4_rec": {"x": (1, 3, 48, 320)},
}


def inputs_of(session_inputs, shapes):
    rng = np.random.default_rng(7)
    shapes = list(shapes.items())
    out = {}
    for i, (name, dtype) in enumerate(session_inputs):
        shape = dict(shapes).get(name) or shapes[i][1]
        if "float" in dtype:
            out[name] = rng.uniform(-1, 1, shape).astype(np.float32)
        elif "mask" in name:
            out[name] = np.ones(shape, np.int64)
        else:
            out[name] = rng.integers(0, 200, shape).astype(np.int32 if "32" in dtype else np.int64)
    return out


def serve(run):
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            run()
            times.append((time.perf_counter() - begin) * 1e3)
        print(" ".join("%.5f" % t for t in times), flush=True)


def child(runtime, path, shapes, threads):
    if runtime == "onnxruntime":
        import onnxruntime as ort
        o = ort.SessionOptions()
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        o.intra_op_num_threads = threads
        o.inter_op_num_threads = 1
        o.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        o.log_severity_level = 3
        session = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        feeds = inputs_of([(i.name, i.type) for i in session.get_inputs()], shapes)
        serve(lambda: session.run(None, feeds))
    else:
        import openvino as ov
        core = ov.Core()
        model = core.read_model(path)
        names = [(p.get_any_name(), str(p.get_element_type())) for p in model.inputs]
        feeds = inputs_of([(n, "float" if t.find("f32") >= 0 else t) for n, t in names], shapes)
        model.reshape({n: list(feeds[n].shape) for n, _ in names})
        compiled = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1})
        request = compiled.create_infer_request()
        for n, _ in names:
            request.set_tensor(n, ov.Tensor(feeds[n]))
        serve(request.infer)


class Runtime:
    def __init__(self, command):
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while True:
            line = self.p.stdout.readline()
            if not line:
                raise RuntimeError("{} did not start".format(" ".join(command)))
            if line.strip() == "ready":
                return

    def block(self, runs):
        self.p.stdin.write("%d\n" % runs)
        self.p.stdin.flush()
        return np.array(self.p.stdout.readline().split(), float)

    def close(self):
        self.p.stdin.close()
        self.p.kill()
        self.p.wait()


def interval(logs):
    rng = np.random.default_rng(1)
    medians = np.median(rng.choice(logs, (2000, len(logs))), 1)
    return np.exp(np.median(logs)), np.exp(np.percentile(medians, 2.5)), np.exp(np.percentile(medians, 97.5))


def shape_flags(name):
    """For rutter_model and rutter_knobs, one flag an input."""
    return ["--shape={}:{}".format(n, "x".join(map(str, s))) for n, s in MODELS[name].items()]


def shapes_flag(name):
    """For rutter."""
    return "--shapes=" + ",".join("{}:{}".format(n, "x".join(map(str, s))) for n, s in MODELS[name].items())


def machine():
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    return "{}; {} cores".format(cpu, os.cpu_count())


def find(name):
    path = os.path.join(CACHE, name + ".onnx")
    return path if os.path.exists(path) else None


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        return child(sys.argv[2], sys.argv[3], MODELS[sys.argv[4]], int(sys.argv[5]))
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--threads", default="1,2")
    a.add_argument("--rounds", type=int, default=15)
    a.add_argument("--seconds", type=float, default=0.25, help="length of a block")
    a.add_argument("--model", action="append", choices=list(MODELS))
    a.add_argument("--rutter", default=os.path.join(ROOT, "build/bin/rutter_model"))
    a.add_argument("--route", default="")
    o = a.parse_args()
    import onnxruntime
    import openvino
    print("{}; onnxruntime {} (ORT_ENABLE_ALL, sequential), OpenVINO {} (LATENCY, f32, 1 stream); {} rounds of "
          "{} s".format(machine(), onnxruntime.__version__, openvino.__version__.split("-")[0], o.rounds, o.seconds))
    print("| model | threads | Rutter ms | onnxruntime ms | OpenVINO ms | ort / Rutter | OpenVINO / Rutter | best / Rutter |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in o.model or MODELS:
        path = find(name)
        if not path:
            print("| {} | | not in {} |".format(name, CACHE), flush=True)
            continue
        for threads in map(int, o.threads.split(",")):
            commands = {"Rutter": [o.rutter, path, "--serve", "--threads=%d" % threads, "--route=" + o.route] + shape_flags(name)}
            for peer in ("onnxruntime", "openvino"):
                commands[peer] = [sys.executable, os.path.abspath(__file__), "--child", peer, path, name, str(threads)]
            all_ = {k: Runtime(c) for k, c in commands.items()}
            runs = {}
            for k, r in all_.items():
                r.block(3)
                runs[k] = int(max(4, min(2000, o.seconds * 1e3 / np.median(r.block(5)))))
            samples = {k: [] for k in all_}
            for _ in range(o.rounds):
                order = list(all_)
                random.shuffle(order)
                for k in order:
                    time.sleep(0.05)
                    samples[k].append(np.median(all_[k].block(runs[k])[1:]))
            for r in all_.values():
                r.close()
            s = {k: np.array(v) for k, v in samples.items()}
            best = s[min(("onnxruntime", "openvino"), key=lambda k: np.median(s[k]))]
            cells = ["%.2f (%.2f to %.2f)" % interval(np.log(x / s["Rutter"])) for x in (s["onnxruntime"], s["openvino"], best)]
            print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {} |".format(
                name, threads, np.median(s["Rutter"]), np.median(s["onnxruntime"]), np.median(s["openvino"]), " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()

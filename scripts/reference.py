#!/usr/bin/env python3
"""Makes inputs for the models and records what onnxruntime answers. reference.py [name ...]; without a name, every
model of the list that is in the cache.

Written to <cache>/reference/<name>/: manifest.json and raw little-endian tensors. Three sets at the model's usual shapes:
two random ones (floats in [-1, 1], indices within their table, masks of ones first) and one that looks like real data;
then, for models with open dims, sets at other shapes ("extra"). Prints each model's node count and sha256, the log of CI."""
import hashlib
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("RUTTER_MODELS") or os.path.join(ROOT, ".cache", "models")
VERSION = 2  # of the inputs below: a change makes old references stale


def uniform(rng, shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def page(shape, seed=7):
    """Something like a photographed page: a soft gradient, dark strokes of text in lines. NCHW, about [-1, 1]."""
    n, c, h, w = shape
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    light = 0.9 - 0.2 * (x / w) * (y / h)
    for top in range(h // 10, h - h // 10, max(8, h // 8)):
        left = w // 12
        while left < w - w // 8:
            width = int(rng.integers(max(2, w // 60), max(3, w // 18)))
            tall = max(2, h // 24)
            light[top:top + tall, left:left + width] *= 0.25
            light[top + tall // 3:top + 2 * tall // 3, left + width // 4:left + width // 2] = 0.85
            left += width + max(2, w // 50)
    image = light[None, None] * np.linspace(1.0, 0.92, c, dtype=np.float32)[None, :, None, None]
    image = image + rng.normal(0, 0.01, shape).astype(np.float32)
    return np.repeat((image - 0.5) / 0.5, n, 0)[:n].astype(np.float32)


def image_sets(name, shape, extra=()):
    def sets():
        for seed in (0, 1):
            yield "random", {name: uniform(np.random.default_rng(seed), shape)}
        yield "real-like", {name: page(shape)}
        for s in extra:
            yield "extra", {name: page(s, 8)}
    return sets


def ddddocr_sets():
    shape = (1, 3, 416, 416)
    for seed in (0, 1):
        yield "random", {"images": uniform(np.random.default_rng(seed), shape)}
    yield "real-like", {"images": (page(shape) + 1) * 127.5}


def opennsfw_sets():
    shape = (1, 224, 224, 3)
    for seed in (0, 1):
        yield "random", {"input:0": uniform(np.random.default_rng(seed), shape)}
    photo = (page((1, 3, 224, 224)).transpose(0, 2, 3, 1) + 1) * 127.5
    yield "real-like", {"input:0": np.ascontiguousarray(photo - np.array([104, 117, 123], np.float32))}
    yield "extra", {"input:0": uniform(np.random.default_rng(2), (3, 224, 224, 3))}


def text(rng, batch, seq, vocab, length=None):
    ids = rng.integers(0, vocab, (batch, seq)).astype(np.int64)
    mask = np.ones((batch, seq), np.int64)
    for b in range(batch):
        mask[b, (length or int(rng.integers(seq // 2, seq))):] = 0
    return ids, mask


def sentence(seq):
    """[CLS] the quick brown fox jumps over the lazy dog. [SEP], padded."""
    words = [101, 1996, 4248, 2829, 4419, 14523, 2058, 1996, 13971, 3899, 1012, 102]
    ids, mask = np.zeros((1, seq), np.int64), np.zeros((1, seq), np.int64)
    ids[0, :len(words)], mask[0, :len(words)] = words, 1
    return ids, mask


def bert_sets(extra=()):
    def sets():
        for seed in (0, 1):
            ids, mask = text(np.random.default_rng(seed), 1, 128, 30522)
            yield "random", {"input_ids": ids, "attention_mask": mask}
        ids, mask = sentence(128)
        yield "real-like", {"input_ids": ids, "attention_mask": mask}
        for batch, seq in extra:
            ids, mask = text(np.random.default_rng(2), batch, seq, 30522)
            yield "extra", {"input_ids": ids, "attention_mask": mask}
    return sets


def magika_sets():
    for seed in (0, 1):
        yield "random", {"bytes": np.random.default_rng(seed).integers(0, 257, (1, 2048)).astype(np.int32)}
    with open(os.path.abspath(__file__), "rb") as f:  # the beginning and the end of a Python source
        source = f.read()
    yield "real-like", {"bytes": np.frombuffer(source[:1024] + source[-1024:], np.uint8).astype(np.int32)[None]}
    yield "extra", {"bytes": np.random.default_rng(2).integers(0, 257, (3, 2048)).astype(np.int32)}


SETS = {
    "ppocrv4_det": image_sets("x", (1, 3, 320, 320), [(1, 3, 224, 352), (2, 3, 64, 96)]),
    "ppocrv4_rec": image_sets("x", (1, 3, 48, 320), [(2, 3, 48, 200)]),
    "ppocrv2_cls": image_sets("x", (1, 3, 48, 192), [(4, 3, 48, 192)]),
    "ddddocr_det": ddddocr_sets,
    "opennsfw": opennsfw_sets,
    "minilm_l3_paraphrase": bert_sets([(2, 77), (3, 16)]),
    "magika_v3_3": magika_sets,
    "resnet50_seeded": image_sets("x", (1, 3, 224, 224)),
    "mobilenet_v3_large_seeded": image_sets("x", (1, 3, 224, 224)),
    "bert_base_layers": bert_sets(),
    "resnet50": image_sets("x", (1, 3, 224, 224)),
    "mobilenet_v3_large": image_sets("x", (1, 3, 224, 224)),
    "bert_base_s128": bert_sets(),
}


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def record(name):
    model = os.path.join(CACHE, name + ".onnx")
    folder = os.path.join(CACHE, "reference", name)
    manifest = os.path.join(folder, "manifest.json")
    mark = {"version": VERSION, "onnxruntime": onnxruntime.__version__, "sha256": sha256(model)}
    try:
        with open(manifest) as f:
            old = json.load(f)
        if all(old.get(k) == v for k, v in mark.items()):
            return old
    except (OSError, ValueError):
        pass
    os.makedirs(folder, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def save(kind, index, tensors):
        out = []
        for k, (tensor, array) in enumerate(tensors):
            array = np.ascontiguousarray(array)
            file = "{}{}_{}.raw".format(kind, index, k)
            array.tofile(os.path.join(folder, file))
            out.append({"name": tensor, "dtype": array.dtype.name, "shape": list(array.shape), "file": file})
        return out

    sets = []
    for i, (kind, inputs) in enumerate(SETS[name]()):
        outputs = session.run(None, inputs)
        names = [o.name for o in session.get_outputs()]
        for n, y in zip(names, outputs):
            if y.dtype.kind == "f" and not np.isfinite(y).all():
                sys.exit("reference.py: {}: output {} of set {} is not finite".format(name, n, i))
        sets.append({"kind": kind, "inputs": save("in", i, inputs.items()), "outputs": save("out", i, zip(names, outputs))})
    with open(manifest + ".part", "w") as f:
        made = dict(mark, model=name, sets=sets)
        json.dump(made, f, indent=1)
    os.replace(manifest + ".part", manifest)
    return made


def main(names):
    unknown = [n for n in names if n not in SETS]
    if unknown:
        sys.exit("reference.py: no model named {}; there are {}".format(", ".join(unknown), ", ".join(SETS)))
    for name in names or [n for n in SETS if os.path.exists(os.path.join(CACHE, n + ".onnx"))]:
        if not os.path.exists(os.path.join(CACHE, name + ".onnx")):
            sys.exit("reference.py: {}.onnx is not in {}: run scripts/models or scripts/make_models.py".format(name, CACHE))
        nodes = len(onnx.load(os.path.join(CACHE, name + ".onnx"), load_external_data=False).graph.node)
        print("{}: {} nodes, sha256 {}".format(name, nodes, record(name)["sha256"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

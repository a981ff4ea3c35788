#!/usr/bin/env python3
"""Writes the backend node tests of the `onnx` package where tests/ops/conformance.cpp finds them.

usage: node_tests.py [FOLDER]        (default: $RUTTER_NODE_TESTS, else .cache/node_tests)

FOLDER/models/NAME.onnx   the model of a case
FOLDER/data.bin           all tensors, little endian, one after the other
FOLDER/cases.jsonl        a line a case: name, rtol, atol, sets of inputs and outputs (name, dtype, shape, offset, bytes;
                          null for an input that the case leaves out), or `skip` with a reason
Cases with values that are no dense tensors of at least one byte an element are written with their reason only.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DTYPES = {  # name of a NumPy or ml_dtypes type -> Rutter's name
    name: name
    for name in "float16 float32 float64 bfloat16 bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
}


class NoTensor(Exception):
    """A value that the runner cannot hold, and why."""


def plain(value):
    """The value as an array of a known dtype."""
    if value is None:
        return None
    if isinstance(value, (list, dict)):
        raise NoTensor("sequence, optional or map")
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        raise NoTensor("string")
    if array.dtype.name not in DTYPES:
        raise NoTensor("type " + array.dtype.name)
    return array


def declared_kind(model):
    """Why a value of the graph is no tensor, or None."""
    for value in list(model.graph.input) + list(model.graph.output):
        if not value.type.HasField("tensor_type"):
            return "sequence, optional or map"
    return None


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RUTTER_NODE_TESTS", os.path.join(ROOT, ".cache", "node_tests"))
    warnings.filterwarnings("ignore")
    from onnx.backend.test.loader import load_node_model_tests

    stamp = os.path.join(folder, "onnx-" + onnx.__version__)
    if os.path.exists(stamp):
        print(f"{folder}: up to date (onnx {onnx.__version__})")
        return
    np.random.seed(0)
    os.makedirs(os.path.join(folder, "models"), exist_ok=True)
    written = skipped = 0
    with open(os.path.join(folder, "data.bin"), "wb") as data, open(os.path.join(folder, "cases.jsonl"), "w") as cases:

        def tensor(value):
            array = plain(value)
            if array is None:
                return None
            raw = np.ascontiguousarray(array).tobytes()
            offset = data.tell()
            data.write(raw)
            return {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "offset": offset, "bytes": len(raw)}

        for case in load_node_model_tests():
            line = {"name": case.name, "rtol": case.rtol, "atol": case.atol}
            reason = declared_kind(case.model)
            try:
                if reason:
                    raise NoTensor(reason)
                line["sets"] = [
                    {"inputs": [tensor(v) for v in inputs], "outputs": [tensor(v) for v in outputs]}
                    for inputs, outputs in case.data_sets
                ]
                with open(os.path.join(folder, "models", case.name + ".onnx"), "wb") as f:
                    f.write(case.model.SerializeToString())
                written += 1
            except NoTensor as e:
                line.pop("sets", None)
                line["skip"] = str(e)
                skipped += 1
            cases.write(json.dumps(line) + "\n")
    open(stamp, "w").close()
    print(f"{folder}: {written} cases written, {skipped} named with their reason only (onnx {onnx.__version__})")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes src/onnx/schemas.def from the installed `onnx` package (pip install onnx): for each operator of the default
domain its versions and the newest version's attributes and counts of inputs and outputs."""
import sys

import onnx

by_name = {}
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "":
        by_name.setdefault(schema.name, []).append(schema)

lines = [
    f"// Operators of the default ONNX domain up to opset {onnx.defs.onnx_opset_version()}, IR version {onnx.IR_VERSION}.",
    "// Written by scripts/onnx_schemas.py: do not edit.",
    "// SCHEMA(name, versions, attributes of the newest, least inputs, most inputs, least outputs, most outputs)",
    f"ONNX_NEWEST({onnx.defs.onnx_opset_version()}, {onnx.IR_VERSION})",
]
for name in sorted(by_name):
    versions = sorted(by_name[name], key=lambda s: s.since_version)
    s = versions[-1]
    lines.append(
        'SCHEMA("{}", "{}", "{}", {}, {}, {}, {})'.format(
            name, " ".join(str(v.since_version) for v in versions), " ".join(sorted(s.attributes)),
            s.min_input, s.max_input, s.min_output, s.max_output))
path = sys.argv[1] if len(sys.argv) > 1 else "src/onnx/schemas.def"
with open(path, "w") as f:
    f.write("\n".join(lines) + "\n")

#!/usr/bin/env bash
# Installs Rutter into an empty folder and builds the examples against it, as somebody else's program would be.
# check.sh BUILD_DIR: exit 77 (skipped) without the model that the examples run.
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
model=${RUTTER_MODELS:-$source/.cache/models}/ppocrv2_cls.onnx
if [ ! -f "$model" ]; then
  echo "$model is missing: run scripts/models ppocrv2_cls"
  if [ -n "${CI:-}" ]; then exit 1; else exit 77; fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/rutter" >"$work/install.log"
for file in bin/rutter libexec/rutter/rutter-worker include/rutter/rutter.h; do
  [ -e "$work/rutter/$file" ] || { echo "$file is not installed"; cat "$work/install.log"; exit 1; }
done
cmake -S "$source/examples" -B "$work/examples" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/rutter" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/examples" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

# From here on neither the build tree nor the sources are used.
"$work/examples/build_and_run" "$model" x:1x3x48x192 --save="$work/cls.engine" | tee "$work/built.txt"
"$work/examples/run_engine" "$work/cls.engine" | tee "$work/run.txt"
diff <(tail -n +2 "$work/built.txt") "$work/run.txt" || { echo "the saved engine answers otherwise"; exit 1; }
if ldd "$work/examples/run_engine" | grep -E 'LLVM|librutter\.so|librutter_cpu'; then
  echo "run_engine needs more than librutter_runtime"; exit 1
fi
"$work/examples/custom_tuner" "$model" x:1x3x48x192 8 -fuse:conv_activation -gemm:tile_m | tee "$work/tuner.txt"
grep -q '^best: ' "$work/tuner.txt"
# The installed command line finds its compiler and its worker.
cd "$work"
"$work/rutter/bin/rutter" --onnx="$model" --shapes=x:1x3x48x192 --tune=20s --maxCandidates=2 --saveEngine="$work/tuned.engine" |
  tee "$work/tune.txt"
grep -q '^&&&& PASSED' "$work/tune.txt"
"$work/examples/run_engine" "$work/tuned.engine"

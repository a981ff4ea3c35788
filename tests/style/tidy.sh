#!/usr/bin/env bash
# clang-tidy over the rooms that everything stands on. tidy.sh BUILD_DIR [ROOM ...]
set -euo pipefail
build=$(cd "$1" && pwd); shift
cd "$(dirname "$0")/../.."
rooms=("${@:-base}")
mapfile -t files < <(for room in "${rooms[@]}"; do find "src/$room" -name '*.cpp'; done | sort)
[ ${#files[@]} -gt 0 ] || { echo "no files in ${rooms[*]}"; exit 1; }
printf '%s\n' "${files[@]}" | xargs -n 1 -P "$(nproc)" clang-tidy-19 -p "$build" --quiet

#!/usr/bin/env bash
# Every C++ file is as clang-format 19 would write it. format.sh --fix [FILE...] writes it so.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(find src tools include tests bench examples \( -name '*.cpp' -o -name '*.h' \) | sort)
if [ "${1:-}" = --fix ]; then
  shift
  [ $# -gt 0 ] || set -- "${files[@]}"
  clang-format-19 -i "$@"
  exit
fi
[ ${#files[@]} -gt 100 ] || { echo "only ${#files[@]} files found"; exit 1; }
wrong=$({ clang-format-19 --dry-run -Werror "${files[@]}" 2>&1 || true; } | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error.*/\1/p' | sort -u)
[ -z "$wrong" ] || { echo "not formatted (tests/style/format.sh --fix):"; echo "$wrong"; exit 1; }
echo "${#files[@]} files"

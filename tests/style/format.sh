#!/usr/bin/env bash
# Every C++ file is as clang-format 19 would write it, but for those listed in unformatted.txt, which is to shrink.
# format.sh --fix formats them all and empties the list.
set -euo pipefail
cd "$(dirname "$0")/../.."
list=tests/style/unformatted.txt
mapfile -t files < <(find src tools include tests bench examples \( -name '*.cpp' -o -name '*.h' \) | sort)
if [ "${1:-}" = --fix ]; then
  clang-format-19 -i "${files[@]}"
  : >"$list"
  exit
fi
[ ${#files[@]} -gt 100 ] || { echo "only ${#files[@]} files found"; exit 1; }
wrong=$({ clang-format-19 --dry-run -Werror "${files[@]}" 2>&1 || true; } | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error.*/\1/p' | sort -u)
new=$(comm -23 <(echo "$wrong") <(sort "$list"))
[ -z "$new" ] || { echo "not formatted (clang-format-19 -i FILE, or tests/style/format.sh --fix for all):"; echo "$new"; exit 1; }
echo "${#files[@]} files, $(grep -c . "$list" || true) of them excused"

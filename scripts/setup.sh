# Sourced by quickstart and test: installs what is missing, configures, builds. Finished steps are skipped by a stamp, so that a
# second run takes seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build ccache git python3-venv
  llvm-19-dev liblld-19-dev libprotozero-dev libflatbuffers-dev flatbuffers-compiler libsqlite3-dev libxxhash-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libgtest-dev libgmock-dev libbenchmark-dev libzstd-dev zlib1g-dev
)
test_packages=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev)

say() { printf '\n== %s\n' "$*"; }

install_missing() {
  local missing=() p
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${Status}' "$p" 2>/dev/null)" = "install ok installed" ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "error: these packages are missing and there is no sudo to install them: ${missing[*]}" >&2; exit 1; }
    as=(sudo)
  fi
  say "Installing ${missing[*]}"
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# setup_build PRESET [cmake options]: configures once, then builds what changed.
setup_build() {
  local preset=$1; shift
  [ -f "build/$preset/build.ninja" ] || { say "Configuring ($preset)"; cmake --preset "$preset" "$@"; }
  say "Building ($preset)"
  cmake --build "build/$preset"
}

# A venv of the project's own for the Python tools; remade when the list of packages changes.
setup_venv() {
  if ! cmp -s scripts/requirements.txt .venv/requirements.txt 2>/dev/null; then
    say "Python tools in .venv"
    python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check -r scripts/requirements.txt
    cp scripts/requirements.txt .venv/requirements.txt
  fi
}

# Sourced by quickstart and test: installs what is missing, configures, builds. Finished steps are skipped by a stamp, so
# that a second run takes seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# docs/dependencies.md says what each is for.
packages=(
  g++ cmake ninja-build ccache python3-venv
  llvm-19-dev liblld-19-dev libprotozero-dev libflatbuffers-dev flatbuffers-compiler libxxhash-dev
  nlohmann-json3-dev libfmt-dev libzstd-dev zlib1g-dev
)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev clang-19 libclang-rt-19-dev clang-tidy-19 clang-format-19)

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

# setup_build TESTS [target ...]: configures once, builds what changed. TESTS=OFF takes a tree with tests as it is.
setup_build() {
  local tests=$1; shift
  if [ ! -f build/build.ninja ] || { [ "$tests" = ON ] && ! grep -q '^RUTTER_TESTS:BOOL=ON' build/CMakeCache.txt; }; then
    say "Configuring"
    cmake --preset release "-DRUTTER_TESTS=$tests" "-DRUTTER_BENCH=$tests"
  fi
  say "Building"
  cmake --build build ${1:+--target "$@"}
}

# A Python environment of the project's own: pip fetches the models, too.
setup_venv() {
  [ -x .venv/bin/pip ] || { say "Python environment in .venv"; python3 -m venv .venv; }
}
# The packages that the test data is made with; installed anew when their list changes.
setup_python_tools() {
  setup_venv
  cmp -s scripts/requirements.txt .venv/requirements.txt && return 0
  say "Python tools in .venv"
  .venv/bin/pip install -q --disable-pip-version-check -r scripts/requirements.txt
  cp scripts/requirements.txt .venv/requirements.txt
}

#!/usr/bin/env bash
# Writes requirements_lock.txt anew from requirements.in: third_party/python/lock.sh [UV OPTION ...]
#
# Needs uv on PATH. Pins of the present lock are kept where they still fit;
# `lock.sh --upgrade` takes the newest of everything, `--upgrade-package NAME`
# of one package. The package index is the one of your uv configuration.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

command -v uv >/dev/null || {
  echo "lock.sh: error: uv is not on PATH; install it (pip install uv) and call again" >&2
  exit 1
}

options=(
  --output-file=requirements_lock.txt
  --generate-hashes
  # else the command, with paths of this machine, is in the file
  --no-header
  # the hub sees by them which optional dependencies belong to a package
  --no-strip-extras
  # the same lock whatever machine writes it
  --python-version=3.12
  --python-platform=x86_64-manylinux_2_28
  # the hub has no build step for source distributions
  --only-binary=:all:
  --quiet
)
uv pip compile "${options[@]}" "$@" requirements.in
echo "wrote third_party/python/requirements_lock.txt: $(grep -c '==' requirements_lock.txt) packages"

# shellcheck shell=bash
# Finds the Python 3.12 to build with.

# The real interpreter behind a candidate: that of a virtual environment, or of
# a version manager's shim, is followed. Fails where it is no 3.12 with pip.
probe_python() {
  timeout 20 "$1" -c '
import sys
if sys.version_info[:2] != (3, 12):
    sys.exit(1)
if sys.prefix == sys.base_prefix:
    import pip
    print(sys.executable)
else:
    print(sys._base_executable)
'
}

# Prints the path of a Python 3.12 that has pip, or dies.
find_python_3_12() {
  local candidate found data=${XDG_DATA_HOME:-${HOME:-/nonexistent}/.local/share}
  local candidates=(
    python3.12 python3
    "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.12*/bin/python3.12
    "${UV_PYTHON_INSTALL_DIR:-$data/uv/python}"/cpython-3.12*/bin/python3.12
    /usr/local/bin/python3.12 /usr/bin/python3.12
  )
  if [ -n "${SLIPWAY_PYTHON:-}" ]; then
    # its own text is shown: it tells why
    found=$(probe_python "$SLIPWAY_PYTHON") && found=$(probe_python "$found") ||
      die "SLIPWAY_PYTHON=$SLIPWAY_PYTHON is not a Python 3.12 with pip; name one that is, or unset it to have one searched for"
    printf '%s\n' "$found"
    return
  fi
  for candidate in "${candidates[@]}"; do
    # twice: what stands behind a virtual environment must itself have pip
    found=$(probe_python "$candidate" 2>/dev/null) && found=$(probe_python "$found" 2>/dev/null) || continue
    printf '%s\n' "$found"
    return
  done
  die "no Python 3.12 with pip found (looked for python3.12 and python3 on PATH, in pyenv's and uv's folders, /usr/local/bin and /usr/bin); install Python 3.12, or set SLIPWAY_PYTHON=/path/to/python3.12"
}

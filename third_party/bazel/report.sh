# shellcheck shell=bash
# Messages, and checks of what the machine must have.

STARTED=${EPOCHREALTIME/[.,]/}

# say TEXT: one line of progress, with the seconds since the start.
say() {
  local tenths=$(((${EPOCHREALTIME/[.,]/} - STARTED) / 100000))
  printf 'tools/bazel: [%d.%ds] %s\n' $((tenths / 10)) $((tenths % 10)) "$*" >&2
}

# die TEXT: ends the script with an error text.
die() {
  printf 'tools/bazel: error: %s\n' "$*" >&2
  exit 1
}

# need_tools NAME...: dies with the names that are not on PATH.
need_tools() {
  local tool missing=()
  for tool in "$@"; do
    command -v -- "$tool" >/dev/null || missing+=("$tool")
  done
  [ ${#missing[@]} -eq 0 ] || die "not on PATH: ${missing[*]}; install the packages that hold them and call again"
}

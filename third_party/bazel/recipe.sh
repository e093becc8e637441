# shellcheck shell=bash
# What an installation was made from. tools/bazel reads this too, at every call,
# hence no process is started here.

# read_recipe FOLDER: sets RECIPE to the names and texts of the files in
# third_party/bazel that shape an installation, and the settings of the caller.
read_recipe() {
  local LC_ALL=C file text
  local had_globstar had_nullglob
  shopt -q globstar && had_globstar=1
  shopt -q nullglob && had_nullglob=1
  shopt -s globstar nullglob
  RECIPE="suite=${SLIPWAY_DEBIAN_SUITE:-} mirror=${SLIPWAY_DEBIAN_MIRROR:-}"$'\n'
  for file in "$1"/../../.bazelversion "$1"/*.sh "$1"/overlay/**/*.bazel "$1"/overlay/**/*.bzl "$1"/overlay/**/*.py; do
    [[ $file != *_test.py ]] || continue
    IFS= read -r -d '' text <"$file" || true
    RECIPE+="== ${file#"$1"/}"$'\n'$text
  done
  RECIPE+="== python=${SLIPWAY_PYTHON:-}"
  [ -n "${had_globstar:-}" ] || shopt -u globstar
  [ -n "${had_nullglob:-}" ] || shopt -u nullglob
}

# made_by RECIPE: whether what was made by this recipe serves the present one. A
# Python that was named once need not be named again.
made_by() {
  [ "$1" = "$RECIPE" ] || { [ -z "${SLIPWAY_PYTHON:-}" ] && [ "${1%python=*}" = "${RECIPE%python=*}" ]; }
}

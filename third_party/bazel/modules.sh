# shellcheck shell=bash
# The modules that MODULE.bazel and Bazel itself ask for, as local folders, and
# the rc file that points to them.

# stub_module FOLDER: a module without targets.
stub_module() {
  mkdir -p "$1"
  printf 'module(name = "%s")\n' "${1##*/}" >"$1/MODULE.bazel"
  : >"$1/BUILD.bazel"
}

# rc_file MODULES DEBIAN_ROOT INTERPRETER PIP_PYTHON: prints it.
rc_file() {
  local modules=$1 base=$2/usr/share/bazel folder
  cat <<RC
# Debian's client does not unpack itself; it is told where the server lies.
startup --install_base=$base
startup --trust_install_base
startup --server_javabase=$2/java_home
# Wheels are source directories here: their whole content counts as input.
startup --host_jvm_args=-DBAZEL_TRACK_SOURCE_DIRECTORIES=1
common --config=air-gapped
common --repo_env=SLIPWAY_PYTHON_3_12=$3
common --repo_env=SLIPWAY_PIP_PYTHON_3_12=$4
# Every module of the graph, so that no registry is asked.
common --override_module=apple_support=$modules/apple_support
common --override_module=bazel_features=$base/tools/features
common --override_module=bazel_skylib=$base/tools/skylib
common --override_module=buildozer=$modules/buildozer
common --override_module=platforms=$base/tools/platforms
common --override_module=protobuf=$modules/protobuf
common --override_module=rules_cc=$base/rules/cc
common --override_module=rules_java=$base/rules/java
common --override_module=rules_license=$base/rules/license
common --override_module=rules_proto=$base/rules/proto
common --override_module=rules_python=$modules/rules_python
common --override_module=zlib=$modules/zlib
RC
  # A sandbox has a /tmp of its own: what it needs from the real one is named.
  for folder in "${3%/bin/*}" "$("$4" -c 'import sys; print(sys.base_prefix)')"; do
    case $folder in /tmp/*) printf 'build --sandbox_add_mount_pair=%s\n' "$folder" ;; esac
  done
}

# assemble_modules TO DEBIAN HERE PYTHON: fills the folder TO.
assemble_modules() {
  local to=$1 debian=$2 root=$2/root here=$3 python=$4 modules=$1/modules module version
  version=$(<"$debian/label")
  for module in apple_support buildozer protobuf zlib; do
    stub_module "$modules/$module"
  done
  cp -- "$here/overlay/buildozer/buildozer_binary.bzl" "$modules/buildozer/"
  # Bazel's own tools link zlib by this label.
  cat >"$modules/zlib/BUILD.bazel" <<'BUILD'
load("@rules_cc//cc:cc_library.bzl", "cc_library")

cc_library(
    name = "zlib",
    linkopts = ["-lz"],
    visibility = ["//visibility:public"],
)
BUILD
  # Debian's rules, our module extensions over them.
  cp -r -- "$root/usr/share/bazel/rules/python" "$modules/rules_python"
  cp -r -- "$here/overlay/rules_python/python" "$modules/rules_python/"
  cp -- "$here/overlay/rules_python/rules_python.MODULE.bazel" "$modules/rules_python/MODULE.bazel"
  printf 'exports_files(["fetch_wheel.py"])\n' >"$modules/rules_python/python/air_gapped/BUILD.bazel"

  # An environment without packages: nothing that happens to be installed
  # beside the interpreter can be imported by a build or a test.
  "$python" -m venv --without-pip "$to/python" || die "cannot create a virtual environment with $python"
  # By the link, whose name is the same on all machines: programs name their interpreter, and a program
  # that differs is another input, for which a shared cache has no result.
  rc_file "$modules" "$root" "${to%.*}/python/bin/python3.12" "$python" >"$to/air_gapped.bazelrc"
  # An override of a module that is not in the graph is an error, hence apart.
  printf 'common --override_module=rules_shell=%s\n' "$root/usr/share/bazel/rules/shell" >"$to/rules_shell.bazelrc"

  [ "$(cd / && "$root/usr/bin/bazel" --nosystem_rc --nohome_rc --bazelrc="$to/air_gapped.bazelrc" --version)" = "bazel $version" ] ||
    die "the installed client does not start: $root/usr/bin/bazel"

  # For tools/bazel: what this was made from, and what it is to run.
  printf '%s' "$RECIPE" >"$to/recipe"
  printf '%s\n' "$root/usr/bin/bazel" >"$to/bazel_path"
  debian=${debian##*/}
  printf '%s\n' "${debian%.*}" >"$to/debian"
  [ "$version" = "$WANTED" ] ||
    printf 'Debian %s has Bazel %s, not the %s of .bazelversion; going on with it\n' "$SUITE" "$version" "$WANTED" >"$to/warning"
  : >"$to/complete"
}

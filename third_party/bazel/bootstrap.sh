#!/usr/bin/env bash
# Installs Bazel, and the modules that MODULE.bazel names, where neither
# Bazel's downloads nor the central registry are reached: from Debian's archive
# into a private prefix, changing no package of the machine. tools/bazel calls
# this; README.md beside it has the reasons of the steps.
#
#   bootstrap.sh PREFIX
#
# Environment, all optional:
#   SLIPWAY_PYTHON           the Python 3.12 to build with
#   SLIPWAY_DEBIAN_MIRROR    archive to use; default: the one the machine's apt uses
#   SLIPWAY_DEBIAN_SUITE     default forky
#   SLIPWAY_DEBIAN_PACKAGES  a folder that keeps the packages; when it holds some
#                            they are used and the archive is not asked
#
# Layout of PREFIX (it cannot be moved: ELF files and rc lines name it):
#   debian-KEY.XXXXXX/   unpacked packages; the link debian-KEY leads to it
#   modules-KEY.XXXXXX/  modules, rc file, interpreter, and the recipe they were
#                        made from; the link modules-KEY leads to it
#   lock                 held by the one process that installs
# KEY is a digest of everything that shapes the folder. A folder comes into use
# by the rename of its link, so a killed run leaves nothing that is in use.
set -euo pipefail
shopt -s nullglob

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
for part in report recipe python debian modules; do
  # shellcheck source=/dev/null
  source "$HERE/$part.sh"
done

KEPT_INSTALLATIONS=5 # recipes of one prefix: checkouts at different commits

[ $# -eq 1 ] || die "usage: bootstrap.sh PREFIX"
need_tools flock sha256sum realpath readlink mktemp df awk cut
PREFIX=$(realpath -m -- "$1")
# interpreter, rpath, shebang and rc lines take no spaces, quotes or colons
[[ $PREFIX =~ ^/[A-Za-z0-9_./+@=-]+$ ]] ||
  die "the prefix '$PREFIX' has a character other than A-Za-z0-9_./+@=-; set SLIPWAY_BAZEL_PREFIX to a folder without"
read -r WANTED <"$HERE/../../.bazelversion"
PYTHON=$(find_python_3_12) || exit 1
read_recipe "$HERE"
DEBIAN_KEY=$({ cat -- "$HERE/debian.sh" && debian_settings && echo "$PREFIX"; } | sha256sum | cut -c1-16)
MODULES_KEY=$(printf '%s\n' "$RECIPE" "$DEBIAN_KEY" "$PYTHON" "$("$PYTHON" -VV)" | sha256sum | cut -c1-16)

mkdir -p -- "$PREFIX" 2>/dev/null ||
  die "cannot create the folder $PREFIX; set SLIPWAY_BAZEL_PREFIX to one that you can write to"
{ exec 9>"$PREFIX/lock"; } 2>/dev/null ||
  die "cannot write to the folder $PREFIX; set SLIPWAY_BAZEL_PREFIX to one that you can write to"
if ! flock -n 9; then
  say "another call is installing into $PREFIX, waiting for it"
  flock -w 1800 9 || die "$PREFIX/lock was held by another call for 30 minutes; end that call and try again"
fi

UNPUBLISHED=
trap '[ -z "$UNPUBLISHED" ] || rm -rf -- "$UNPUBLISHED"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# begin NAME: makes a folder, UNPUBLISHED, which goes when the script ends
# unless `publish NAME` puts it to use.
begin() {
  UNPUBLISHED=$(mktemp -d -- "$PREFIX/$1.XXXXXX")
  chmod 755 -- "$UNPUBLISHED"
}
publish() {
  ln -sfn -- "${UNPUBLISHED##*/}" "$PREFIX/$1.link"
  mv -T -- "$PREFIX/$1.link" "$PREFIX/$1"
  UNPUBLISHED=
}

# Removes installations beyond the newest few, packages that none of the others
# uses, and what killed runs left: folders that no link leads to. The lock is
# ours, so nobody is at work in one.
prune() {
  local folder debian kept=() number=0 complete
  while IFS= read -r complete; do
    number=$((number + 1))
    if [ $number -le $KEPT_INSTALLATIONS ]; then
      kept+=("$(cat -- "${complete%/complete}/debian" 2>/dev/null || true)")
    else
      rm -f -- "${complete%/complete}"
    fi
  done < <(ls -1td -- "$PREFIX"/modules-????????????????/complete /dev/null | grep -vx /dev/null || true)
  for debian in "$PREFIX"/debian-????????????????; do
    [[ " ${kept[*]} debian-$DEBIAN_KEY " == *" ${debian##*/} "* ]] || rm -f -- "$debian"
  done
  for folder in "$PREFIX"/{debian,modules}-????????????????.??????; do
    [ "$(readlink -- "${folder%.*}" || true)" = "${folder##*/}" ] || rm -rf -- "$folder"
  done
}
prune

if [ ! -e "$PREFIX/debian-$DEBIAN_KEY/label" ]; then
  need_disk "$PREFIX"
  begin "debian-$DEBIAN_KEY"
  install_debian "$UNPUBLISHED" "$PREFIX/apt"
  publish "debian-$DEBIAN_KEY"
fi
accept_version "$(<"$PREFIX/debian-$DEBIAN_KEY/label")"
if [ ! -e "$PREFIX/modules-$MODULES_KEY/complete" ]; then
  begin "modules-$MODULES_KEY"
  assemble_modules "$UNPUBLISHED" "$(realpath -- "$PREFIX/debian-$DEBIAN_KEY")" "$HERE" "$PYTHON"
  publish "modules-$MODULES_KEY"
  say "ready: Bazel $(<"$PREFIX/debian-$DEBIAN_KEY/label") with $PYTHON in $PREFIX"
fi
# the newest matching installation is the one that tools/bazel takes
touch -- "$PREFIX/modules-$MODULES_KEY/complete"

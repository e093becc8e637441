#!/bin/sh
# Starts a Python program of this repository; program_start.bzl fills in what is between percent signs.
#
# The start script of the Python rules is itself a program in Python, which looks around and starts Python once
# more: as long again as `launcher --help` takes. What it sets for the program and its children, this sets too.

main='%main%'

# In this order: the runfiles of a caller that has this program among its own, those beside this script, and those
# that this script lies in.
find_runfiles() {
  runfiles=${RUNFILES_DIR:-}
  [ -n "$runfiles" ] && [ -e "$runfiles/$main" ] && return
  script=$0
  while :; do
    case $script in /*) ;; *) script=$PWD/$script ;; esac
    runfiles=$script.runfiles
    [ -e "$runfiles/$main" ] && return
    runfiles=${script%.runfiles/*}.runfiles
    [ -e "$runfiles/$main" ] && return
    [ -L "$script" ] || break
    target=$(readlink -- "$script")
    case $target in /*) script=$target ;; *) script=${script%/*}/$target ;; esac
  done
  printf '%s: %s.runfiles does not have %s. Build this program with tools/bazel\n' "$0" "$0" "$main" >&2
  exit 1
}
find_runfiles

# This repository, the wheels, and other repositories: the packages of a wheel lie in its site-packages.
own=$runfiles/${main%%/*}
path=$own
imports='%imports%'
IFS=:
for import in $imports; do
  path=$path:$runfiles/$import
done
unset IFS
for repository in "$runfiles"/*/; do
  repository=${repository%/}
  [ "$repository" = "$own" ] || [ -e "$repository/site-packages" ] || path=$path:$repository
done

unset RUNFILES_MANIFEST_FILE
export RUNFILES_DIR="$runfiles" PYTHONPATH="$path${PYTHONPATH:+:$PYTHONPATH}" PYTHONSAFEPATH=1

# Neither packages of the interpreter nor of the user.
exec "%python%" -S -s "$runfiles/$main" "$@"

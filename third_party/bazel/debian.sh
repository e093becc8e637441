# shellcheck shell=bash
# Debian's Bazel, with the libraries and the JRE it needs, relocated into a folder.

SUITE=${SLIPWAY_DEBIAN_SUITE:-forky}
JRE=openjdk-21-jre-headless # Bazel's class files are version 65, Java 21
NEEDED_MB=700               # packages, lists, and both of them unpacked; 280 MB stay

# What of apt's closure (some 250 packages) is kept: the client's shared
# libraries, a JRE, and the jars that the classes of A-server.jar refer to and
# that it does not bundle. Names that carry a soname may change with the suite.
JARS='caffeine|commons-codec|commons-compress|commons-io|commons-lang3|commons-pool2|diffutils|google-auth|google-flogger|google-gson|google-http-client|grpc|jsr305|perfmark|protobuf|reactive-streams|rx|xz'
KEPT="^(bazel-.*|lib(absl|grpc|grpc\\+\\+|protobuf|cares|blake3-|re2-)[0-9][0-9.a-z]*|libc6|libstdc\\+\\+6|libgcc-s1|zlib1g|libzstd1|libzstd-jni1|patchelf|$JRE|lib($JARS)-java)\$"

# Settings that shape the result, for the folder's key.
debian_settings() { printf '%s %s\n' "$SUITE" "${SLIPWAY_DEBIAN_MIRROR:-}"; }

# need_disk FOLDER: dies where its file system is short of space.
need_disk() {
  local free
  free=$(df -Pm -- "$1" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$NEEDED_MB" ] ||
    die "$1 has $free MB free, $NEEDED_MB MB are needed; make room, or set SLIPWAY_BAZEL_PREFIX to a folder on another disk"
}

# accept_version VERSION: dies unless it has the major version of .bazelversion.
# Within one, a moving suite is followed; tools/bazel warns.
accept_version() {
  [ "${1%%.*}" = "${WANTED%%.*}" ] ||
    die "Debian $SUITE has Bazel $1, and .bazelversion asks for $WANTED, another major version; install Bazelisk, or name a folder with the packages of Bazel ${WANTED%%.*} in SLIPWAY_DEBIAN_PACKAGES"
}

# The archive that serves this machine's own release, not its security updates.
debian_mirror() {
  local codename
  if [ -n "${SLIPWAY_DEBIAN_MIRROR:-}" ]; then
    printf '%s\n' "$SLIPWAY_DEBIAN_MIRROR"
    return
  fi
  codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-stable}")
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v codename="$codename" '($1 == codename || $1 == "stable") && $2 == "main" {print $3; exit}'
}

# download_packages TO APT_FOLDER: fetches the kept packages of the suite.
download_packages() {
  local to=$1 state=$2 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  local mirror version apt packages uris
  need_tools apt-get apt-cache
  [ -f "$keyring" ] || die "$keyring is missing; install the package debian-archive-keyring"
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "apt names no Debian archive on this machine; set SLIPWAY_DEBIAN_MIRROR to one"

  # apt with lists and a status file of its own: nothing of the machine changes,
  # and the closure is the whole one, as if nothing were installed.
  mkdir -p "$state"/lists/partial "$state"/cache/archives/partial
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$SUITE" >"$state/sources.list"
  : >"$state/status"
  apt=(-qq -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache"
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3
    # else a failed fetch passes for an old list
    -o APT::Update::Error-Mode=any)
  say "reading the package lists of Debian $SUITE from $mirror"
  apt-get "${apt[@]}" update ||
    die "cannot read the package lists of Debian $SUITE at $mirror; check the network, or set SLIPWAY_DEBIAN_MIRROR or SLIPWAY_DEBIAN_PACKAGES"
  version=$(apt-cache "${apt[@]:1}" policy bazel-bootstrap | awk '$1 == "Candidate:" {print $2}')
  case $version in '' | '(none)') die "Debian $SUITE has no package bazel-bootstrap; set SLIPWAY_DEBIAN_SUITE to a suite that has" ;; esac
  accept_version "${version%%+*}"

  # libblake3-0 by name: no dependency names it, but a library inside the
  # server's jar links it.
  uris=$(apt-get "${apt[@]}" --no-install-recommends --print-uris -y install \
    bazel-bootstrap bazel-rules-shell libblake3-0 libzstd-jni1 patchelf "$JRE") ||
    die "apt cannot resolve bazel-bootstrap and $JRE in Debian $SUITE"
  mapfile -t packages < <(sed -n "s/^'[^']*' \\([^_]*\\)_.*/\\1/p" <<<"$uris" | sort -u | grep -E "$KEPT")
  [ "${#packages[@]}" -gt 20 ] || die "apt resolved only ${#packages[@]} of the packages that Bazel needs in Debian $SUITE"
  say "downloading ${#packages[@]} packages"
  (cd "$to" && apt-get "${apt[@]}" download "${packages[@]}") || die "cannot download the packages of Debian $SUITE from $mirror"
  (cd "$to" && sha256sum -- *.deb >SHA256SUMS)
  rm -rf -- "$state/cache"
}

# unpack_packages FROM ROOT: in parallel, without documentation.
unpack_packages() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  printf '%s\0' "$1"/*.deb | xargs -0 -P "$(nproc)" -I{} sh -c '
    dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --exclude=./usr/share/doc --exclude=./usr/share/man \
      --exclude=./usr/share/lintian --exclude=./usr/share/maven-repo --exclude=./usr/share/bash-completion' _ {} "$2" ||
    die "cannot unpack the packages; is this machine's dpkg-deb too old for their compression?"
}

# relocate ROOT: makes programs and links of the packages find each other there.
relocate() {
  local root=$1 lib=$1/usr/lib/x86_64-linux-gnu install_base=$1/usr/share/bazel
  local loader=$lib/ld-linux-x86-64.so.2 link target java java_home patchelf program programs missing
  [ -x "$loader" ] && [ -f "$install_base/A-server.jar" ] ||
    die "Debian's packages have moved their files: $loader or $install_base/A-server.jar is missing"
  java=$(find "$root/usr/lib/jvm" -path '*/bin/java' -type f -print -quit)
  [ -n "$java" ] || die "the package $JRE has no bin/java"
  java_home=${java%/bin/java}
  ln -s -- "$java_home" "$root/java_home"

  while IFS= read -r -d '' link; do
    target=$(readlink -- "$link")
    if [ -e "$root$target" ] || [ -L "$root$target" ]; then ln -sfn -- "$root$target" "$link"; fi
  done < <(find "$root" -type l -lname '/*' ! -path "$root/java_home" -print0)

  # The machine's libc and libstdc++ may be older than these programs: they get
  # the ones of their own suite, by interpreter and rpath. --force-rpath
  # (DT_RPATH) because a library that the JVM loads must find them as well.
  cp -- "$root/usr/bin/patchelf" "$root/patchelf" # it cannot patch itself
  patchelf=("$loader" --library-path "$lib" "$root/patchelf" --set-interpreter "$loader" --force-rpath)
  programs=("$root/usr/bin/bazel" "$root"/usr/libexec/x86_64-linux-gnu/bazel/*)
  for program in "${programs[@]}"; do
    "${patchelf[@]}" --set-rpath "$lib" "$program"
  done
  for program in "$java_home"/bin/* "$java_home/lib/jspawnhelper"; do
    [ -L "$program" ] || "${patchelf[@]}" --set-rpath "\$ORIGIN/../lib:\$ORIGIN:$lib" "$program"
  done
  rm -- "$root/patchelf"
  for program in "${programs[@]}" "$java"; do
    missing=$("$loader" --list "$program" 2>&1 | grep 'not found' || true)
    [ -z "$missing" ] || die "$program lacks libraries, which the list KEPT in debian.sh must name:"$'\n'"$missing"
  done
}

# complete_server ROOT VERSION: what Debian's install base lacks.
complete_server() {
  local root=$1 install_base=$1/usr/share/bazel extra=$1/usr/share/bazel-extra jar zstd
  # the jar loads libzstd-jni by this name, to unpack .tar.zst
  zstd=("$root"/usr/lib/x86_64-linux-gnu/libzstd-jni*.so* "$root"/usr/lib/x86_64-linux-gnu/jni/libzstd-jni*.so*)
  [ ${#zstd[@]} -gt 0 ] || die "the package libzstd-jni1 has no library"
  ln -sf -- "${zstd[-1]}" "$install_base/libzstd-jni.so"
  # the server is not stamped, and rule sets compare `native.bazel_version`
  mkdir -p "$extra"
  printf 'build.label=%s\n' "$2" >"$extra/build-data.properties"
  # Debian's class path, the jars it forgets, and the stamp
  {
    sed 's/[[:space:]]*$//' "$install_base/bazel_classpath_debian_depends.txt"
    printf '/usr/share/java/%s.jar\n' perfmark-api protobuf commons-lang3 commons-codec
  } | while read -r jar; do
    if [ -e "$root$jar" ]; then printf '%s\n' "$root$jar"; fi
  done >"$root/class_path"
  printf '%s\n' "$extra" >>"$root/class_path"
  mv -- "$root/class_path" "$install_base/bazel_classpath_debian_depends.txt"
}

# install_debian TO APT_FOLDER: fills the folder TO; TO/label is the version.
install_debian() {
  local to=$1 debs=${SLIPWAY_DEBIAN_PACKAGES:-$1/debs} version kept
  need_tools dpkg dpkg-deb tar xargs sed find sort grep nproc
  [ "$(dpkg --print-architecture)" = amd64 ] ||
    die "Debian's Bazel is installed on amd64 only, and this is $(dpkg --print-architecture); install Bazelisk"
  mkdir -p "$debs" "$to/root"
  debs=$(realpath -- "$debs")
  kept=("$debs"/*.deb)
  if [ ${#kept[@]} -eq 0 ]; then
    download_packages "$debs" "$2"
  else
    say "using the ${#kept[@]} packages in $debs"
    [ ! -f "$debs/SHA256SUMS" ] || (cd "$debs" && sha256sum --quiet --strict -c SHA256SUMS) ||
      die "a package in $debs differs from its SHA256SUMS; fetch the packages anew"
  fi
  say "unpacking"
  unpack_packages "$debs" "$to/root"
  [ "$debs" != "$to/debs" ] || rm -rf -- "$debs"
  version=$(<"$to/root/usr/share/bazel/build-label.txt")
  accept_version "$version"
  relocate "$to/root"
  complete_server "$to/root" "$version"
  printf '%s\n' "$version" >"$to/label"
}

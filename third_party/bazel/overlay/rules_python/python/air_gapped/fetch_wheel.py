"""Fetches one wheel: fetch_wheel.py REQUIREMENT_FILE [PIP_OPTION ...] -- [EXTRA ...].

Downloads the one hashed requirement of the file with this interpreter's pip,
lays the wheel's files out in site-packages/ as `pip install --target` does,
compiles its modules, and writes the names of the packages that it depends on,
given the extras, to deps.json. Works in the current directory. One process for
all of it: a hub has a hundred wheels, and starting pip is most of a small one.
"""

import compileall
import contextlib
import email.parser
import json
import os
import py_compile
import re
import runpy
import shutil
import stat
import sys
import zipfile
from pathlib import Path, PurePosixPath

# Such a file would make a folder of the wheel a Bazel package of its own.
BAZEL_FILES = frozenset(
    {"BUILD", "BUILD.bazel", "MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel"}
)

# Where the parts of `NAME-VERSION.data` go below the destination. Headers and
# data files are left out: nothing that runs from a wheel looks for them there.
DATA_SCHEMES = {"purelib": (), "platlib": (), "scripts": ("bin",)}


class WheelError(Exception):
    """The wheel is malformed; the text names the file, the rule and the member."""


def label_name(name: str) -> str:
    """The Bazel name of a distribution, as lock.bzl writes it."""
    return re.sub(r"[-_.]+", "_", name).lower()


def installed_path(member: str) -> PurePosixPath | None:
    """Where a member of a wheel is installed, relative to site-packages.

    Returns None for what is not installed. Raises WheelError for a name that
    leaves the destination.
    """
    parts = member.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in member or "\0" in member:
        raise WheelError(f"member '{member}' leaves the wheel; refuse this wheel and report it to its index")
    if parts[0].endswith(".data"):
        if len(parts) < 3 or parts[1] not in DATA_SCHEMES:
            return None
        parts = [*DATA_SCHEMES[parts[1]], *parts[2:]]
    if parts[-1] in BAZEL_FILES:
        return None
    return PurePosixPath(*parts)


def unpack(wheel: Path, dest: Path) -> None:
    """Unpacks a wheel below `dest`. Raises WheelError for a bad member."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                raise WheelError(
                    f"{wheel.name}: member '{info.filename}' is a symbolic link; wheels hold none"
                )
            try:
                relative = installed_path(info.filename)
            except WheelError as error:
                raise WheelError(f"{wheel.name}: {error}") from None
            if relative is None:
                continue
            path = dest / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(info))
            executable = (info.external_attr >> 16) & 0o111 or relative.parts[0] == "bin"
            path.chmod(0o755 if executable else 0o644)


def dependencies(dest: Path, extras: list[str]) -> list[str]:
    """Label names of what the unpacked wheel requires here with the extras."""
    from pip._vendor.packaging.requirements import Requirement  # only pip's interpreter has it

    (metadata,) = dest.glob("*.dist-info/METADATA")
    headers = email.parser.Parser().parsestr(metadata.read_text(encoding="utf-8"), headersonly=True)
    own = label_name(headers["Name"])
    names = set()
    for line in headers.get_all("Requires-Dist") or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            names.add(label_name(requirement.name))
    return sorted(names - {own})


def precompile(dest: Path) -> None:
    """Writes bytecode that the interpreter takes without a look at the source.

    So no run compiles again, and none writes into the folder, which would
    change the input of later actions. Modules that do not compile (templates,
    other Python versions) stay as they are; importing one fails either way.
    """
    compileall.compile_dir(
        dest,
        maxlevels=100,
        quiet=2,
        # no path of this machine inside the bytecode; Python puts the real one
        # in when it loads a module
        stripdir=os.fspath(dest),
        prependdir="site-packages",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def make_read_only(dest: Path) -> None:
    """Takes the write permission away, so that no cache file joins later."""
    for folder, _, files in os.walk(dest):
        for name in files:
            path = Path(folder, name)
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
        Path(folder).chmod(0o555)


def download(requirement_file: str, pip_options: list[str], wheels: Path) -> Path:
    """Downloads the wheel of the file's requirement into the folder `wheels`.

    Raises WheelError where pip fails (its own text is on stderr), or where it
    finds nothing to do.
    """
    sys.argv = [
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        f"--dest={wheels}",
        f"--requirement={requirement_file}",
        *pip_options,
    ]
    requirement = Path(requirement_file).read_text(encoding="utf-8").split(" --hash=")[0]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise WheelError(
                f"pip cannot download {requirement}, see above; check the network and pip's settings"
            ) from None
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        names = ", ".join(wheel.name for wheel in found) or "none"
        raise WheelError(
            f"{requirement}: expected one wheel, pip gave {names}; does the marker exclude this machine?"
        )
    return found[0]


def main(argv: list[str]) -> None:
    divider = argv.index("--")
    requirement_file, *pip_options = argv[:divider]
    extras = argv[divider + 1 :]
    wheels, dest = Path("wheels"), Path("site-packages")
    wheel = download(requirement_file, pip_options, wheels)
    unpack(wheel, dest)
    names = dependencies(dest, extras)
    precompile(dest)
    make_read_only(dest)
    shutil.rmtree(wheels)
    Path("deps.json").write_text(json.dumps(names), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (WheelError, zipfile.BadZipFile) as error:
        sys.exit(f"error: {error}")

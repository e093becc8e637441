"""Packs a program's modules for `archive.bzl`: flags are lines of the files that are named as `@file`.

Pure packages go into the zip, as bytecode and as source. A package with native code cannot be imported from a zip
and goes, with all its modules, into the folder beside it. The same inputs give the same bytes.
"""

import argparse
import importlib.util
import marshal
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath

_MAIN = """\
import os
import sys

# Absolute, since the program may change its working directory.
sys.path[0] = os.path.abspath(sys.path[0])
sys.path.insert(1, {native!r}.join(sys.path[0].rsplit({archive!r}, 1)))

from {module} import main

sys.exit(main())
"""

_ANOTHER_REPOSITORY = "../"
"""How the short path of its files begins."""


class PackError(Exception):
    """The program cannot be packed."""


def main(arguments: list[str]) -> int:
    """Pack one program and return the exit status."""
    flags = _parser().parse_args(arguments)
    archive, native = Path(flags.archive), Path(flags.native)
    try:
        modules = dict(_modules(flags.file, flags.imports))
        start = flags.module.replace(".", "/") + ".py"
        if start not in modules:
            raise PackError(f"{start} is not among the files of the program. Correct `module`")
    except PackError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    beside = {_top(name) for name in modules if _is_native(name)}
    main_text = _MAIN.format(native=native.name, archive=archive.name, module=flags.module)
    contents = {"__main__.py": main_text.encode()}
    for name, source in sorted(modules.items()):
        if _top(name) not in beside:
            contents[name] = source.read_bytes()
            continue
        place = native / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read_bytes())
        if name.endswith(".py"):
            cached = Path(importlib.util.cache_from_source(str(place)))
            cached.parent.mkdir(exist_ok=True)
            cached.write_bytes(_bytecode(source.read_bytes(), name))
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in sorted(contents.items()):
            _add(packed, name, data)
            _add(packed, name + "c", _bytecode(data, name))
    return 0


def _modules(files: Iterable[str], imports: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Path from a folder of sys.path -> file, of every Python module."""
    roots = sorted(imports, key=len, reverse=True)
    for line in files:
        path, _, short = line.partition("=")
        file = Path(path)
        # A large wheel may be one folder.
        found = sorted(file.rglob("*")) if file.is_dir() else [file]
        for each in found:
            name = _name(short + str(each)[len(path) :], roots)
            if name is not None and (name.endswith(".py") or _is_native(name)):
                yield name, each


def _name(short: str, roots: Iterable[str]) -> str | None:
    """What a file is called from its folder of sys.path; None if none of them has it."""
    if not short.startswith(_ANOTHER_REPOSITORY):
        return short
    below = short.removeprefix(_ANOTHER_REPOSITORY)
    return next((below[len(root) + 1 :] for root in roots if below.startswith(root + "/")), None)


def _is_native(name: str) -> bool:
    return name.endswith(tuple(EXTENSION_SUFFIXES))


def _top(name: str) -> str:
    return PurePosixPath(name).parts[0]


def _bytecode(source: bytes, name: str) -> bytes:
    """What `import` reads instead of a source, and does not compare with it (PEP 552)."""
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + importlib.util.source_hash(source)
    return header + marshal.dumps(code)


def _add(packed: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file with no time and no compression: it is read at every start."""
    packed.writestr(zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0)), data)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, fromfile_prefix_chars="@", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archive", required=True, help="zip to write")
    parser.add_argument("--native", required=True, help="folder to fill")
    parser.add_argument("--module", required=True, help="module whose main() is the program")
    parser.add_argument("--import", dest="imports", action="append", default=[], help="folder of sys.path")
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH=SHORT", help="file of the program"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

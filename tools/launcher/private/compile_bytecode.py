"""Compiles Python sources for `bytecode.bzl`: lines of `source=output` in the files that are named as `@file`."""

import py_compile
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Compile every pair. The result does not ask for the time of its source, which a build does not keep."""
    for argument in arguments:
        for line in Path(argument.removeprefix("@")).read_text(encoding="utf-8").splitlines():
            source, output = line.split("=", 1)
            py_compile.compile(
                source,
                cfile=output,
                dfile=source,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )


if __name__ == "__main__":
    main(sys.argv[1:])

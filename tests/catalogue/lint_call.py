"""Calls of `lint` inside this process: the path that every launch document takes, bytes to report."""

import argparse
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

from tests.catalogue.catalogue_case import CatalogueCase
from tools.launcher.cli import lint_command


def lint(*arguments: str) -> tuple[int, str]:
    """Run `lint` with the arguments of a command line; return its exit status and what it printed."""
    parser = argparse.ArgumentParser(prog="lint")
    lint_command.add_arguments(parser)
    flags = parser.parse_args(arguments)
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    # Paths start at the working directory, also where `bazel run` started this process.
    with contextlib.redirect_stdout(printed), mock.patch.dict(os.environ):
        os.environ.pop("BUILD_WORKING_DIRECTORY", None)
        status = lint_command.run(flags)
    return status, printed.buffer.getvalue().decode()


def judged(case: CatalogueCase, folder: Path, *, with_cards: bool = True) -> dict[str, Any]:
    """Return what `lint --format=json` says of a case.

    Args:
        case: the case; its document, cards and manifest become files.
        folder: an empty folder for them.
        with_cards: whether the cards are given.
    """
    document = folder / "document.yaml"
    document.write_bytes(case.data())
    arguments = [str(document), "--format=json"]
    for flag, content in case.given_files().items():
        if with_cards or not flag.endswith("_card"):
            path = folder / f"{flag}.yaml"
            path.write_bytes(content)
            arguments.append(f"--{flag}={path}")
    status, printed = lint(*arguments)
    (entry,) = json.loads(printed)["documents"]
    assert status == (1 if entry["verdict"] == "reject" else 0)
    assert isinstance(entry, dict)
    return entry

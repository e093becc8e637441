"""Judges many broken launch documents: tools/bazel run //tests/bench:fuzz_lint -- [--documents=N] [--seed=N]

Exit status: 0 if every verdict came without an exception and in time, else 1. Documents on which that was not
so are written to --failures; `--only=NUMBER` judges one of them again.
"""

import argparse
import functools
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from absl.flags import argparse_flags

from tests.bench.broken_documents import BrokenDocuments
from tests.bench.fuzzing import Summary, fuzz, inputs_to_judge_with, originals
from tools.launcher.cli.lint_inputs import LintInputs
from tools.launcher.cli.process_boundary import run_as_process

_PER_TASK = 250


def main() -> int:
    """Run the bench; see --help."""
    flags = _parser().parse_args(sys.argv[1:])
    numbers = [flags.only] if flags.only is not None else list(range(flags.documents))
    tasks = [numbers[start : start + _PER_TASK] for start in range(0, len(numbers), _PER_TASK)]
    summary, started = Summary(), time.monotonic()
    with ProcessPoolExecutor(flags.processes) as pool:
        for done in as_completed([pool.submit(_fuzz, flags.seed, task) for task in tasks]):
            part = done.result()
            summary.add(part)
            for failure in part.failures:
                sys.stderr.write(f"\n{failure.number}: {failure.problem.strip().splitlines()[-1]}\n")
            sys.stderr.write(
                f"\r{summary.judged}/{len(numbers)} judged, {len(summary.failures)} failures, "
                f"{summary.judged / (time.monotonic() - started):.0f}/s "
            )
    sys.stderr.write("\n")
    _report(summary, flags.failures)
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse_flags.ArgumentParser(
        prog="fuzz_lint",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        inherited_absl_flags=None,
    )
    parser.add_argument("--documents", type=int, default=100_000, help="how many are judged")
    parser.add_argument("--seed", type=int, default=1, help="other documents for another seed")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="judge the document of this number")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many judge at a time")
    parser.add_argument("--failures", type=Path, default=Path("fuzz_failures"), help="folder for failures")
    return parser


@functools.cache
def _prepared(seed: int) -> tuple[BrokenDocuments, list[LintInputs]]:
    """Once in each process."""
    return BrokenDocuments(originals(), seed=seed), inputs_to_judge_with()


def _fuzz(seed: int, numbers: Sequence[int]) -> Summary:
    documents, inputs = _prepared(seed)
    return fuzz(documents, numbers, inputs)


def _report(summary: Summary, folder: Path) -> None:
    print(
        f"{summary.judged} documents: {summary.accepted} accepted, "
        f"{summary.judged - summary.accepted} rejected, of these {summary.unreadable} unreadable"
    )
    print("slowest: " + ", ".join(f"{took:.3f} s (document {number})" for took, number in summary.slowest))
    for failure in sorted(summary.failures, key=lambda each: each.number):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{failure.number}.yaml"
        path.write_bytes(failure.data)
        print(f"document {failure.number}, written to {path.absolute()}:\n{failure.problem}")
    print(f"{len(summary.failures)} failures")


if __name__ == "__main__":
    sys.exit(run_as_process(main))

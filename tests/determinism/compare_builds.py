#!/usr/bin/env python3
"""Builds all experiments in several ways and compares every output byte.

    tests/determinism/compare_builds.py [--keep]

Ways: two output bases, two checkouts at different paths, with and without sandboxing, and
PYTHONHASHSEED 0 and 1. Run from anywhere inside a checkout; needs about a gigabyte of disk for
the time it runs. Ends with `N passed, N failed`, one comparison each.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TARGETS = "//experiments/..."
OUTPUT_GROUPS = "--output_groups=launch,graph,plan,report,digest"
OUTPUTS = ("*.launch.yaml", "*.graph.json", "*.plan.json", "*.report.html", "*.digest")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the folders, to look at a difference")
    keep = parser.parse_args().keep
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(tempfile.mkdtemp(prefix="slipway-determinism-"))
    try:
        return compare(checkout, folder)
    finally:
        if keep:
            print(f"kept: {folder}")
        else:
            # Bazel makes its outputs read-only.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def compare(checkout: Path, folder: Path) -> int:
    """Build in every way below `folder` and print how each compares with the first."""
    other = folder / "another" / "checkout"
    copy_tracked(checkout, other)
    second, third = folder / "base-2", folder / "base-3"
    # The first is the checkout's own output base, which has its wheels already.
    ways: list[tuple[str, Path, Path | None, list[str]]] = [
        ("sandboxed", checkout, None, []),
        ("another output base", checkout, second, []),
        ("without a sandbox", checkout, second, ["--spawn_strategy=local"]),
        ("PYTHONHASHSEED=0", checkout, second, ["--action_env=PYTHONHASHSEED=0"]),
        ("PYTHONHASHSEED=1", checkout, second, ["--action_env=PYTHONHASHSEED=1"]),
        ("another checkout", other, third, []),
    ]
    passed = failed = 0
    first: dict[str, str] = {}
    try:
        for name, where, base, flags in ways:
            digests = build(where, base, flags)
            if not first:
                first = digests
                print(f"{name}: {len(digests)} outputs", flush=True)
                continue
            different = sorted(
                path for path in first.keys() | digests.keys() if first.get(path) != digests.get(path)
            )
            print(f"{name}: {'equal' if not different else 'DIFFERENT: ' + ', '.join(different)}", flush=True)
            passed, failed = (passed, failed + 1) if different else (passed + 1, failed)
    finally:
        for where, base in ((checkout, second), (other, third)):
            bazel(where, base, "shutdown", check=False)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or not first)


def build(where: Path, base: Path | None, flags: list[str]) -> dict[str, str]:
    """Build all experiments and return path below bazel-bin -> SHA-256 of every output."""
    bazel(where, base, "build", "--noshow_progress", OUTPUT_GROUPS, *flags, TARGETS)
    bin_folder = Path(bazel(where, base, "info", *flags, "bazel-bin").strip())
    return {
        path.relative_to(bin_folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in OUTPUTS
        for path in (bin_folder / "experiments").rglob(pattern)
        # Links that `bazel run` left.
        if not any(part.endswith(".runfiles") for part in path.parts)
    }


def bazel(where: Path, base: Path | None, command: str, *arguments: str, check: bool = True) -> str:
    """Run Bazel and return what it prints on stdout; what it says on stderr stays visible on failure.

    Args:
        where: the checkout.
        base: the output base, None for the one that Bazel chooses.
    """
    call = ["tools/bazel", *([] if base is None else [f"--output_base={base}"]), command, *arguments]
    done = subprocess.run(call, cwd=where, capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(f"{' '.join(call)} ended with {done.returncode}")
    return done.stdout


def copy_tracked(checkout: Path, target: Path) -> None:
    """Copy the files that git tracks, as they are in the working tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, names):
        if (checkout / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, target / name)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs every bench and writes what they measured: docs/performance.json, and docs/performance.md from it.

    tests/bench/all.py             some 30 minutes on two cores; let nothing else run meanwhile
    tests/bench/all.py --quick     fewer experiments and rounds; prints, and leaves docs/ as it is

The benches, each of which also runs alone: tests/bench/scale.py, tests/bench/affected.py, and
`tools/bazel run //tests/bench:NAME` for lint_speed, startup and submit_to_verified. Exit status 1 if a
condition of tests/bench/acceptance.py does not hold or, without --quick, was not measured.
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.acceptance import judged, told  # noqa: E402

PROGRAMS = ("lint_speed", "startup", "submit_to_verified")
"""Benches that are targets of Bazel."""
RESULTS = ROOT / "docs/performance.json"


def main() -> int:
    """Run the benches."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer experiments and rounds; writes nothing")
    parser.add_argument("--builds", type=int, default=0, metavar="N", help="passed on to scale.py")
    options = parser.parse_args()
    quick: bool = options.quick
    results: dict[str, Any] = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), **_source()}
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        file = Path(folder) / "scale.json"
        results["scale"] = _ran(
            ["tests/bench/scale.py", f"--json={file}", f"--builds={options.builds}", *["--quick"] * quick],
            file,
        )
        file = Path(folder) / "affected.json"
        fewer = ["--experiments=100", "--rounds=1"] * quick
        results["affected"] = _ran(["tests/bench/affected.py", f"--json={file}", *fewer], file)
        for name in PROGRAMS:
            file = Path(folder) / f"{name}.json"
            command = ["tools/bazel", "run", "--noshow_progress", f"//tests/bench:{name}", "--"]
            results[name] = _ran([*command, f"--json={file}"], file)
    if not quick:
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        subprocess.run(
            ["tools/bazel", "run", "--noshow_progress", "//tests/bench:results_page"], cwd=ROOT, check=True
        )
    text, holds = told(results)
    print(text)
    complete = all(row.value is not None for row in judged(results))
    return 0 if holds and (complete or quick) else 1


def _source() -> dict[str, Any]:
    """Which source is measured: the commit, and whether the working tree differs from it."""
    commit = _git("rev-parse", "HEAD").strip()
    return {"commit": commit, "changed": bool(_git("status", "--porcelain").strip())}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _ran(command: list[str], file: Path) -> Any:
    """Run a bench and return the results that it wrote. Status 1 means that a limit does not hold."""
    sys.stderr.write(f"=== {' '.join(command)}\n")
    sys.stderr.flush()
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status not in (0, 1) or not file.exists():
        raise SystemExit(f"error: {' '.join(command)} ended with {status} and no results")
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

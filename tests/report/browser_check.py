#!/usr/bin/env python3
"""Looks at the report's pages in a real browser, without a window.

    tests/report/browser_check.py [--keep FOLDER]

For plans of 1x8, 8x8 and 16x8 GPUs, at 375 and 1280 px, light and dark, and in print: no message on the
console, no request, nothing wider than the screen, no label outside its box, letters large enough, no
violation of axe's rules, and the keyboard reaches what the mouse does. Ends with `N passed, N failed`.

Needs Node.js with npm; the packages are those of browser/package-lock.json. The browser is $CHROME_BIN,
else a Chromium or Chrome on PATH, else the one of the package @sparticuz/chromium (Linux on x86-64).
With --keep, screenshots and PDFs stay in FOLDER/shots, to be looked at.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", metavar="FOLDER", help="folder for pages and screenshots, which stay")
    keep = parser.parse_args().keep
    if shutil.which("npm") is None:
        sys.exit("npm is not on PATH. Install Node.js with npm")
    with tempfile.TemporaryDirectory(prefix="slipway-report-") as scratch:
        folder = Path(keep or scratch).absolute()
        return check(folder, Path(scratch))


def check(folder: Path, scratch: Path) -> int:
    """Write the pages below `folder`, install the packages in `scratch`, and look. Returns the status."""
    pages, shots, program = folder / "pages", folder / "shots", scratch / "browser"
    for made in (pages, shots):
        made.mkdir(parents=True, exist_ok=True)
    shutil.copytree(Path(__file__).parent / "browser", program)
    subprocess.run(
        ["tools/bazel", "run", "--noshow_progress", "//tests/report:write_pages", "--", pages],
        cwd=ROOT,
        check=True,
    )
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=program,
        check=True,
    )
    # The packed browser unpacks itself into the folder for temporary files.
    environment = os.environ | {"TMPDIR": str(scratch), "CHROME_BIN": browser()}
    return subprocess.run(
        ["node", "check.mjs", pages, shots], cwd=program, env=environment, check=False
    ).returncode


def browser() -> str:
    """Return the path of an installed browser, "" for the packed one."""
    found = (shutil.which(name) for name in BROWSERS)
    return os.environ.get("CHROME_BIN") or next((path for path in found if path), "")


if __name__ == "__main__":
    sys.exit(main())

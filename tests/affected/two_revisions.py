#!/usr/bin/env python3
"""Asks `launcher affected` and `launcher diff` about revisions, with the real git and the real Bazel.

    tests/affected/two_revisions.py

The revisions are commits that no branch has, made of HEAD: an edit of placement, an edit of a recipe under
its old version, the same under a new one, and a package that cannot be read. Files that are not committed are
not asked about. The checkout that the command keeps is below a temporary folder; its first build fetches and
builds the launcher once more. Run from anywhere inside a checkout. Ends with `N passed, N failed`, one for
each expectation.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CATS, GSM = "experiments/cat_count", "experiments/gsm8k_grpo"

Edit = Callable[[str], str]


def replaced(old: str, new: str) -> Edit:
    """Return an edit that must find what it replaces."""

    def edit(text: str) -> str:
        assert old in text, old
        return text.replace(old, new)

    return edit


PLACEMENT: dict[str, Edit] = {f"{CATS}/experiment.py": replaced("cpu=8,", "cpu=4,")}
RECIPE: dict[str, Edit] = {f"{GSM}/experiment.py": replaced("seed=17,", "seed=18,")}
VERSION: dict[str, Edit] = {f"{GSM}/BUILD.bazel": replaced('"2026.09.21"', '"2026.09.22"')}
WRONG_CARD: dict[str, Edit] = {f"{CATS}/BUILD.bazel": replaced("datasets:cat_count", "models:qwen3_0_6b")}
UNREADABLE: dict[str, Edit] = {f"{CATS}/BUILD.bazel": lambda text: text + "rl_experiment(\n"}


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="slipway-affected-"))
    # The caches of the user are not for tests; the Bazel that is installed already is.
    prefix = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway" / "bazel"
    environ = {"SLIPWAY_BAZEL_PREFIX": str(prefix), **os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    try:
        expectations = list(observe(environ, folder))
    finally:
        for output in (folder / "cache" / "slipway" / "revisions").glob("*/output"):
            checkout = output.parent / "checkout"
            call = ["tools/bazel", f"--output_base={output}", "shutdown"]
            subprocess.run(call, cwd=checkout, env=environ, check=False, capture_output=True)
        # Bazel makes its outputs read-only.
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    for what, wanted, seen in expectations:
        print(f"{what}: {'ok' if wanted == seen else f'WANTED {wanted}, SEEN {seen}'}", flush=True)
    failed = sum(wanted != seen for _, wanted, seen in expectations)
    print(f"{len(expectations) - failed} passed, {failed} failed")
    return int(failed > 0)


def observe(environ: Mapping[str, str], folder: Path) -> list[tuple[str, Any, Any]]:
    """Return (what, wanted, seen) of every expectation."""
    base = git(environ, "rev-parse", "HEAD")
    under_old = commit(environ, folder, {**PLACEMENT, **RECIPE})
    under_new = commit(environ, folder, {**RECIPE, **VERSION})
    unreadable = commit(environ, folder, UNREADABLE)
    wrong_card = commit(environ, folder, WRONG_CARD)
    cats, gsm = f"//{CATS}:cat_count", f"//{GSM}:gsm8k_grpo"

    def effects(head: str, ways: list[str] | None = None) -> dict[str, str]:
        done = launcher(environ, "affected", f"--base={base}", f"--head={head}", "--format=json")
        if ways is not None:
            ways.append("one by one" if "one by one" in done.stderr else "together")
        return {item["label"]: item["effect"] for item in json.loads(done.stdout)["affected"]}

    ways: list[str] = []

    def built() -> int:
        return len(list((folder / "cache" / "slipway" / "digests").iterdir()))

    found: list[tuple[str, Any, Any]] = [
        ("no change", {}, effects(base)),
        (
            "placement, and a recipe under a pinned version",
            {gsm: "refused", cats: "launch"},
            effects(under_old, ways),
        ),
        ("a recipe under a new version", {gsm: "recipe"}, effects(under_new)),
        ("a package that cannot be read", {cats: "refused"}, effects(unreadable)),
        ("an experiment that cannot be analysed", {cats: "refused"}, effects(wrong_card, ways)),
        ("how they were planned", ["together", "one by one"], ways),
    ]
    before = built()
    found.append(("asked again", {gsm: "recipe"}, effects(under_new)))
    found.append(("nothing was built for that", before, built()))
    sides = [f"{base}://{GSM}", f"{under_new}://{GSM}"]
    content = json.loads(launcher(environ, "diff", *sides, "--build", "--format=json", status=1).stdout)
    paths = {field["path"] for field in content["fields"]}
    found.append(("a label at two revisions, built", True, {"run.seed", "run.id"} <= paths))
    found.append(("its resume", "fresh", content["consequences"]["resume"]["verdict"]))
    return found


def launcher(
    environ: Mapping[str, str], *arguments: str, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a command of the launcher as users do and return what it says."""
    call = ["tools/bazel", "run", "--noshow_progress", "//tools/launcher", "--", *arguments]
    done = subprocess.run(call, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != status:
        sys.stderr.write(done.stderr)
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}, not {status}")
    return done


def commit(environ: Mapping[str, str], folder: Path, edits: Mapping[str, Edit]) -> str:
    """Make a commit of HEAD with some files edited, by an index of its own, and return its id."""
    who = {
        f"GIT_{role}_{part}": "slipway@localhost"
        for role in ("AUTHOR", "COMMITTER")
        for part in ("NAME", "EMAIL")
    }
    own = {**environ, **who, "GIT_INDEX_FILE": str(folder / "index")}
    git(own, "read-tree", "HEAD")
    for path, edit in edits.items():
        edited = folder / "edited"
        edited.write_text(edit(git(environ, "show", f"HEAD:{path}", strip=False)), encoding="utf-8")
        blob = git(own, "hash-object", "-w", str(edited))
        git(own, "update-index", "--cacheinfo", f"100644,{blob},{path}")
    return git(own, "commit-tree", "-p", "HEAD", "-m", "for a test", git(own, "write-tree"))


def git(environ: Mapping[str, str], *arguments: str, strip: bool = True) -> str:
    """Run git in the checkout and return what it prints."""
    call = ["git", *arguments]
    done = subprocess.run(call, cwd=ROOT, env=dict(environ), capture_output=True, text=True, check=True)
    return done.stdout.strip() if strip else done.stdout


if __name__ == "__main__":
    sys.exit(main())

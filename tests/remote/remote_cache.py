#!/usr/bin/env python3
"""Proves `--config=remote` with a real remote cache, from two checkouts.

    tests/remote/remote_cache.py [--server=grpc://HOST:PORT] [--keep]

Two copies of this checkout's tracked files, each with an output base and variables of its own:
  1. the first, allowed to write, plans every experiment and fills the cache;
  2. the second, with --config=remote, takes every result from it: the same action keys, nothing
     executed, the same bytes;
  3. an edited experiment is planned on this machine, it alone, and its result stays here: the
     second only reads;
  4. without a server, and with one that speaks another protocol, the build succeeds all the same,
     and warns.

Without --server it installs and starts one (see cache_server.py). Needs about a gigabyte of disk
for the time it runs. Ends with `N passed, N failed`.
"""

import argparse
import hashlib
import json
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.determinism.compare_builds import OUTPUT_GROUPS, OUTPUTS, TARGETS, copy_tracked  # noqa: E402
from tests.remote import cache_server  # noqa: E402

PREFLIGHT = "RlPreflight"


@dataclass(frozen=True)
class Spawn:
    """One action that Bazel ran or found in a cache."""

    target: str
    mnemonic: str
    runner: str
    cached: bool
    key: str


@dataclass(frozen=True)
class Built:
    """What one build said and did."""

    status: int
    said: str
    spawns: tuple[Spawn, ...]
    outputs: dict[str, str]

    def preflights(self) -> dict[str, Spawn]:
        """The planned experiments, by label."""
        return {spawn.target: spawn for spawn in self.spawns if spawn.mnemonic == PREFLIGHT}

    def executed(self) -> list[str]:
        """What ran on this machine."""
        return sorted(f"{spawn.mnemonic} {spawn.target}" for spawn in self.spawns if not spawn.cached)


@dataclass(frozen=True)
class Checkout:
    """A copy of the tracked files, an output base for it, and variables that differ from the caller's."""

    folder: Path
    output_base: Path
    environment: dict[str, str]

    def bazel(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run tools/bazel with this output base."""
        return subprocess.run(
            ["tools/bazel", f"--output_base={self.output_base}", *arguments],
            cwd=self.folder,
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def fetch(self) -> None:
        """Load everything that a build needs from outside; no action runs. Ends the program where that fails."""
        done = self.bazel("build", "--noshow_progress", "--nobuild", TARGETS)
        if done.returncode:
            sys.stderr.write(done.stderr)
            sys.exit(f"remote_cache.py: {self.folder} cannot be analysed; see above")

    def build(self, *flags: str) -> Built:
        """Build all experiments and read the execution log, which tells how each action got its result."""
        log = self.output_base.with_suffix(".log.json")
        log.unlink(missing_ok=True)
        events = f"--build_event_json_file={log.with_suffix('.events.json')}"
        logged = f"--execution_log_json_file={log}"
        done = self.bazel(
            "build", "--noshow_progress", "--color=no", OUTPUT_GROUPS, logged, events, *flags, TARGETS
        )
        return Built(done.returncode, done.stderr, tuple(read_log(log)), self.outputs())

    def outputs(self) -> dict[str, str]:
        """Path below bazel-bin -> SHA-256 of every output that is there."""
        bin_folder = self.folder / "bazel-bin"
        return {
            path.relative_to(bin_folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for pattern in OUTPUTS
            for path in (bin_folder / "experiments").rglob(pattern)
        }


def read_log(log: Path) -> Iterator[Spawn]:
    """Yield the spawns of Bazel's execution log: JSON objects, one behind the other."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        entry, position = decoder.raw_decode(text, position)
        position += len(text[position:]) - len(text[position:].lstrip())
        yield Spawn(
            entry["targetLabel"],
            entry["mnemonic"],
            entry["runner"],
            entry["cacheHit"],
            entry["digest"]["hash"],
        )


class Report:
    """Counts what was claimed and what of it holds."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def claim(self, claim: str, built: Built, **facts: object) -> None:
        """Print a claim and whether all facts, which should be true, are; with the rest of the build if not."""
        wrong = [fact for fact, holds in facts.items() if not holds]
        print(f"{'ok' if not wrong else 'FAILED'}: {claim}", flush=True)
        if wrong:
            print(
                f"  does not hold: {', '.join(wrong)}\n  executed: {built.executed()}\n{built.said[-4000:]}"
            )
        self.passed, self.failed = (self.passed, self.failed + 1) if wrong else (self.passed + 1, self.failed)


def prove(first: Checkout, second: Checkout) -> Report:
    """Build in both checkouts, whose user.bazelrc names the cache, and check each claim."""
    report = Report()

    filled = first.build("--config=remote", "--remote_upload_local_results")
    planned = filled.preflights()
    report.claim(
        f"the first checkout plans {len(planned)} experiments itself and fills the cache",
        filled,
        succeeded=filled.status == 0,
        no_warning="WARNING" not in filled.said,
        has_experiments=len(planned) > 0 and len(filled.outputs) == len(planned) * len(OUTPUTS),
        nothing_cached=not any(spawn.cached for spawn in planned.values()),
    )

    read = second.build("--config=remote")
    found = read.preflights()
    report.claim(
        f"the second takes {sum(spawn.cached for spawn in found.values())} of {len(planned)} from it, executes "
        f"{len(read.executed())} actions, and has {len(read.outputs)} outputs with the same bytes",
        read,
        succeeded=read.status == 0,
        no_warning="WARNING" not in read.said,
        same_experiments=found.keys() == planned.keys(),
        same_keys={label: spawn.key for label, spawn in found.items()}
        == {label: spawn.key for label, spawn in planned.items()},
        all_from_the_remote_cache={spawn.runner for spawn in found.values()} == {"remote cache hit"},
        nothing_executed=read.executed() == [],
        same_bytes=read.outputs == filled.outputs,
    )

    edited = experiment_files(second.folder)[0]
    add_comment(edited, "edited")
    label = f"//{edited.parent.relative_to(second.folder).as_posix()}:"
    for when in (
        "an edited experiment is planned here, it alone",
        "and again after a clean: nothing was written",
    ):
        second.bazel("clean")
        changed = second.build("--config=remote")
        report.claim(
            when,
            changed,
            succeeded=changed.status == 0,
            only_that_one=[entry.startswith(f"{PREFLIGHT} {label}") for entry in changed.executed()]
            == [True],
            others_cached=len(changed.preflights()) == len(planned),
        )

    with wrong_protocol() as wrong:
        servers = [
            ("no server", f"grpc://127.0.0.1:{cache_server.free_port()}", "UNAVAILABLE"),
            ("a server of another protocol", wrong, "INTERNAL"),
        ]
        for name, address, reason in servers:
            second.bazel("clean")
            alone = second.build("--config=remote", f"--remote_cache={address}")
            report.claim(
                f"{name}: a warning, and everything is planned here, with the same bytes",
                alone,
                succeeded=alone.status == 0,
                warned=f"WARNING: Remote Cache: {reason}" in alone.said,
                all_planned_here=len(alone.executed()) >= len(planned)
                and not any(spawn.cached for spawn in alone.spawns),
                same_bytes=alone.outputs == filled.outputs,
            )
    return report


def another_user(folder: Path) -> dict[str, str]:
    """Variables of a user with another name, language and PATH; HOME stays, for what Bazel keeps there."""
    programs = folder / "programs"
    programs.mkdir()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {"USER": "another", "LOGNAME": "another", "LANG": "C", "PATH": path, "ANOTHER": "1"}


def experiment_files(folder: Path) -> list[Path]:
    """The main files of the experiments of a checkout."""
    return sorted(folder.glob("experiments/*/experiment.py"))


def add_comment(file: Path, text: str) -> None:
    """Add a comment to an experiment: another input, the same outputs."""
    file.write_text(f"{file.read_text(encoding='utf-8')}# {text}\n", encoding="utf-8")


@contextmanager
def wrong_protocol() -> Iterator[str]:
    """Serve something that is no remote cache, and yield its address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"grpc://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", help="a cache of your own, as --remote_cache takes it")
    parser.add_argument("--keep", action="store_true", help="keep the folders, to look at a difference")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="slipway-remote-"))
    try:
        return run(folder, arguments.server)
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            # Bazel makes its outputs read-only.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, server: str | None) -> int:
    """Prepare two checkouts and a server below `folder`, and prove."""
    began = time.monotonic()
    checkouts = [
        Checkout(folder / "one", folder / "base-1", {}),
        Checkout(folder / "another" / "place", folder / "base-2", another_user(folder)),
    ]
    for checkout in checkouts:
        copy_tracked(ROOT, checkout.folder)
        # Else a server that is kept would know the results from an earlier run.
        for file in experiment_files(checkout.folder):
            add_comment(file, folder.name)
    try:
        with ExitStack() as stack:
            with ThreadPoolExecutor(1) as beside:
                installed = folder / "server"
                python = beside.submit(cache_server.install, ROOT, installed) if server is None else None
                for checkout in checkouts:
                    checkout.fetch()
            if python is not None:
                server = stack.enter_context(cache_server.running(python.result(), installed, folder))
            for checkout in checkouts:
                line = f"common:remote --remote_cache={server}\n"
                (checkout.folder / "user.bazelrc").write_text(line, encoding="utf-8")
            print(f"two checkouts and {server} are ready after {time.monotonic() - began:.0f} s", flush=True)
            report = prove(*checkouts)
    finally:
        for checkout in checkouts:
            checkout.bazel("shutdown")
    print(f"took {time.monotonic() - began:.0f} s")
    print(f"{report.passed} passed, {report.failed} failed")
    return int(report.failed > 0 or report.passed == 0)


if __name__ == "__main__":
    sys.exit(main())

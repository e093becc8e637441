"""What a launch that is refused says: real command lines, against a real Iris, a bucket and a checkout.

The embedded Iris stands for the cluster's controller, and our own server for Cloud Storage. Nothing is
submitted but one job of somebody else's, whose name is in the way.
"""

import argparse
import contextlib
import importlib
import io
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

from tools.launcher.cli import preflight_action
from tools.launcher.cli.built_experiment_testlib import build, build_arguments, source_of
from tools.launcher.cli.commands import run
from tools.launcher.cli.experiment_files import ExperimentFiles, read_experiment_files
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.iris.local.cluster_for_test import plan_in_place, stopped_afterwards
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.iris.sample_request_for_test import request
from tools.launcher.store.open_store import open_store
from tools.launcher.store.records import RunKey, append_event
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs
from tools.launcher.submit.gates.shape import shape_of

PACKAGE = "experiments/gsm8k_grpo"
TARGET = f"//{PACKAGE}:gsm8k_grpo"
SMOKE = f"//{PACKAGE}:gsm8k_smoke"
RUNTIME = Path("third_party/marinskyrl/81ae0ef7.yaml")
OTHER_COMMIT = "4be21f07c5d3a9e86b1f2d4c8a7e905b63f1d2aa"

# Submitted to the cluster itself: the controller here is no hub.
_DIRECT = {
    "target_cluster=inputs.cluster.name": "target_cluster=None",
    'parent_cluster_config="lib/iris/config/marin.yaml"': "parent_cluster_config=None",
}
_KEYS = {"WANDB_API_KEY": "4f1c6a09d2"}
_BIRTHDAY = {"GIT_AUTHOR_DATE": "2026-11-30T12:00:00Z", "GIT_COMMITTER_DATE": "2026-11-30T12:00:00Z"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_INSTALLED = re.compile(r"\S+/(?=iris/config/)")
_SLOW = re.compile(r"^.* \.\.\.\n", re.MULTILINE)


class Desk:
    """A person's checkout, with a cluster and a store within reach."""

    def __init__(self, folder: Path, store_url: str, controller: str) -> None:
        self.folder, self.store_url, self.controller = folder, store_url, controller
        self.checkout = folder / "checkout"
        (self.checkout / PACKAGE).mkdir(parents=True)
        (self.checkout / PACKAGE / "experiment.py").write_text("main = ...\n")
        self._git("init", "-q", "-b", "main")
        self._git("add", ".")
        self._git("commit", "-q", "-m", "first")

    def _git(self, *arguments: str) -> None:
        person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "core.autocrlf=false")
        subprocess.run(
            ["git", "-C", str(self.checkout), *person, *arguments],
            check=True,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": "/dev/null"}
            | _BIRTHDAY,
        )

    def built(
        self,
        name: str,
        *,
        nodes: int = 1,
        edits: Mapping[str, str] | None = None,
        pinned: bool = True,
        version: str = "2026.09.21",
        label: str = TARGET,
        smoke: str | None = None,
    ) -> dict[str, str]:
        """Build a variant of the experiment, after pinning it as its author would."""
        source = source_of(nodes, edits={**_DIRECT, **(edits or {})})
        target: dict[str, Any] = {"label": label, "version": version, "smoke": smoke}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            files = build(self.folder / name, source, **target)
            if not pinned:
                return files
            ledger = Path(name, "versions.lock.yaml")
            flags = [f"--{flag}={files[flag]}" for flag in ("launch", "digest", "graph")]
            with _environment({"BUILD_WORKSPACE_DIRECTORY": str(self.folder)}):
                assert run(["pin", *flags, f"--ledger={ledger}"]) == 0
            return build(self.folder / name, source, ledger=self.folder / ledger, **target)

    def launch(
        self, files: Mapping[str, str], *typed: str, user: str = "ada", **environ: str | None
    ) -> tuple[int, str]:
        """Launch as a person would. Return exit status and everything that is printed after the plan.

        Args:
            files: of `built`.
            typed: the flags of the command line.
            user: who.
            environ: further variables; None takes one away.
        """
        printed = io.StringIO()
        variables = {
            "HOME": str(self.folder),
            "LOGNAME": user,
            "PATH": os.environ["PATH"],
            "BUILD_WORKSPACE_DIRECTORY": str(self.checkout),
            "SLIPWAY_STORE": self.store_url,
            "SLIPWAY_CONTROLLER": self.controller,
            **_KEYS,
            **environ,
        }
        flags = [f"--{name}={path}" for name, path in files.items()]
        with (
            _environment(variables),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            status = run(["launch", *flags, "--budget=experiments/budget.yaml", *typed])
        said = self._plain(printed.getvalue())
        # Before the gates stands the plan; what is refused without a plan has no gates either.
        return status, said[said.find("\ngates\n") + 1 :]

    def _plain(self, text: str) -> str:
        """The text without what is another on every machine and at every hour."""
        text = _SLOW.sub("", text).replace(self.controller, "http://127.0.0.1:10000")
        text = _TIME.sub("2026-11-30T12:00:00Z", text.replace(f"@{socket.gethostname()}", "@lab"))
        return _INSTALLED.sub("…/", text.replace(f"{self.folder}/", ""))


def _environment(variables: Mapping[str, str | None]) -> contextlib.AbstractContextManager[Any]:
    """These variables instead of the process's own, which keep only what the programs behind need."""
    kept = ("STORAGE_EMULATOR_HOST", "TMPDIR", "TEST_TMPDIR")
    all_of_them = {name: os.environ.get(name) for name in kept} | dict(variables)
    given = {name: value for name, value in all_of_them.items() if value is not None}
    return mock.patch.dict(os.environ, given, clear=True)


@contextlib.contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    """Yield a desk below `folder`; what it starts ends with it."""
    with (
        FakeGcs("team") as gcs,
        stopped_afterwards(folder / "state"),
        mock.patch.dict(os.environ, {"STORAGE_EMULATOR_HOST": gcs.url}),
    ):
        # The launcher's use of Iris takes seconds to import, and starting a cluster is waiting for another process.
        with ThreadPoolExecutor(1) as beside:
            imported = beside.submit(importlib.import_module, "iris.cluster.client.remote_client")
            cluster = ensure_running(folder / "state", plan=plan_in_place())
            imported.result()
        yield Desk(folder, gcs.store_url("slipway"), cluster.url)


def no_store(here: Desk) -> str:
    """Refused before anything is looked at; a dry run goes on, here without the environment's credentials."""
    files = here.built("no_store")
    refused = _shown(here.launch(files, SLIPWAY_STORE=None))
    status, said = here.launch(files, "--dry-run", SLIPWAY_STORE=None, WANDB_API_KEY=None)
    told, store, _ = said.partition("attempt: ")
    assert store, said
    return refused + _shown((status, f"{told}…\n"), typed="--dry-run")


def dirty_tree(here: Desk) -> str:
    changed = here.checkout / PACKAGE / "experiment.py"
    before = changed.read_text()
    changed.write_text("main = None\n")
    said = here.launch(here.built("dirty_tree"))
    changed.write_text(before)
    return _shown(said)


def mutable_version(here: Desk) -> str:
    return _shown(here.launch(here.built("mutable_version", version="dev", pinned=False)), "fixed-version")


def no_credentials(here: Desk) -> str:
    two = {'("WANDB_API_KEY",)': '("HF_TOKEN", "WANDB_API_KEY")'}
    said = here.launch(
        here.built("no_credentials", edits=two), HF_TOKEN="hf_4f1c6a09d2\n", WANDB_API_KEY=None
    )
    assert _KEYS["WANDB_API_KEY"] not in said[1]
    return _shown(said, "credentials")


def above_the_budget(here: Desk) -> str:
    edits = {"coordinator_timeout_hours=12": "coordinator_timeout_hours=336"}
    return _shown(here.launch(here.built("above_the_budget", nodes=2, edits=edits)), "budget")


def no_smoke(here: Desk) -> str:
    return _shown(here.launch(here.built("no_smoke", nodes=4, smoke=SMOKE)), "smoke")


def stale_smoke(here: Desk) -> str:
    """As `no_smoke`, but one node of an older runtime, and with engines of two GPUs, is on record."""
    wider = {
        "num_inference_engines=8,": "num_inference_engines=4,",
        "tensor_parallel_size=1,": "tensor_parallel_size=2,",
    }
    built = read_files(here.built("smoke", label=SMOKE, edits=wider, pinned=False))
    launch = built.launch | {"runtime": built.launch["runtime"] | {"launcher_commit": OTHER_COMMIT}}
    shape = shape_of(launch, built.graph, built.plan.model_dump(mode="json"))
    key = RunKey(experiment="gsm8k_smoke", launch_digest=built.digests.launch, ordinal=1)
    store = open_store(here.store_url)
    append_event(store, key, "intent", "ada@lab", {"runtime": "marinskyrl", "shape": shape})
    append_event(store, key, "submitted", "ada@lab", {"job_id": "/slipway/gsm8k_smoke"})
    append_event(store, key, "verified", "ada@lab", {"verified": True, "rehearsal": False})
    return _shown(here.launch(here.built("stale_smoke", nodes=4, smoke=SMOKE)), "smoke")


def unreachable(here: Desk) -> str:
    """Without a way of one's own it is the cluster's configuration that says how; it wants a file first."""
    said = here.launch(here.built("unreachable"), SLIPWAY_CONTROLLER=None)
    return _shown(said, "reachable", "placeable")


def not_placeable(here: Desk) -> str:
    answer = "smoke=ada: the pool is down for the day"
    said = here.launch(here.built("not_placeable", nodes=18, smoke=SMOKE), f"--override={answer}")
    typed = f'--override smoke="{answer.partition("=")[2]}"'
    return _shown(said, "smoke", "placeable", typed=typed)


def nobody_to_ask(here: Desk) -> str:
    status, said = here.launch(here.built("nobody_to_ask"))
    return _shown((status, said[said.index("refused: ") :]))


def repinned(here: Desk) -> str:
    """Not a launch: the build refuses it already."""
    here.built("repinned")
    manifest = here.folder / "repinned.yaml"
    text = RUNTIME.read_text(encoding="utf-8")
    manifest.write_text(re.sub(r"^commit: .*$", f"commit: {OTHER_COMMIT}", text, flags=re.MULTILINE))
    arguments = build_arguments(
        here.folder / "repinned",
        source_of(edits=_DIRECT),
        ledger=here.folder / "repinned/versions.lock.yaml",
        runtime=manifest,
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = preflight_action.main(arguments)
    said = printed.getvalue()
    error = said[: said.index("\nwarning: ") + 1]
    return f"$ tools/bazel build {TARGET.partition(':')[0]}\n{error}exit status {status}\n"


def put_in_the_way(here: Desk, files: Mapping[str, str]) -> None:
    """Give the name of the launch's job to another job, so that a launch which passes all gates
    ends there."""
    digest = read_files(files).digests.launch
    with connect(here.controller) as gateway:
        fields = request(name=f"gsm8k_grpo-{digest[:8]}-1", cpu=1.0, memory="1GB", disk="1GB")
        gateway.submit(JobRequest(**fields))


def taken_name(here: Desk) -> str:
    """A job that nobody on record submitted has the name that this launch's would have."""
    files = here.built("taken_name", version="2026.09.22")
    put_in_the_way(here, files)
    status, said = here.launch(files, "--yes", user="bob")
    return _shown((status, said[said.index("refused: ") :]), typed="--yes")


def claimed_version(here: Desk) -> str:
    """After `taken_name`: bob's launch claimed the version before it met the job."""
    files = here.built("claimed_version", version="2026.09.22", edits={"seed=17": "seed=18"})
    status, said = here.launch(files, "--yes")
    return _shown((status, said[said.index("refused: ") :]), typed="--yes")


REFUSALS: dict[str, Callable[[Desk], str]] = {
    scene.__name__: scene
    for scene in (
        no_store,
        dirty_tree,
        mutable_version,
        no_credentials,
        above_the_budget,
        no_smoke,
        stale_smoke,
        unreachable,
        not_placeable,
        nobody_to_ask,
        repinned,
        taken_name,
        claimed_version,
    )
}
"""Name -> what makes it happen, in an order in which each finds what it needs."""


def read_files(files: Mapping[str, str]) -> ExperimentFiles:
    """Read the outputs of a build."""
    return read_experiment_files(argparse.Namespace(**files))


def _shown(said: tuple[int, str], *gates: str, typed: str = "") -> str:
    """The command, what it printed, and its exit status.

    Args:
        said: status and output.
        gates: of the table, only the lines of these are shown; all if none is named.
        typed: flags, as a person types them.
    """
    status, text = said
    command = f"tools/bazel run {TARGET.partition(':')[0]}:launch" + (f" -- {typed}" if typed else "")
    return f"$ {command}\n{_only(text, gates) if gates else text}exit status {status}\n"


def _only(text: str, gates: tuple[str, ...]) -> str:
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("  ") and not line.startswith("   "):
            inside = line.split()[0] in gates
        elif not line.startswith(" "):
            inside = True
        if inside:
            kept.append(line)
    return "".join(kept)

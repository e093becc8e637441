"""Preflights of a real experiment by real processes: one for each, or the worker."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.launcher.cli.preflight_action import OUTPUTS
from tools.launcher.worker.worker_process_for_test import WorkerProcess

BINARY = Path("tools/launcher/cli/preflight_main.py").absolute()
EXPERIMENT = Path("experiments/gsm8k_grpo/experiment.py")
CARDS = {
    "runtime": "third_party/marinskyrl/81ae0ef7.yaml",
    "cluster": "third_party/clusters/cw_us_east_02a.yaml",
    "model": "third_party/models/qwen3_0_6b.yaml",
    "dataset": "third_party/datasets/gsm8k.yaml",
}
ARGUMENTS = (
    "--label=//experiments/gsm8k_grpo:gsm8k_grpo",
    f"--main={EXPERIMENT}",
    "--version=2026.09.21",
    "--stage=rl",
    "--option=scale=smoke",
    *(f"--{name}={path}" for name, path in CARDS.items()),
    *(f"--{name}_out=out.{name}" for name in OUTPUTS),
)
BODY = '    qwen, gsm8k = inputs.model("qwen3-0.6b"), inputs.dataset("gsm8k")\n'


def start_worker(log: Path, folder: Path | None = None, temporary: Path | None = None) -> WorkerProcess:
    """The preflight binary as Bazel starts a worker; see WorkerProcess."""
    return WorkerProcess([str(BINARY), "--persistent_worker"], log, folder, temporary)


def folder(place: Path, source: str | None = None) -> str:
    """A sandbox: the declared inputs and nothing else."""
    for path in (*CARDS.values(), str(EXPERIMENT)):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / path)
    if source is not None:
        (place / EXPERIMENT).write_text(source)
    return str(place)


def changed(*replacements: tuple[str, str]) -> str:
    """The experiment's source with these replacements."""
    source = EXPERIMENT.read_text()
    for old, new in replacements:
        assert old in source
        source = source.replace(old, new)
    return source


def with_code(code: str) -> str:
    """The experiment which also does this."""
    indented = "".join(f"    {line}\n" for line in code.splitlines())
    return changed((BODY, indented + BODY))


def outputs(place: str | Path) -> dict[str, bytes]:
    """What preflight wrote into a sandbox."""
    return {path.name: path.read_bytes() for path in Path(place).glob("out.*")}


def one_shot(place: str, *extra: str) -> subprocess.CompletedProcess[str]:
    """The preflight binary as a process of its own."""
    return subprocess.run(
        [sys.executable, BINARY, *ARGUMENTS, *extra],
        cwd=place,
        env={"PATH": os.defpath, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

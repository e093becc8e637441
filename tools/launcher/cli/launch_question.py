"""Asking before anything is submitted to a cluster that others pay for."""

import sys
from typing import Protocol, TextIO

from pydantic import BaseModel, ConfigDict

from tools.launcher.cli.launch_problems import NotAgreed

NOT_SUBMITTED = "nothing was submitted"


class AtStake(Protocol):
    """What somebody agrees to."""

    @property
    def cluster(self) -> str:
        """Where it is submitted."""
        ...

    def words(self) -> str:
        """Return it as a block of lines."""
        ...


class Stakes(BaseModel):
    """What a submission takes.

    Attributes:
        experiment: its name.
        cluster: where.
        nodes, gpus_per_node, gpu_variant: the allocation; no nodes if nothing is trained.
        attempts: how often the job may be started, where that counts (`documents.longest_run`).
        hours: the longest that each may take; without a training job the coordinator's deadline.
        charged: who is charged, in words.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    experiment: str
    cluster: str
    nodes: int
    gpus_per_node: int
    gpu_variant: str
    attempts: int = 1
    hours: float
    charged: str

    def words(self) -> str:
        """Return the stakes as a block of lines."""
        gpu_hours = self.nodes * self.gpus_per_node * self.attempts * self.hours
        until = (
            f"deadline {self.hours:g} h"
            if self.attempts == 1
            else f"{self.attempts} attempts of {self.hours:g} h"
        )
        nodes = f"{self.nodes} x {self.gpus_per_node} {self.gpu_variant}" if self.nodes else "none with a GPU"
        return (
            f"{self.experiment} is going to be submitted:\n"
            f"  cluster    {self.cluster}\n"
            f"  nodes      {nodes}\n"
            f"  GPU hours  at most {gpu_hours:g} ({until})\n"
            f"  charged    {self.charged}\n"
        )


def agree(stakes: AtStake, *, yes: bool, command: str, stdin: TextIO, stderr: TextIO) -> None:
    """Return if the submission is agreed to: by --yes, or by `y` at the terminal.

    Args:
        stakes: what is agreed to.
        yes: --yes was given.
        command: the whole command that agrees, for somebody without a terminal.
        stdin, stderr: where the answer comes from, and where the question goes: what the command prints may
            be read by a program.

    Raises:
        NotAgreed: it is not.
    """
    if yes:
        stderr.write(stakes.words())
        return
    if not (stdin.isatty() and stderr.isatty()):
        raise NotAgreed(
            f"{stakes.cluster} is not the local Iris and there is no terminal to ask at; {NOT_SUBMITTED}. To "
            f"agree beforehand: {command}"
        )
    try:
        stderr.write(f"{stakes.words()}Submit it? [y/N] ")
        stderr.flush()
        answer = stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if not answer.endswith("\n"):
        stderr.write("\n")
    if answer.strip().lower() not in ("y", "yes"):
        raise NotAgreed(f"not agreed to; {NOT_SUBMITTED}")


def agree_here(stakes: AtStake, *, yes: bool, command: str) -> None:
    """Ask on this process's own streams; see `agree`."""
    agree(stakes, yes=yes, command=command, stdin=sys.stdin, stderr=sys.stderr)

"""What the checks of this area read: typed fields as the launcher does, and the origin of a document."""

import re
from collections.abc import Iterator
from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import shown
from tools.launcher.rl.steps import SkyRLStepPayload

_PLAIN = re.compile(r"[!-~]{1,120}")

_EMBEDDED = "embedded"
"""What a document has for the path of a configuration, where it is for the local Iris."""

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)


def bare(text: str) -> str:
    """Return text of a document for the middle of a sentence: quoted, and on one line, where it is no plain word."""
    return text if _PLAIN.fullmatch(text) else shown(text)


def runtime_fact(subject: PreflightSubject, name: str) -> Any:
    """Return a field of the runtime manifest that not every manifest knows. Raises MissingFact."""
    value = getattr(subject.manifest(), name)
    if value is None:
        raise MissingFact(f"{name} in the runtime manifest")
    return value


def known_values(subject: PreflightSubject, path: str) -> tuple[str, ...]:
    """Return the values that the launcher knows for `path`. Raises MissingFact."""
    values = subject.manifest().document_enums.get(path)
    if values is None:
        raise MissingFact(f"document_enums.{path} in the runtime manifest")
    return values


def integer(subject: PreflightSubject, path: str) -> int | None:
    """Return the integer that the launcher reads at `path`, None where the document leaves it out.

    Its schema takes text of digits for the integer it writes, and no float (OmegaConf).

    Raises:
        UnreadableValue: for anything else.
    """
    value = subject.get(path)
    if value is None:
        return None
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int:
        raise UnreadableValue(f"{path} as an integer, it is {shown(value)}")
    return value


def integers(subject: PreflightSubject, *paths: str) -> Iterator[tuple[str, int]]:
    """Yield (path, integer) of each of `paths` that the document states.

    Raises:
        UnreadableValue: after the last, for the first that is no integer.
    """
    unreadable: UnreadableValue | None = None
    for path in paths:
        try:
            value = integer(subject, path)
        except UnreadableValue as problem:
            unreadable = unreadable or problem
            continue
        if value is not None:
            yield path, value
    if unreadable is not None:
        raise unreadable


def filled(subject: PreflightSubject, path: str) -> str | None:
    """Return the text at `path`, None where it is absent, null or blank.

    Raises:
        UnreadableValue: for anything but text.
    """
    if not subject.has(path):
        return None
    return subject.text(path).strip() or None


def is_embedded(subject: PreflightSubject) -> bool:
    """Whether the run goes to the local Iris that the launcher starts itself, where no GPU is taken."""
    if subject.cluster is not None:
        return subject.cluster.scheduler == "embedded"
    return bool(subject.get("iris.cluster_config") == _EMBEDDED)


def rl_steps(subject: PreflightSubject) -> list[tuple[ArtifactStep, SkyRLStepPayload]]:
    """Return the RL steps of the graph with their placement. Raises MissingFact for a document alone."""
    return [
        (step, step.payload)
        for step in subject.origin().graph.steps
        if isinstance(step.payload, SkyRLStepPayload)
    ]


def declared_credentials(subject: PreflightSubject) -> tuple[str, ...] | None:
    """Return the names of the secrets that the execution forwards, None where nobody said."""
    if subject.planned is None:
        return None
    declared = [payload.execution.credentials for _, payload in rl_steps(subject)]
    if not declared or None in declared:
        return None
    return tuple(dict.fromkeys(name for names in declared if names is not None for name in names))


def runs_agents(subject: PreflightSubject) -> bool:
    """Whether the recipe runs agents in sandboxes. Raises like `PreflightSubject.value`."""
    if subject.get("run.mode") == "checkpoint_export":
        return False
    return subject.has_agentic_section or "terminal_bench" in subject.entrypoint

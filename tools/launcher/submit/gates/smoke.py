"""smoke: a launch above the cluster's threshold needs a small, real, verified run of the same shape."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.store.records import RunRecord, RunState
from tools.launcher.submit.gates.gate import Gate
from tools.launcher.submit.gates.labels import experiment_name, verb_target
from tools.launcher.submit.gates.shape import differences

NAMED_DIFFERENCES = 6

_IMPORTS = "import"
"""Stage of a run that trains nothing."""


class SmokeFacts(BaseModel):
    """What the gate reads besides the records.

    Attributes:
        label: target of the experiment to launch.
        cluster: name of the cluster.
        nodes: of the launch.
        threshold: nodes above which the cluster wants a smoke; None: it never does.
        smoke: label of the experiment that is the smoke, None if the target names none.
        shape: of the launch; see `shape_of`.
        store_url: address of the store of the records, "" where none is read.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    label: str
    cluster: str
    nodes: int
    threshold: int | None
    smoke: str | None
    shape: dict[str, Any]
    store_url: str


def smoke_gate(facts: SmokeFacts, records: Sequence[RunRecord]) -> Gate:
    """Return the gate.

    What counts is a record whose latest verification says yes, of a run of the real runtime, with equal
    shape. Where there is none, the record that is nearest to one is told.

    Args:
        facts: the launch.
        records: of the smoke's experiment, every stage; not read below the threshold. Those that end before the
            training do not count.
    """
    if facts.threshold is None:
        return Gate(id="smoke", state="not_needed", found=f"{facts.cluster} asks for none")
    if facts.nodes <= facts.threshold:
        return Gate(
            id="smoke",
            state="not_needed",
            found=f"{_nodes(facts.nodes)}, and {facts.cluster} asks for one above {facts.threshold}",
        )
    large = f"{_nodes(facts.nodes)} on {facts.cluster}, above its threshold of {facts.threshold}"
    if facts.smoke is None:
        return Gate(
            id="smoke",
            state="missing",
            found=f"{large}, and {facts.label} names no smoke",
            fix=f'write smoke = "//…" at {facts.label}: an experiment of the same shape on at most '
            f"{_nodes(facts.threshold)}; launch that first",
        )
    launch = f"tools/bazel run {verb_target(facts.smoke, 'launch')}"
    name = experiment_name(facts.smoke)
    newest_first = sorted(
        # A run that ends at its imports trains nothing, however well it is verified.
        (record for record in records if record.stage != _IMPORTS),
        key=lambda record: (record.when, record.key.ordinal),
        reverse=True,
    )
    real = [record for record in newest_first if not _rehearsed(record)]
    verified = [record for record in real if record.verification is not None]
    fitting = next((record for record in verified if record.shape == facts.shape), None)
    if fitting is not None:
        return Gate(
            id="smoke",
            state="passed",
            found=f"{fitting.key.short_name} of {fitting.when} is verified and of this shape",
        )

    def missing(found: str, fix: str = launch) -> Gate:
        return Gate(id="smoke", state="missing", found=f"{large}; {found}", fix=fix)

    unverified = next((record for record in real if record.shape == facts.shape), None)
    if unverified is not None:
        ask = f"tools/bazel run //tools/launcher -- verify {unverified.key.short_name} --store={facts.store_url}"
        unasked = unverified.state is RunState.SUCCEEDED and unverified.verify_failure is None
        fix = ask if unasked else launch
        return missing(
            f"{unverified.key.short_name} has this shape and is {unverified.state.value}, not verified", fix
        )
    if verified:
        nearest = min(verified, key=lambda record: len(differences(facts.shape, record.shape)))
        return missing(
            f"stale smoke: {nearest.key.short_name} of {nearest.when} is verified, but {_told(facts, nearest)}"
        )
    if real:
        return missing(
            f"{real[0].key.short_name} is {real[0].state.value}, not verified, and {_told(facts, real[0])}"
        )
    if newest_first:
        return missing(
            f"only rehearsals of {name} are on record, such as {newest_first[0].key.short_name}; a stand-in "
            f"trained no model"
        )
    return missing(f"no run of {name} is on record")


def _rehearsed(record: RunRecord) -> bool:
    """True unless the record says that the real runtime trained."""
    said = record.verification or record.verify_failure or {}
    return record.runtime != "marinskyrl" or said.get("rehearsal") is True


def _told(facts: SmokeFacts, record: RunRecord) -> str:
    if not record.shape:
        return "its record does not say its shape"
    found = differences(facts.shape, record.shape)
    more = len(found) - NAMED_DIFFERENCES
    return "; ".join(found[:NAMED_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")


def _nodes(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"

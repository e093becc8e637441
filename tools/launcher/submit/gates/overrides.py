"""Answering for a gate that is missing: `--override smoke='ada: the pool is down'`."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from tools.launcher.submit.gates.gate import GATE_IDS, OVERRIDABLE, GateId

MAX_CHARACTERS = 500
"""Of who and why: the record is read by people."""

ALLOW_DIRTY = "--allow-dirty"

_EXAMPLE = 'Write it as --override smoke="ada: the pool is down for the day"'


class OverrideError(ValueError):
    """An override that cannot be taken. The message names it, the rule and the fix."""


class Override(BaseModel):
    """One answer.

    Attributes:
        gate: which condition is answered for.
        who_and_why: `who: why`, on one line, as the record keeps it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    gate: GateId
    who_and_why: str


def parse_override(text: str) -> Override:
    """Read `GATE=who: why`.

    Raises:
        OverrideError: another form, an unknown gate, one that nobody can answer for, no who, or no why.
    """
    name, equals, answer = text.partition("=")
    if not equals:
        raise OverrideError(f"--override {text!r} has no `=`. {_EXAMPLE}")
    gate = next((known for known in GATE_IDS if known == name.strip()), None)
    if gate is None:
        raise OverrideError(
            f"--override {name.strip()!r}: there is no such gate. Gates that can be answered for: "
            f"{_overridable()}"
        )
    if gate not in OVERRIDABLE:
        raise OverrideError(
            f"--override {gate}: nobody's word makes it true. Gates that can be answered for: "
            f"{_overridable()}"
        )
    return Override(gate=gate, who_and_why=who_and_why(answer, flag=f"--override {gate}", example=_EXAMPLE))


def who_and_why(answer: str, *, flag: str, example: str) -> str:
    """Return `who: why` with single spaces.

    Args:
        answer: as typed.
        flag: how messages call it.
        example: the fix, a sentence with a whole command line.

    Raises:
        OverrideError: one of the two is missing, it has more than one line, or it is too long.
    """
    if not answer.isprintable():
        raise OverrideError(f"{flag}: the answer has a line break or another control character. {example}")
    if len(answer) > MAX_CHARACTERS:
        raise OverrideError(
            f"{flag}: the answer has {len(answer)} characters, at most {MAX_CHARACTERS} are kept. "
            f"Name a page "
            "that says more"
        )
    who, colon, why = (" ".join(part.split()) for part in answer.partition(":"))
    if not who or not why:
        missing = "who" if not who else "why"
        raise OverrideError(f"{flag}: {answer.strip()!r} does not say {missing}. {example}")
    return f"{who}{colon} {why}"


def collect_overrides(typed: Sequence[str], *, allow_dirty: str | None) -> tuple[Override, ...]:
    """Return every override of a command line.

    Args:
        typed: values of `--override`.
        allow_dirty: who gave `--allow-dirty`, None if nobody did.

    Raises:
        OverrideError: of `parse_override`, or one gate is answered for twice.
    """
    found = [parse_override(text) for text in typed]
    if allow_dirty is not None:
        found.append(Override(gate="clean-tree", who_and_why=f"{allow_dirty}: {ALLOW_DIRTY}"))
    for gate in GATE_IDS:
        answers = [override.who_and_why for override in found if override.gate == gate]
        if len(answers) > 1:
            also = f" ({ALLOW_DIRTY} is one of them)" if gate == "clean-tree" and allow_dirty else ""
            raise OverrideError(
                f"{gate} is answered for {len(answers)} times{also}: {'; '.join(answers)}. Give one answer"
            )
    return tuple(found)


def _overridable() -> str:
    return ", ".join(gate for gate in GATE_IDS if gate in OVERRIDABLE)

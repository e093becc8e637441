"""One aspect of a comparison and what became of it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Aspect = Literal["engines", "GPUs", "policy", "step", "GPU-hours", "identity", "resume", "smoke"]

Verdict = Literal["same", "changed", "safe", "fresh", "refused", "valid", "not_valid", "not_known"]
"""same and changed are of sizes and identity; safe, fresh (nothing is resumed) and refused of resume; valid
and not_valid of smoke; not_known of all, with what it needs."""

ALWAYS_SHOWN: tuple[Aspect, ...] = ("engines", "GPUs", "identity", "resume", "smoke")
"""Aspects that a reader is told of even where nothing changed."""


class Consequence(BaseModel):
    """One aspect.

    Attributes:
        aspect: which.
        verdict: what became of it.
        sentence: the same for people, without a full stop.
        before, after: JSON values behind the sentence, None where there are none.
        matters: whether something that it depends on changed; an unknown that does not matter is not told.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    aspect: Aspect
    verdict: Verdict
    sentence: str
    before: Any = None
    after: Any = None
    matters: bool = True

    @property
    def shown(self) -> bool:
        """Whether a short report has it."""
        return self.aspect in ALWAYS_SHOWN or (self.verdict != "same" and self.matters)

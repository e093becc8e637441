"""How many training rows survive the prompt filter.

The trainer drops every row whose templated prompt is longer than W-N tokens, without an error
(contract, runtime-facts.md §13).
"""

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.lengths import prompt_limit
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue


class KeptRows(BaseModel):
    """Bounds of the rows whose prompts fit."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    total: int
    at_least: int
    at_most: int
    limit: int
    """Tokens that a prompt may have."""


def kept_rows(subject: PreflightSubject) -> KeptRows:
    """Return what the dataset card says about rows within the prompt limit.

    Raises:
        MissingFact: no card, or a card without rows.
        UnreadableValue: no usable lengths.
    """
    total: int = subject.train_fact("rows") or 0
    limit = prompt_limit(subject)
    if limit <= 0:
        raise UnreadableValue(f"a window with room for a prompt, W-N is {limit}")
    card = subject.train_dataset
    longest = card.max_prompt_tokens if card is not None else None
    if longest is not None and longest <= limit:
        return KeptRows(total=total, at_least=total, at_most=total, limit=limit)
    counts = {int(tokens): rows for tokens, rows in _counts(subject).items()}
    return KeptRows(
        total=total,
        at_least=max((rows for tokens, rows in counts.items() if tokens <= limit), default=0),
        at_most=min((rows for tokens, rows in counts.items() if tokens >= limit), default=total),
        limit=limit,
    )


def missing_count(subject: PreflightSubject, limit: int) -> MissingFact:
    """Return the fact that would make the bounds equal."""
    name = subject.train_dataset.name if subject.train_dataset is not None else ""
    return MissingFact(f"prompt_token_counts at {limit} tokens in the dataset card '{name}'")


def _counts(subject: PreflightSubject) -> dict[str, int]:
    card = subject.train_dataset
    return (card.prompt_token_counts if card is not None else None) or {}

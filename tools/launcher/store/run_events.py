"""What a run record is made of: its key and its events."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, field_validator

EventKind = Literal[
    "intent",
    "submitted",
    "refused",
    "conflict",
    "coordinator_started",
    "step_reused",
    "step_started",
    "child_submitted",
    "step_finished",
    "cancel_requested",
    "cancelled",
    "failed",
    "succeeded",
    "verified",
    "verify_failed",
]

EVENT_KINDS: Final[frozenset[str]] = frozenset(get_args(EventKind))

# Version of the event object. A later version may add fields; it may not change the meaning of these.
EVENT_SCHEMA = 1

_EXPERIMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,119}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


class RunKey(BaseModel):
    """Names one attempt to launch one document of one experiment.

    Attributes:
        experiment: the experiment's name, one path segment; see `submit.request.run_key`.
        launch_digest: SHA-256 of the launch document, 64 hex digits.
        ordinal: 1 for the first launch, one more for every relaunch.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    experiment: str
    launch_digest: str
    ordinal: int

    @field_validator("experiment")
    @classmethod
    def _experiment_is_a_segment(cls, value: str) -> str:
        if not _EXPERIMENT.fullmatch(value):
            raise ValueError(
                f"experiment {value!r} is not a record name. Use its name without package: at most 120 "
                "letters, "
                "digits and ._+-, not starting with a dot"
            )
        return value

    @field_validator("launch_digest")
    @classmethod
    def _digest_is_sha256(cls, value: str) -> str:
        if not _SHA256.fullmatch(value):
            raise ValueError(
                f"launch digest {value!r} is not 64 lower-case hex digits. Copy it from <name>.digest"
            )
        return value

    @field_validator("ordinal")
    @classmethod
    def _ordinal_counts_from_one(cls, value: int) -> int:
        if not 1 <= value <= 9999:
            raise ValueError(f"ordinal {value} is outside 1 to 9999. The first launch of a document is 1")
        return value

    @property
    def short_name(self) -> str:
        """`experiment/digest8/ordinal`, as the launcher's commands take a run."""
        return f"{self.experiment}/{self.launch_digest[:8]}/{self.ordinal}"

    def __str__(self) -> str:
        return f"{self.experiment} launch sha256:{self.launch_digest[:8]} ordinal {self.ordinal}"


class RunEvent(BaseModel):
    """One thing that happened to a run. Written once, never changed.

    Fields a newer writer added are kept in `model_extra`, and an unknown `kind` is kept too: an old
    reader must not lose or refuse what it does not understand.

    Attributes:
        schema_version: EVENT_SCHEMA of the writer (`schema` in the file).
        event_id: 32 random hex digits; tells a writer whether an object it finds is its own.
        seq: place in the record, from 1, without repeats.
        kind: an EventKind, or a later writer's.
        at: RFC 3339, UTC, ending in Z. For people; order comes from `seq`, so clock skew is harmless.
        by: who or what wrote it, such as `user@host` or `coordinator`.
        facts: JSON values; see docs of `RunRecord` for the names that are read.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    schema_version: int
    event_id: str
    seq: int
    kind: str
    at: str
    by: str
    facts: dict[str, Any]

    @field_validator("at")
    @classmethod
    def _time_is_utc(cls, value: str) -> str:
        if not _UTC_TIME.fullmatch(value) or not _is_on_the_calendar(value):
            raise ValueError(f"time {value!r} is not RFC 3339 in UTC, such as 2026-11-30T12:43:20Z")
        return value


def _is_on_the_calendar(time: str) -> bool:
    try:
        datetime.datetime.fromisoformat(time)
    except ValueError:
        return False
    return True


def check_writable(kind: str, facts: Mapping[str, Any]) -> None:
    """Refuse what this version must not write.

    Raises:
        ValueError: an unknown kind, or facts that are not a plain dict.
    """
    if kind not in EVENT_KINDS:
        raise ValueError(f"event kind {kind!r} is unknown. Use one of {', '.join(sorted(EVENT_KINDS))}")
    if type(facts) is not dict:
        raise ValueError(f"the facts of a {kind} event are a {type(facts).__name__}. Give a dict")

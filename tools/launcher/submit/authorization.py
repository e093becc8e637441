"""`--authorize="who: why"`: who answers for an act that others must be able to ask about."""

from pydantic import BaseModel, ConfigDict

# One line of a terminal or two; a longer story belongs where people talk.
MAX_CHARACTERS = 300

EXAMPLE = '--authorize="ann: node fault, agreed with ops"'


class AuthorizationInvalid(ValueError):
    """The words given do not say who and why. The message names the rule and an example."""


class Authorization(BaseModel):
    """Who answers for an act, and why it is done. Both are recorded as typed.

    Attributes:
        who: a name that others know, such as `ann`.
        why: the reason, one line.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    who: str
    why: str

    def __str__(self) -> str:
        return f"{self.who}: {self.why}"


def parse_authorization(text: str | None) -> Authorization:
    """Return who and why of `who: why`.

    Args:
        text: as typed, None if the flag was not given.

    Raises:
        AuthorizationInvalid: a part is missing or empty, or the text is longer than MAX_CHARACTERS or no
            single line of printable characters.
    """
    if text is None:
        raise AuthorizationInvalid(
            f"this needs someone who answers for it: say who and why, for example {EXAMPLE}"
        )
    if len(text) > MAX_CHARACTERS:
        raise AuthorizationInvalid(
            f"--authorize has {len(text)} characters, the limit is {MAX_CHARACTERS}. Say it in one line, for "
            f"example {EXAMPLE}"
        )
    if not text.isprintable():
        raise AuthorizationInvalid(
            f"--authorize={text!r} is not one line of printable characters. Write it plainly, for example "
            f"{EXAMPLE}"
        )
    who, colon, why = (part.strip() for part in text.partition(":"))
    if not (who and colon and why):
        missing = "the colon between them" if not colon else "who" if not who else "why"
        raise AuthorizationInvalid(f"--authorize={text!r} lacks {missing}. Say who and why: {EXAMPLE}")
    return Authorization(who=who, why=why)

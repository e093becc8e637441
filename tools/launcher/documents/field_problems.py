"""What is wrong with one field of a typed value, in words that need no knowledge of pydantic."""

import difflib
from collections.abc import Collection

_LISTED_FIELDS = 12


def field_problem(kind: str, message: str, seen: str, name: str, fields: Collection[str]) -> str:
    """Return the sentence.

    Args:
        kind: pydantic's type of the error, such as `missing`.
        message: pydantic's sentence.
        seen: the value as it is shown.
        name: the field's own name.
        fields: what the field may have been meant to be; empty where that is not known.
    """
    if kind == "missing":
        return "it is missing, and has no default"
    if kind == "extra_forbidden":
        return f"there is no such field{_meant(name, fields)}"
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    return f"{message}, got {seen}"


def _meant(name: str, fields: Collection[str]) -> str:
    # Half of the letters is enough: a word of a long name is forgotten more easily than a letter.
    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
    if near:
        return f" (did you mean {near[0]}?)"
    known = sorted(fields)
    more = f" and {len(known) - _LISTED_FIELDS} more" if len(known) > _LISTED_FIELDS else ""
    return f" (known: {', '.join(known[:_LISTED_FIELDS])}{more})" if known else ""

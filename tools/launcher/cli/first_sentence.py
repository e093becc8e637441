"""The first of what was said when an experiment was refused, for a table of many."""

import re

# How a refusal of preflight begins (preflight/render_text.py).
_VIOLATION = re.compile(r"^error: (\S+) at (\S+)\n +(.+)$", re.MULTILINE)
_SHOWN_CHARACTERS = 200


def first_sentence(said: str, label: str) -> str:
    """Return the first violation, or else the first line, in at most 200 characters.

    Args:
        said: what was printed (refusal_text.py).
        label: of the experiment, which the sentence does not repeat.
    """
    violation = _VIOLATION.search(said)
    if violation is not None:
        text = f"{violation[1]} at {violation[2]}: {violation[3]}"
    else:
        text = next((line.strip() for line in said.splitlines() if line.strip()), "it gave no reason")
        text = text.removeprefix("error: ").removeprefix(f"{label}: ")
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"

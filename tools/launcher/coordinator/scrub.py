"""Taking the values of credentials out of text that is going to be kept or shown."""

import json
from collections.abc import Collection

from pydantic import SecretStr

MASK = "[credential]"

# A multi-line value reaches a log line by line; a line shorter than this is no secret by itself.
_SHORTEST_LINE = 8


class Scrubber:
    """Replaces every occurrence of the values by MASK, however a program may have quoted them."""

    def __init__(self, values: Collection[SecretStr]) -> None:
        """Prepare for these values; an empty one hides nothing."""
        forms: set[str] = set()
        for secret in values:
            value = secret.get_secret_value()
            lines = [line for line in value.splitlines() if len(line) >= _SHORTEST_LINE]
            for text in (value, value.strip(), *lines):
                forms.update((text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]))
                forms.add(repr(text)[1:-1])
        # The longest first: a value may be the beginning of another one.
        self._forms = sorted(forms - {""}, key=lambda form: (-len(form), form))

    def __repr__(self) -> str:
        return f"Scrubber({len(self._forms)} forms)"

    def clean(self, text: str) -> str:
        """Return `text` without the values."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text


NOTHING_TO_HIDE = Scrubber(())

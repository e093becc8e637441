"""Write-once sequences: objects `0001.json`, `0002.json`, … below a prefix.

To create an object is to take its number, so of any number of writers exactly one has it.
"""

import re

from tools.launcher.store.object_store import ObjectStore

_NAME = re.compile(r"(\d{4,})\.json")


def numbered_key(prefix: str, number: int) -> str:
    """Return the key of a sequence's object.

    Args:
        prefix: of the sequence, ending with a slash.
        number: from 1.
    """
    return f"{prefix}{number:04d}.json"


def number_of(name: str) -> int | None:
    """Return the number of an object of that name (without the prefix), None if it is of no sequence."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def last_number(store: ObjectStore, prefix: str) -> int:
    """Return the highest number that is taken, 0 if none is. What else lies there is passed over.

    Raises:
        InvalidKey, StoreUnavailable: as `ObjectStore.list`.
    """
    numbers = (number_of(key.removeprefix(prefix)) for key in store.list(prefix))
    return max((number for number in numbers if number is not None), default=0)

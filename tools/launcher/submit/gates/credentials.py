"""credentials: the declared secrets are there, usable, and nowhere but there.

No message of this module holds a value, or a part of one.
"""

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import SecretStr

from tools.launcher.submit.authorization import AuthorizationInvalid
from tools.launcher.submit.gates.gate import Gate

# rigging/secrets.py of marin-rigging 0.2.227: Iris refuses a request with another name.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

LONGEST_NAME = 64
"""Longer ones are more likely a secret in the place of its name, so they are not shown."""

SHORTEST_SEARCHED = 8
"""Characters. A shorter value is found by chance in any document, and no service gives one out."""


def read_credentials(environ: Mapping[str, str], names: Sequence[str]) -> dict[str, SecretStr]:
    """Return the values of `names`, for the request's secrets.

    Args:
        environ: the process environment.
        names: as declared, after the gate has passed.

    Raises:
        KeyError: one is not there, by name; the gate was not asked.
    """
    return {name: SecretStr(environ[name]) for name in names}


def credentials_gate(names: Sequence[str], environ: Mapping[str, str], public: Mapping[str, Any]) -> Gate:
    """Return the gate for the declared credentials.

    Args:
        names: as declared by the experiment's execution.
        environ: the process environment.
        public: what is stored or shown -> its content as JSON values. No value of a credential may be in it.
    """
    if not names:
        return Gate(id="credentials", state="passed", found="the experiment declares none")
    problems: list[str] = []
    fixes: list[str] = []
    for place, name in enumerate(names, start=1):
        if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            problems.append(
                f"declared name {place} of {len(names)} is none that Iris takes (letters, digits and _.-, at "
                f"most {LONGEST_NAME}; it is not shown, as it may be a value)"
            )
            fixes.append("write the variable's name into `credentials` of the experiment's execution")
            continue
        problem, fix = _value_problem(name, environ.get(name))
        where = _place_of(environ.get(name, ""), public)
        if not problem and where is not None:
            problem = f"its value is in {where}, which is stored and shown"
            fix = f"take it out there, revoke it, and export a new {name}"
        if problem:
            problems.append(f"{name}: {problem}")
            fixes.append(fix)
    if problems:
        return Gate(
            id="credentials",
            state="missing",
            found="; ".join(problems),
            fix="; ".join(dict.fromkeys(fixes)),
        )
    return Gate(id="credentials", state="passed", found=f"{', '.join(names)}: present")


def _value_problem(name: str, value: str | None) -> tuple[str, str]:
    """What is wrong with a value by itself, and the fix; two empty texts if nothing is."""
    ask = f"read -rs {name} && export {name}"
    if value is None:
        return "not set in the environment", ask
    if not value:
        return "set, but empty", ask
    if not value.strip():
        return "only white space", ask
    trimmed = f'export {name}="$(printf %s "${name}" | tr -d \'[:space:]\')"'
    if value.endswith(("\n", "\r")) and value.rstrip("\r\n") == value.strip():
        return "ends with a line break, as a file that was read whole does", trimmed
    if value != value.strip(string.whitespace):
        return "white space at its beginning or end", trimmed
    if any(character in value for character in "\n\r"):
        return "a line break inside", ask
    if "\0" in value:
        return "a NUL character inside", ask
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "bytes that are no UTF-8 text", ask
    if not value.isprintable():
        return "a character in it that cannot be seen, such as a tab or a byte order mark", ask
    return "", ""


def _place_of(value: str, public: Mapping[str, Any]) -> str | None:
    """Where a value stands among what is public, None if nowhere. The place itself never shows the value."""
    if len(value) < SHORTEST_SEARCHED:
        return None
    for name, content in public.items():
        for path, text in _texts(content, ""):
            if value in text:
                return f"{name} at {path}" if path and value not in path else name
    return None


def _texts(content: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every key and value; numbers as they are written."""
    if isinstance(content, Mapping):
        for key, item in content.items():
            here = f"{path}.{key}" if path else str(key)
            yield path, str(key)
            yield from _texts(item, here)
    elif isinstance(content, list | tuple):
        for index, item in enumerate(content):
            yield from _texts(item, f"{path}[{index}]")
    elif content is not None:
        yield path, str(content)


def refuse_values_in(flag: str, text: str, names: Iterable[str], environ: Mapping[str, str]) -> None:
    """Keep credential values, as far as they are known here, out of words that are shown and recorded.

    Args:
        flag: that the words were given with, for the message.
        text: the words.
        names: of the credentials.
        environ: the process environment, which may hold their values.

    Raises:
        AuthorizationInvalid: one of the values is in it. The message does not say it.
    """
    for name in names:
        value = environ.get(name, "")
        if len(value) >= SHORTEST_SEARCHED and value in text:
            raise AuthorizationInvalid(
                f"{flag} holds the value of {name}, and what it says is recorded. Revoke that value, and say why in "
                "other words"
            )

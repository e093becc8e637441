"""Calls of an experiment whose answer is not the same in each build: the clock, chance, names, the environment.

A plan with such an answer in it has a new digest each time, and nobody can build it again. Python tells of the calls
that certain code makes (PEP 669): those of the experiment's own files are looked at, and what they call may do what it
likes. So `logging` still finds out what time it is.
"""

import datetime
import getpass
import os
import platform
import random
import secrets
import socket
import sys
import time
import types
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

_CLOCK = (
    "A build action has no clock: its plan would be another one each time. Write the date into the experiment, "
    "or pass it as an option"
)
_CHANCE = (
    "A build action draws nothing by chance: its plan would be another one each time. Write the value into the "
    "experiment, or draw it by random.Random(SEED)"
)
_MACHINE = "A build action plans the same on every machine. Write the name into the experiment, or pass it as an option"


_ENVIRONMENT = (
    "A build action has none of yours. Write its value into the experiment, or pass it as an option"
)


class _Deed(NamedTuple):
    """What a call does that no build action should, and the rule with the repair."""

    words: str
    rule: str


_TIME = _Deed("asks what time it is", _CLOCK)
_DRAWS = _Deed("draws by chance", _CHANCE)
_READS = _Deed("reads an environment variable", _ENVIRONMENT)

_DEEDS: dict[Any, _Deed] = (
    dict.fromkeys((time.time, time.time_ns, time.strftime), _TIME)
    | dict.fromkeys((datetime.datetime.now, datetime.datetime.utcnow), _TIME)
    | dict.fromkeys((datetime.datetime.today, datetime.date.today), _TIME)
    | dict.fromkeys((os.urandom, uuid.uuid1, uuid.uuid4, random.SystemRandom), _DRAWS)
    | dict.fromkeys((secrets.token_bytes, secrets.token_hex, secrets.token_urlsafe), _DRAWS)
    | dict.fromkeys((secrets.choice, secrets.randbelow, secrets.randbits), _DRAWS)
    | dict.fromkeys(
        (os.uname, platform.node, socket.gethostname, socket.getfqdn),
        _Deed("asks for the machine's name", _MACHINE),
    )
    | dict.fromkeys((getpass.getuser, os.getlogin), _Deed("asks for the user's name", _MACHINE))
    | {os.getenv: _READS}
)
_WITHOUT_ARGUMENT: dict[Any, _Deed] = dict.fromkeys(
    (time.localtime, time.gmtime, time.ctime, time.asctime), _TIME
) | {random.Random: _DRAWS}
"""What is refused only where no time and no seed is given."""

_SHARED_RANDOM: Any = random.seed.__self__  # type: ignore[attr-defined]
_TOOL = 4
"""Of the six numbers that sys.monitoring has, one that stands for no known kind of tool."""

Refuse = Callable[[str], BaseException]
"""Makes the error of a sentence, `asks what time it is. ...`."""


def watch_calls(refuse: Refuse) -> Callable[[types.CodeType], None]:
    """Begin to look at calls in this process, for good.

    Args:
        refuse: makes what is raised in the experiment, where it calls.

    Returns:
        A function that takes code whose calls, and those of the functions in it, are looked at from then on.
    """
    monitoring = sys.monitoring
    monitoring.use_tool_id(_TOOL, "slipway")
    seeded = False

    def called(_code: types.CodeType, _offset: int, function: object, first: object) -> None:
        nonlocal seeded
        deed = _deed(function, first is not monitoring.MISSING)
        of, name = getattr(function, "__self__", first), getattr(function, "__name__", "")
        if of is _SHARED_RANDOM:
            if name == "seed" and first is not monitoring.MISSING and first is not None:
                seeded = True
            elif not seeded:
                deed = _DRAWS
        elif of is os.environ and name == "get":
            deed = _READS
        if deed is not None:
            raise refuse(f"{deed.words}. {deed.rule}")

    monitoring.register_callback(_TOOL, monitoring.events.CALL, called)

    def watch(code: types.CodeType) -> None:
        monitoring.set_local_events(_TOOL, code, monitoring.events.CALL)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                watch(constant)

    return watch


def _deed(function: object, has_argument: bool) -> _Deed | None:
    try:
        deed = _DEEDS.get(function)
        return deed if deed or has_argument else _WITHOUT_ARGUMENT.get(function)
    except TypeError:
        return None  # It cannot be hashed, and so is none of them.

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
_NAMED = _Deed("asks for the machine's name", _MACHINE)
_READS = _Deed("reads an environment variable", _ENVIRONMENT)

_DEEDS: dict[Any, _Deed] = (
    dict.fromkeys((time.time, time.time_ns, time.clock_gettime, time.clock_gettime_ns), _TIME)
    | dict.fromkeys((datetime.datetime.now, datetime.datetime.utcnow), _TIME)
    | dict.fromkeys((datetime.datetime.today, datetime.date.today), _TIME)
    | dict.fromkeys((os.urandom, uuid.uuid1, uuid.uuid4), _DRAWS)
    | dict.fromkeys((secrets.token_bytes, secrets.token_hex, secrets.token_urlsafe), _DRAWS)
    | dict.fromkeys((secrets.choice, secrets.randbelow, secrets.randbits), _DRAWS)
    | dict.fromkeys((os.uname, platform.node, platform.uname, socket.gethostname, socket.getfqdn), _NAMED)
    | dict.fromkeys((getpass.getuser, os.getlogin), _Deed("asks for the user's name", _MACHINE))
    | dict.fromkeys((os.getenv, os.environ.get), _READS)
)
_WITHOUT_ARGUMENT: dict[Any, _Deed] = dict.fromkeys(
    (time.localtime, time.gmtime, time.ctime, time.asctime), _TIME
)
"""What is refused only where no time is given."""

_FUNCTIONS = (types.BuiltinFunctionType, types.FunctionType, types.MethodType)
"""What is looked up: their hash and equality are Python's own, whatever an experiment brings with it."""
_GET = os.environ.get.__func__  # type: ignore[attr-defined]
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

    def called(code: types.CodeType, offset: int, function: object, first: object) -> None:
        nonlocal seeded
        given = first is not monitoring.MISSING and first is not None
        if isinstance(function, type):
            deed = _DRAWS if _is_unseeded(function, given) else None
        elif not isinstance(function, _FUNCTIONS):
            return
        elif getattr(function, "__self__", None) is _SHARED_RANDOM:
            seeded = seeded or (function.__name__ == "seed" and given)
            deed = None if seeded or function.__name__ == "getstate" else _DRAWS
        elif function is time.strftime:
            deed = None if _has_two_arguments(code, offset) else _TIME
        elif function is _GET:
            deed = _READS if first is os.environ else None
        else:
            deed = _DEEDS.get(function) or (None if given else _WITHOUT_ARGUMENT.get(function))
        if deed is not None:
            raise refuse(f"{deed.words}. {deed.rule}")

    monitoring.register_callback(_TOOL, monitoring.events.CALL, called)

    def watch(code: types.CodeType) -> None:
        monitoring.set_local_events(_TOOL, code, monitoring.events.CALL)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                watch(constant)

    return watch


def _is_unseeded(kind: type, given: bool) -> bool:
    return kind is random.SystemRandom or (kind is random.Random and not given)


def _has_two_arguments(code: types.CodeType, offset: int) -> bool:
    """Whether `strftime` is told a time: what follows the opcode CALL is the number of arguments (module dis)."""
    return code.co_code[offset + 1] > 1

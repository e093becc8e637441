"""Calls of an experiment whose answer is not the same in each build: the clock, chance, the machine, the environment.

A plan with such an answer in it has a new digest each time, and nobody can build it again. Python tells of the calls
that certain code makes (PEP 669): those of the experiment's own files are looked at, and what they call may do what it
likes. So `logging` still finds out what time it is.

It tells which function is called, and the first argument. So a function that is handed on is seen where it is the
first, `field(default_factory=time.time)` or `map(uuid4, ...)`, and not where it comes later, `sorted(x, key=...)`: for
that, the experiment's code would have to be read and its names resolved.

Left out, because an experiment has good reasons for them: `id()`, which tells objects apart; `hash()`, which each
`__hash__` calls, and which is the same in each build for text and numbers (the action fixes PYTHONHASHSEED);
`Path.resolve()` and its like, by which inputs are read. Left out because it is the same everywhere: `locale`, which
finds no variables. Left out for its cost: `multiprocessing.cpu_count`, for whose sake each preflight would import that
package.
"""

import datetime
import getpass
import opcode
import os
import platform
import random
import secrets
import socket
import sys
import tempfile
import time
import types
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_NO_CLOCK = "A build action has no clock: its plan would be another one each time."
_CLOCK = f"{_NO_CLOCK} Write the date into the experiment, or pass it as an option"
_CHANCE = (
    "A build action draws nothing by chance: its plan would be another one each time. Write the value into the "
    "experiment, or draw it by random.Random(SEED)"
)
_MACHINE = "A build action plans the same on every machine. Write the answer into the experiment, or pass it as an option"
_PLACE = "A build action is another process in another folder each time."
_ENVIRONMENT = (
    "A build action has none of yours. Write its value into the experiment, or pass it as an option"
)
_TEMPORARY = "A build action writes its own outputs only. Keep in memory what would be in there"


class _Deed(NamedTuple):
    """What a call does that no build action should, and the rule with the repair."""

    words: str
    rule: str


_TIME = _Deed("asks what time it is", _CLOCK)
_MEASURES = _Deed("measures time", f"{_NO_CLOCK} Leave the measurement out")
_DRAWS = _Deed("draws by chance", _CHANCE)
_NAMED = _Deed("asks for the machine's name", _MACHINE)
_KIND = _Deed("asks what machine and system it is on", _MACHINE)
_CORES = _Deed("asks how many processors there are", _MACHINE)
_USER = _Deed("asks for the user's name", _MACHINE)
_HOME = _Deed("asks for the user's folder", _MACHINE)
_FOLDER = _Deed("asks in which folder it runs", f"{_PLACE} A path from the workspace root is found as it is")
_PROCESS = _Deed("asks for the number of a process", f"{_PLACE} Write a value into the experiment")
_READS = _Deed("reads an environment variable", _ENVIRONMENT)
_SCRATCH = _Deed("asks for a temporary file or folder", _TEMPORARY)

_DEEDS: dict[Any, _Deed] = (
    dict.fromkeys((time.time, time.time_ns, time.clock_gettime, time.clock_gettime_ns), _TIME)
    | dict.fromkeys((datetime.datetime.now, datetime.datetime.utcnow), _TIME)
    | dict.fromkeys((datetime.datetime.today, datetime.date.today), _TIME)
    | dict.fromkeys((time.monotonic, time.monotonic_ns, time.perf_counter, time.perf_counter_ns), _MEASURES)
    | dict.fromkeys(
        (time.process_time, time.process_time_ns, time.thread_time, time.thread_time_ns), _MEASURES
    )
    | dict.fromkeys((os.urandom, uuid.uuid1, uuid.uuid4), _DRAWS)
    | dict.fromkeys((secrets.token_bytes, secrets.token_hex, secrets.token_urlsafe), _DRAWS)
    | dict.fromkeys((secrets.choice, secrets.randbelow, secrets.randbits), _DRAWS)
    | dict.fromkeys((os.uname, platform.node, platform.uname, socket.gethostname, socket.getfqdn), _NAMED)
    | dict.fromkeys((platform.machine, platform.processor, platform.architecture, platform.platform), _KIND)
    | dict.fromkeys((platform.system, platform.release, platform.version), _KIND)
    | {os.cpu_count: _CORES, Path.home: _HOME}
    | dict.fromkeys((getpass.getuser, os.getlogin), _USER)
    | dict.fromkeys((os.getcwd, os.getcwdb, Path.cwd), _FOLDER)
    | dict.fromkeys((os.getpid, os.getppid), _PROCESS)
    | dict.fromkeys((os.getenv, os.environ.get), _READS)
    | dict.fromkeys((tempfile.gettempdir, tempfile.mktemp, tempfile.mkstemp, tempfile.mkdtemp), _SCRATCH)
    | dict.fromkeys((tempfile.TemporaryFile, tempfile.NamedTemporaryFile), _SCRATCH)
)
_WITHOUT_ARGUMENT: dict[Any, _Deed] = {
    **dict.fromkeys((time.localtime, time.gmtime, time.ctime, time.asctime), _TIME),
    random.seed: _DRAWS,
}
"""What is refused only where no time, or no seed, is given."""

_FUNCTIONS = (types.BuiltinFunctionType, types.FunctionType, types.MethodType)
"""What is looked up: their hash and equality are Python's own, whatever an experiment brings with it."""
_GET = os.environ.get.__func__  # type: ignore[attr-defined]
_SHARED_RANDOM: Any = random.seed.__self__  # type: ignore[attr-defined]
_CALL = opcode.opmap["CALL"]
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
    # Compared, not remembered: who puts the state back has none of his own, nor has another experiment after him.
    unseeded = random.getstate()

    def stated(function: Any) -> _Deed | None:
        if _is_of_shared_random(function):
            return _DRAWS if function.__name__ != "getstate" and random.getstate() == unseeded else None
        return _DEEDS.get(function)

    def called(code: types.CodeType, offset: int, function: object, first: object) -> None:
        given = first is not monitoring.MISSING and first is not None
        deed = None
        if isinstance(function, type):
            deed = _deed_of_type(function, given)
        elif isinstance(function, _FUNCTIONS):
            if function is time.strftime:
                deed = None if _may_be_told_a_time(code, offset) else _TIME
            elif function is _GET:
                deed = _READS if first is os.environ else None
            elif not (given and _is_seeding(function)):
                deed = stated(function) or (None if given else _WITHOUT_ARGUMENT.get(function))
        if deed is not None:
            raise refuse(f"{deed.words}. {deed.rule}")
        if isinstance(first, _FUNCTIONS) and (later := stated(first)) is not None:
            raise refuse(f"hands on a function that {later.words}. {later.rule}")

    monitoring.register_callback(_TOOL, monitoring.events.CALL, called)

    def watch(code: types.CodeType) -> None:
        monitoring.set_local_events(_TOOL, code, monitoring.events.CALL)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                watch(constant)

    return watch


def _deed_of_type(kind: type, given: bool) -> _Deed | None:
    if kind is random.SystemRandom or (kind is random.Random and not given):
        return _DRAWS
    return _SCRATCH if kind is tempfile.TemporaryDirectory else None


def _is_of_shared_random(function: object) -> bool:
    return getattr(function, "__self__", None) is _SHARED_RANDOM


def _is_seeding(function: Any) -> bool:
    return _is_of_shared_random(function) and function.__name__ in ("seed", "setstate")


def _may_be_told_a_time(code: types.CodeType, offset: int) -> bool:
    """Whether this is not `strftime(format)`: what follows the opcode CALL is the number of arguments (module dis).

    How many `strftime(*arguments)` has cannot be told.
    """
    operation, number = code.co_code[offset : offset + 2]
    return operation != _CALL or number > 1

"""What code left behind in the process that it ran in, as far as the next code in it could tell.

Not everything can be looked at. This knows what Python code changes by mistake or to get its way: what modules hold that
were there before, our own classes, the environment, the state of chance, signals, warnings. Attributes of classes that
are not ours, and what containers have in them, are not looked at.
"""

import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_SIGNALS = (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM)
_OWN = "tools.launcher."
"""Of these modules, which the next experiment uses most, the classes are looked at too."""

# A class of pydantic is not complete until it is used for the first time, when what begins with _MADE is made; its
# signature is made when somebody reads it.
_COMPLETE = "__pydantic_complete__"
_MADE = "__pydantic_"
_SIGNATURE = "__signature__"


class Traces(NamedTuple):
    """A process at one moment.

    Attributes:
        names: of a module or class -> what it is and what it holds. Held, not only known by address, so that no later
            object has the same.
        state: what is compared by value.
    """

    names: Mapping[str, tuple[object, Mapping[str, Any]]]
    state: tuple[Any, ...]


def traces() -> Traces:
    """Look at this process."""
    names: dict[str, tuple[object, Mapping[str, Any]]] = {}
    for name, module in list(sys.modules.items()):
        held = dict(getattr(module, "__dict__", {}))
        names[name] = (module, held)
        if name.startswith(_OWN):
            classes = [
                value for value in held.values() if isinstance(value, type) and value.__module__ == name
            ]
            names |= {f"{name}.{each.__qualname__}": (each, dict(vars(each))) for each in classes}
    return Traces(names, _state())


def left_between(before: Traces, after: Traces) -> list[str]:
    """Return what is another thing than it was, by name; and what came into being in modules and classes of ours."""
    changed = [
        place
        for name, (it, held) in before.names.items()
        for place in _changes(name, it, held, after.names.get(name, (None, {})))
    ]
    return changed + [
        name for name, one, other in zip(_STATE, before.state, after.state, strict=True) if one != other
    ]


def _changes(
    name: str, it: object, held: Mapping[str, Any], now: tuple[object, Mapping[str, Any]]
) -> Iterable[str]:
    if now[0] is not it:
        yield name
        return
    making = not held.get(_COMPLETE, True)
    for each in held.keys() | (now[1].keys() if name.startswith(_OWN) else ()):
        value = now[1].get(each)
        if value is held.get(each) or each == _SIGNATURE or (making and each.startswith(_MADE)):
            continue
        # A module becomes an attribute of its package when it is imported.
        if each in held or not isinstance(value, types.ModuleType):
            yield f"{name}.{each}"


_STATE = (
    "sys.path",
    "sys.argv",
    "sys.meta_path",
    "sys.path_hooks",
    "os.environ",
    "umask",
    "random",
    "decimal",
    "locale",
    "warnings",
    "signals",
    "timer",
    "threads",
    "tracing",
    "limits",
    "gc",
    "logging",
)


def _state() -> tuple[Any, ...]:
    mask = os.umask(0o77)
    os.umask(mask)
    return (
        list(sys.path),
        list(sys.argv),
        list(sys.meta_path),
        list(sys.path_hooks),
        dict(os.environ),
        mask,
        random.getstate(),
        repr(decimal.getcontext()),
        locale.setlocale(locale.LC_ALL),
        list(warnings.filters),
        [signal.getsignal(number) for number in _SIGNALS],
        signal.getitimer(signal.ITIMER_REAL),
        threading.active_count(),
        (sys.gettrace(), sys.getprofile(), threading.gettrace()),
        (sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()),
        (gc.isenabled(), gc.get_threshold()),
        (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
    )

"""The stages of a graph: where a walk of it may end."""

from collections.abc import Mapping, Sequence
from typing import Final

from tools.launcher.graph.step import STAGE_OF_KIND

IN_ORDER: Final = ("import", "rl", "evaluate")
"""Every stage, in the order of work."""

_NO_STAGE_OF_ITS_OWN: Final = {
    "export": "The export belongs to rl: the launcher that trains exports as its last act (export_hf=True), and "
    "refuses to start again once its terminal manifest is written"
}
"""What people ask for and no graph has -> why."""


def stage_ends(kinds: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return each stage that a graph has, in the order of work -> the steps that end it.

    A stage ends once every step of its kinds is there, with all that those need. Model and data are steps of
    their own, so `import` usually ends at several; an import that only a later stage reads is one of them.

    Args:
        kinds: address -> kind of each step, in the graph's order.
    """
    of_stage = {
        stage: tuple(address for address, kind in kinds.items() if STAGE_OF_KIND[kind] == stage)
        for stage in IN_ORDER
    }
    return {stage: addresses for stage, addresses in of_stage.items() if addresses}


def needed_by(ends: Sequence[str], deps: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return `ends` and every address below them.

    Args:
        ends: addresses.
        deps: address -> addresses of its direct dependencies.
    """
    needed: set[str] = set()
    waiting = list(ends)
    while waiting:
        address = waiting.pop()
        if address not in needed:
            needed.add(address)
            waiting += deps[address]
    return frozenset(needed)


def other_stages(asked: str, ends: Mapping[str, tuple[str, ...]]) -> str:
    """Return which stages there are, in words for somebody who asked for one that there is not.

    Args:
        asked: the stage asked for.
        ends: of `stage_ends`.
    """
    why = _NO_STAGE_OF_ITS_OWN.get(asked)
    return f"Its stages: {', '.join(ends)}" + (f". {why}" if why else "")

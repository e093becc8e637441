"""docs/performance.md: the template, and the results in docs/performance.json.

tools/bazel run //tests/bench:results_page
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tests.bench.acceptance import judged, number
from tools.launcher.documents.files import write_atomically

PAGE = Path("docs/performance.md")
TEMPLATE = Path("docs/performance.template")
RESULTS = Path("docs/performance.json")

_STRICT = ConfigDict(frozen=True, strict=True, extra="forbid")


class Series(BaseModel):
    """Rounds of one command, as tests/bench/scale.py writes them. Seconds are medians."""

    model_config = _STRICT

    wall: float
    server_cpu: float
    action_cpu: float
    analysis: float
    walls: list[float]
    actions: dict[str, int]
    runners: dict[str, int]
    executed: int

    @property
    def preflights(self) -> int:
        return self.actions.get("RlPreflight", 0)


class CardEdit(Series):
    """A build after an edit of a model card that some experiments use."""

    users: int


class OneShot(Series):
    """Some experiments without the worker, and what all would take."""

    measured: int
    wall_of_all: float
    action_cpu_of_all: float


class SecondCheckout(Series):
    """A build from the disk cache that another checkout filled."""

    filling_wall: float
    hits: int


class Process(BaseModel):
    """A program with the preflight action's arguments as a process, without Bazel; medians."""

    model_config = _STRICT

    wall: float
    cpu: float
    walls: list[float]


class Analysis(BaseModel):
    """Loading and analysis in a server that was just started."""

    model_config = _STRICT

    one: float
    all: float
    ms_each: float


class Size(BaseModel):
    """What was measured with one number of experiments."""

    model_config = _STRICT

    cold: Series
    stale: Series
    repin: Series
    no_op: Series
    no_op_empty: Series
    edit: Series
    edit_among_all: Series
    comment: Series
    card: CardEdit
    process: Process
    """Of the py_binary."""
    packed_process: Process
    """Of the packed program, which the action runs."""
    edit_to_process: float
    memory_mb: dict[str, float]
    one_shot: OneShot
    analysis: Analysis
    second_checkout: SecondCheckout


class Scale(BaseModel):
    """Results of tests/bench/scale.py."""

    model_config = _STRICT

    name: str
    machine: dict[str, Any]
    rounds: int
    builds: int
    """Of all experiments, in each way."""
    no_op_of_nothing: Series
    sizes: dict[str, Size]


_SELECTION = ConfigDict(frozen=True, strict=True, extra="ignore")
"""For benches whose page shows a part of what they write."""


class Lint(BaseModel):
    """Results of tests/bench/lint_speed.py."""

    model_config = _SELECTION

    documents: int
    start_seconds: float
    many_seconds: float
    """Of all documents, after the start."""
    each_milliseconds: float


class Startup(BaseModel):
    """Results of tests/bench/startup.py: command -> median."""

    model_config = _SELECTION

    seconds: dict[str, float]
    times_a_bare_python: dict[str, float]


class LaunchMedians(BaseModel):
    """Seconds of tests/bench/submit_to_verified.py."""

    model_config = _SELECTION

    bare: float
    bare_lean: float
    launch: float
    training: float
    launch_process: float


class Launch(BaseModel):
    """Results of tests/bench/submit_to_verified.py."""

    model_config = _SELECTION

    machine: dict[str, Any]
    medians: LaunchMedians
    overhead_seconds: float
    overhead_against_stubs_seconds: float


_ASKED = {
    "first_call": "the first call ever: two revisions, a second checkout with its wheels, no server",
    "all_stale": "a line of the manifest changed, so that all are planned again; the base is known",
    "one_edit": "one experiment changed",
    "one_edit_not_committed": "one experiment changed in the working tree, in the user's own server",
    "asked_before": "two revisions that were asked about before",
}


class Affected(BaseModel):
    """Results of tests/bench/affected.py: what was asked -> median."""

    model_config = _SELECTION

    experiments: int
    seconds: dict[str, float]


class Performance(BaseModel):
    """docs/performance.json, as tests/bench/all.py writes it."""

    model_config = _STRICT

    date: str
    commit: str
    changed: bool
    scale: Scale
    affected: Affected | None = None
    lint_speed: Lint | None = None
    startup: Startup | None = None
    submit_to_verified: Launch | None = None


def page() -> str:
    """Return the text of docs/performance.md. The working directory is the checkout, or runfiles."""
    return rendered(RESULTS.read_bytes(), TEMPLATE.read_text(encoding="utf-8"))


def rendered(results: bytes, template: str) -> str:
    """Return the template with the results in it. Raises pydantic.ValidationError for other results."""
    performance = Performance.model_validate_json(results)
    texts = {
        "machine": _machine(performance),
        "acceptance": _acceptance(json.loads(results)),
        "rounds": str(performance.scale.rounds),
        "builds": str(performance.scale.builds),
        "wall": _wall(performance.scale),
        "cpu": _cpu(performance.scale),
        "nothing": _seconds(performance.scale.no_op_of_nothing.wall),
        "sampled": _sampled(performance.scale),
        "costs": _costs(performance.scale),
        "programs": "\n\n".join(_programs(performance)),
        "ours": _ours(performance.scale),
    }
    for name, text in texts.items():
        if f"@{name}@" not in template:
            raise SystemExit(f"{TEMPLATE} does not show @{name}@. Give it a place")
        template = template.replace(f"@{name}@", text)
    return template


def _machine(performance: Performance) -> str:
    # Bazel's Python and wheels, where a bench inside Bazel ran; else those of the machine.
    inside = performance.submit_to_verified.machine if performance.submit_to_verified else {}
    facts = performance.scale.machine | inside
    rows = [(name.replace("_", " "), str(value)) for name, value in facts.items() if name != "load"]
    rows.append(("load at the end of `scale.py`", str(performance.scale.machine.get("load", "unknown"))))
    rows.append(("commit", performance.commit[:12] + (", with changes" if performance.changed else "")))
    return _table(("machine", ""), [*rows, ("date", performance.date)])


def _acceptance(results: Mapping[str, Any]) -> str:
    return _table(
        ("what", "limit", "measured", ""),
        [
            (
                row.line.what,
                number(row.line.limit, row.line.unit),
                number(row.value, row.line.unit),
                row.verdict if row.verdict == "holds" else f"**{row.verdict}**",
            )
            for row in judged(results)
        ],
    )


_WALLS = {
    "cold": "cold",
    "stale": "all stale, no server",
    "repin": "repin: all stale, warm server",
    "no_op": "nothing to do",
    "no_op_empty": "nothing to do in an empty package, same server",
    "edit": "one edit, that experiment built",
    "edit_among_all": "one edit, all built",
    "comment": "a comment in one experiment, all built",
}
_CPU = ("cold", "stale", "repin", "no_op")


def _wall(scale: Scale) -> str:
    sizes = scale.sizes.values()
    rows = [
        (words, *(_seconds(getattr(size, name).wall) for size in sizes)) for name, words in _WALLS.items()
    ]
    rows += [
        (
            "a comment in one model card, all built",
            *(f"{_seconds(size.card.wall)} ({size.card.preflights} preflights)" for size in sizes),
        ),
        (
            "no worker, all stale",
            *(_about(size, name) + _seconds(size.one_shot.wall_of_all) for name, size in scale.sizes.items()),
        ),
        (
            "second checkout",
            *(
                f"{_seconds(size.second_checkout.wall)} ({size.second_checkout.hits} hits, "
                f"{size.second_checkout.executed} executed)"
                for size in sizes
            ),
        ),
    ]
    return _by_size("wall", scale, rows)


def _cpu(scale: Scale) -> str:
    rows = [(_WALLS[name], *(_both(getattr(size, name)) for size in scale.sizes.values())) for name in _CPU]
    without = (
        f"{_about(size, name)}{_seconds(size.one_shot.action_cpu_of_all)}"
        for name, size in scale.sizes.items()
    )
    return _by_size("CPU", scale, [*rows, ("no worker, all stale, without the server's", *without)])


def _both(series: Series) -> str:
    return f"{_seconds(series.server_cpu)} + {_seconds(series.action_cpu)}"


def _about(size: Size, name: str) -> str:
    return "" if size.one_shot.measured == int(name) else "about "


def _by_size(what: str, scale: Scale, rows: Iterable[Iterable[str]]) -> str:
    return _table((what, *(f"{name} experiments" for name in scale.sizes)), rows)


def _sampled(scale: Scale) -> str:
    sampled = [
        f"of {name}, {size.one_shot.measured} were run"
        for name, size in scale.sizes.items()
        if size.one_shot.measured != int(name)
    ]
    return f"Extrapolated: {'; '.join(sampled)}." if sampled else "All of them were run."


def _costs(scale: Scale) -> str:
    rows = [
        (
            "loading and analysis, by experiment",
            *(f"{size.analysis.ms_each:.1f} ms" for size in scale.sizes.values()),
        ),
        (
            "a preflight in the worker, CPU (all stale, its start included)",
            *(
                f"{size.stale.action_cpu / size.stale.preflights * 1000:.0f} ms"
                for size in scale.sizes.values()
            ),
        ),
        (
            "Bazel's server, CPU by experiment (all stale, its start included)",
            *(
                f"{size.stale.server_cpu / size.stale.preflights * 1000:.0f} ms"
                for size in scale.sizes.values()
            ),
        ),
        (
            "a preflight as a process, `//tools/launcher/cli:preflight`, without Bazel",
            *(
                f"{_seconds(size.process.wall)}, CPU {_seconds(size.process.cpu)}"
                for size in scale.sizes.values()
            ),
        ),
        (
            "the same, packed as the action runs it",
            *(
                f"{_seconds(size.packed_process.wall)}, CPU {_seconds(size.packed_process.cpu)}"
                for size in scale.sizes.values()
            ),
        ),
        (
            "that in a sandbox, CPU",
            *(_seconds(size.one_shot.action_cpu / size.one_shot.measured) for size in scale.sizes.values()),
        ),
        (
            "memory of the server, at most",
            *(f"{size.memory_mb['server']:.0f} MB" for size in scale.sizes.values()),
        ),
        (
            "memory of the worker, at most",
            *(
                f"{size.memory_mb['workers']:.0f} MB" if size.memory_mb["workers"] else "not seen"
                for size in scale.sizes.values()
            ),
        ),
    ]
    return _by_size("", scale, rows)


def _ours(scale: Scale) -> str:
    count, size = list(scale.sizes.items())[-1]
    edit_cpu = size.edit.server_cpu + size.edit.action_cpu
    rows = (
        ("our preflight as a process of its own", size.process.wall, size.process.cpu),
        (f"our build after an edit of one experiment among {count}", size.edit.wall, edit_cpu),
    )
    return "\n".join(f"| {what} | {_seconds(wall)} | {_seconds(cpu)} |" for what, wall, cpu in rows)


def _programs(performance: Performance) -> Iterator[str]:
    lint, startup, launch = performance.lint_speed, performance.startup, performance.submit_to_verified
    if startup:
        yield _table(
            ("command, from its start to its end", "seconds", "times a Python that does nothing"),
            [
                (f"`{name}`" if name.endswith("--help") else name, f"{seconds:.3f}", f"{times:.1f}")
                for (name, seconds), times in zip(
                    startup.seconds.items(), startup.times_a_bare_python.values(), strict=True
                )
            ],
        )
    if lint:
        yield (
            f"`lint` of {lint.documents} documents takes {_seconds(lint.many_seconds)} after its start of "
            f"{_seconds(lint.start_seconds)}: {lint.each_milliseconds:.1f} ms each."
        )
    if launch:
        medians = launch.medians
        yield _table(
            ("`cat_count` on a warm embedded Iris", "seconds"),
            [
                ("the two Iris jobs, bare, by Iris's client", f"{medians.bare:.2f}"),
                ("the same by the RPC stubs alone", f"{medians.bare_lean:.2f}"),
                ("launch to `verified: yes`", f"{medians.launch:.2f}"),
                ("of that the training itself", f"{medians.training:.2f}"),
                ("beyond the bare jobs and the training", f"{launch.overhead_seconds:.2f}"),
                ("the same against the RPC stubs alone", f"{launch.overhead_against_stubs_seconds:.2f}"),
                ("launch to the end of its process", f"{medians.launch_process:.2f}"),
            ],
        )
    if affected := performance.affected:
        yield _table(
            (f"`affected` among {affected.experiments} experiments", "seconds"),
            [(_ASKED[name], f"{seconds:.2f}") for name, seconds in affected.seconds.items()],
        )
    benches = ("affected", "lint_speed", "startup", "submit_to_verified")
    missing = [name for name in benches if not getattr(performance, name)]
    if missing:
        yield f"Not measured: {', '.join(missing)}."


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines)


def main() -> int:
    """Write the page into the source tree."""
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not workspace:
        sys.stderr.write("error: run it with `tools/bazel run //tests/bench:results_page`\n")
        return 2
    os.chdir(workspace)
    write_atomically(PAGE.absolute(), page().encode())
    print(f"{PAGE}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())

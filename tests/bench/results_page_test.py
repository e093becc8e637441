"""docs/performance.md is what docs/performance.json says, and judges every condition."""

import copy
import difflib
import json
import re
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from tests.bench.acceptance import LINES, judged, told
from tests.bench.results_page import PAGE, RESULTS, TEMPLATE, page, rendered

WRITTEN = PAGE.read_text(encoding="utf-8")


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_bytes())
    return found


def changed(path: str, value: object) -> dict[str, Any]:
    """The results with one value replaced."""
    *above, last = path.split("/")
    whole = part = copy.deepcopy(results())
    for name in above:
        part = part[name]
    part[last] = value
    return whole


def test_the_page_is_up_to_date():
    changes = list(
        difflib.unified_diff(
            WRITTEN.splitlines(), page().splitlines(), "docs/performance.md", "the results", n=0, lineterm=""
        )
    )
    assert changes[:40] == [], "tools/bazel run //tests/bench:results_page"


def test_every_condition_is_on_the_page_with_its_verdict():
    section = WRITTEN[WRITTEN.index("## What must hold") :].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| .+? \| .+? \| (.+?) \|$", section, re.MULTILINE)
    told_of = {what: verdict.strip("*") for what, verdict in rows if what != "---"}
    assert {line.what for line in LINES} <= told_of.keys()
    assert {row.line.what: row.verdict for row in judged(results())}.items() <= told_of.items()


def test_the_page_shows_every_number_of_experiments():
    assert all(f"| {size} experiments |" in WRITTEN for size in results()["scale"]["sizes"])


def test_results_of_another_form_are_refused():
    template = TEMPLATE.read_text(encoding="utf-8")
    for path in ("scale/rounds", "scale/no_op_of_nothing"):
        with pytest.raises(ValidationError, match=path.replace("/", ".")):
            rendered(json.dumps(changed(path, "five")).encode(), template)


@pytest.mark.parametrize("index", range(len(LINES)))
def test_each_condition_fails_and_is_missed(index):
    """A line that holds whatever was measured would say nothing."""
    bad: dict[str, Any] = {
        "scale": {"no_op_of_nothing": series(1), "sizes": {"100": size(0.01), "1000": size(1e6)}}
    }
    bad["submit_to_verified"] = {"overhead_against_stubs_seconds": 100.0}
    bad["startup"] = started(9.0)
    bad["affected"] = {"seconds": {"all_stale": 99.0}}
    row = judged(bad)[index]
    assert row.verdict == "does not hold", row
    assert judged({})[index].verdict == "not measured"
    _, holds = told(bad)
    assert not holds


def series(value: float) -> dict[str, Any]:
    actions = {"RlPreflight": 1000}
    return {"wall": value, "server_cpu": value, "action_cpu": value, "actions": actions, "executed": 3}


def started(seconds: float) -> dict[str, Any]:
    return {"seconds": {"launcher --help": seconds, "lint, one document": seconds}}


def size(value: float) -> dict[str, Any]:
    return {
        **{
            name: series(value)
            for name in ("cold", "stale", "repin", "no_op", "comment", "edit", "second_checkout")
        },
        "no_op_empty": series(1),
        "one_shot": {"action_cpu_of_all": 1000.0},
        "process": {"cpu": 1.0},
        "edit_to_process": 1.0,
    }


def test_what_was_measured_decides():
    good: dict[str, Any] = {
        "scale": {"no_op_of_nothing": series(1), "sizes": {"100": size(1), "1000": size(1)}}
    }
    good["scale"]["sizes"]["1000"] |= {"edit_to_process": 0.2, "edit": series(0.5)}
    for nothing in ("no_op", "comment", "second_checkout"):
        good["scale"]["sizes"]["1000"][nothing] = series(1) | {"actions": {}, "executed": 0}
    good["startup"] = started(0.1)
    good["affected"] = {"seconds": {"all_stale": 9.0}}
    verdicts = [row.verdict for row in judged(good)]
    assert verdicts == ["holds"] * (len(LINES) - 1) + ["not measured"]
    text, holds = told(good)
    assert holds and text.count("\n") == len(LINES) - 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

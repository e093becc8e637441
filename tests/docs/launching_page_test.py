"""docs/launching.md shows what refused launches say today."""

import difflib
import re
import sys
from collections.abc import Iterator

import pytest

from tests.docs.launching_page import PAGE, page_at
from tests.docs.refusals import REFUSALS, Desk, desk, put_in_the_way, read_files
from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_cluster import IRIS_GIVE_UP_SECONDS
from tools.launcher.iris.gateway import LAUNCH_REPLY_SECONDS
from tools.launcher.iris.remote import OPENING_SECONDS
from tools.launcher.store.gcs_store import ATTEMPT_SECONDS, RETRY_SECONDS
from tools.launcher.store.open_store import open_store
from tools.launcher.store.records import list_records
from tools.launcher.submit.gates.gate import GATE_IDS, OVERRIDABLE
from tools.launcher.submit.gates.shape import SHAPE_PARTS

WRITTEN = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    # The refusal of changes that no commit has is made in a real checkout. Who has this test has one, so git.
    with desk(tmp_path_factory.mktemp("desk")) as made:
        yield made


def test_the_page_is_up_to_date(here):
    now = page_at(here).splitlines()
    changes = list(
        difflib.unified_diff(WRITTEN.splitlines(), now, "docs/launching.md", "what is said", n=0, lineterm="")
    )
    assert changes[:40] == [], "tools/bazel run //tests/goldens:update"


def test_what_somebody_answered_for_is_on_record(here):
    files = here.built("answered", nodes=4, version="2026.09.23")
    put_in_the_way(here, files)
    (here.checkout / "new").write_text("")
    status, said = here.launch(files, "--allow-dirty", "--override=smoke=bob: a new pool", "--yes")
    (here.checkout / "new").unlink()
    assert status == exit_codes.REFUSED and "exists with the launch digest" in said
    digest = read_files(files).digests.launch
    records = list_records(open_store(here.store_url), "gsm8k_grpo")
    (record,) = (record for record in records if record.key.launch_digest == digest)
    intent = record.events[0].facts
    assert intent["gates"] == {
        "clean-tree": "overridden",
        "fixed-version": "passed",
        "credentials": "passed",
        "budget": "passed",
        "smoke": "overridden",
        "reachable": "passed",
        "placeable": "passed",
    }
    answers = intent["overrides"]
    assert answers["smoke"] == "bob: a new pool"
    assert re.fullmatch(r"ada@\S+: --allow-dirty", answers["clean-tree"])
    assert record.shape["geometry"]["GPUs per node"] == 8


def test_every_refusal_has_a_section_with_its_exit_status():
    shown = re.findall(r"^```text\n(\$ .*?)```$", WRITTEN, re.MULTILINE | re.DOTALL)
    assert len(shown) == len(REFUSALS) >= 10
    for text in shown:
        assert re.search(r"^exit status [13]$", text, re.MULTILINE)
        assert "Traceback" not in text


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    table = re.search(r"^\|.*?\n\n", WRITTEN[WRITTEN.index(heading) :], re.MULTILINE | re.DOTALL)
    assert table is not None
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:] if line
    ]


def test_the_gates_are_all_there_and_their_overrides_are_right():
    table = rows("## Gates")
    assert [row[0] for row in table] == list(GATE_IDS)
    assert {row[0] for row in table if row[3] != "no"} == OVERRIDABLE


def test_the_exit_statuses_are_those_of_the_program():
    told = {int(status) for row in rows("## How a launch goes") for status in row[0].split(", ")}
    assert told == {value for name, value in vars(exit_codes).items() if name.isupper()}


def test_the_parts_of_a_shape_are_all_there():
    assert [row[0] for row in rows("**Smoke.**")] == list(SHAPE_PARTS)


@pytest.mark.parametrize(
    ("what", "seconds"),
    [
        ("A question to Iris is given up after", IRIS_GIVE_UP_SECONDS),
        ("one to the store after", RETRY_SECONDS + ATTEMPT_SECONDS),
        ("a submission after", LAUNCH_REPLY_SECONDS),
        ("and opening a tunnel after", OPENING_SECONDS),
    ],
)
def test_the_limits_are_those_of_the_program(what, seconds):
    assert f"{what} {seconds:g} s" in " ".join(WRITTEN.split())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

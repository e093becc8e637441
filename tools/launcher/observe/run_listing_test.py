"""Listing runs: which, in which order, and with how many reads."""

import datetime
import io
import json
import re
import sys

import pytest

from tools.launcher.observe.render_runs import COLUMNS, run_row, runs_json, runs_markdown, show_runs
from tools.launcher.observe.run_listing import SinceInvalid, Wanted, list_runs, parse_since, version_of
from tools.launcher.store.bundles import BUNDLE_PREFIX, LaunchBundle, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, RunState, append_event

NOW = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)


class Counting(FileStore):
    """Counts what is read."""

    def __init__(self, root):
        super().__init__(root)
        self.folder, self.gets, self.lists = root, [], []

    def get(self, key):
        self.gets.append(key)
        return super().get(key)

    def list(self, prefix):
        self.lists.append(prefix)
        return super().list(prefix)


def add(store, experiment, digit, *kinds, ordinal=1, version="2026.11.30", commit="c" * 40, **opening):
    key = RunKey(experiment=experiment, launch_digest=digit * 64, ordinal=ordinal)
    facts = {
        "artifacts": ["lab/model@2025.01.01", f"lab/{experiment}@{version}"],
        "runtime_commit": commit,
        "runtime": "rehearsal",
        "stage": "rl",
        "cluster": "local",
        **opening,
    }
    append_event(store, key, "intent", "ann@desk", facts)
    for kind in kinds:
        append_event(store, key, kind, "coordinator", {"job_id": "/slipway/x", "reason": "why"})
    return key


@pytest.fixture
def store(tmp_path):
    found = Counting(tmp_path)
    add(found, "cats", "a", "submitted", "failed")
    add(found, "cats", "b", "submitted", "coordinator_started", "succeeded", "verified", version="2026.12.01")
    add(found, "dogs", "c", "submitted", "coordinator_started", commit="81ae0ef7" + "0" * 32)
    return found


def names(store, most=50, **wanted):
    return [record.key.short_name for record in list_runs(store, Wanted(**wanted), most).records]


def test_runs_are_listed_newest_first_and_filtered(store):
    assert names(store) == ["dogs/cccccccc/1", "cats/bbbbbbbb/1", "cats/aaaaaaaa/1"]
    assert names(store, experiment="cats") == ["cats/bbbbbbbb/1", "cats/aaaaaaaa/1"]
    assert names(store, version="2026.12.01") == ["cats/bbbbbbbb/1"]
    assert names(store, version="2025.01.01") == []  # Of an input, not of the run.
    assert names(store, states=frozenset({RunState.FAILED, RunState.RUNNING})) == [
        "dogs/cccccccc/1",
        "cats/aaaaaaaa/1",
    ]
    assert names(store, runtime="81ae") == ["dogs/cccccccc/1"]
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    assert names(store, since=later) == [] and len(names(store, since=NOW.replace(year=2020))) == 3
    assert list_runs(store, Wanted(experiment="mice"), 5).experiments == ("cats", "dogs")


def add_planned(store, experiment, digit, **options):
    """Put a run on record whose bundle says the options of its main()."""
    bundle = LaunchBundle(
        launch_yaml=b"",
        graph_json=b"",
        plan_json=json.dumps({"options": options}).encode(),
        digest_text=f"recipe sha256:{'b' * 64}\nlaunch sha256:{digit * 64}\n",
    )
    add(store, experiment, digit, bundle=put_content(store, BUNDLE_PREFIX, pack(bundle)))


@pytest.fixture
def sweep(tmp_path):
    """The points of a sweep, an experiment that is called like one, and the stages of another."""
    found = Counting(tmp_path / "sweep")
    add_planned(found, "lab_lr_1e_6_tbs_32", "1", scale="smoke", learning_rate="1e-6", train_batch_size="32")
    add_planned(found, "lab_seed_7.import", "2", seed="7")
    add_planned(found, "lab_smoke", "3", scale="smoke")
    add(found, "lab_gone", "4", bundle="d" * 64)
    add(found, "labour", "5")
    for stage, digit in (("", "6"), (".import", "7"), (".rl", "8")):
        add(found, f"chain{stage}", digit)
    return found


def experiments(store, asked):
    return {name.partition("/")[0] for name in names(store, experiment=asked)}


def test_a_sweep_is_named_as_a_whole_and_an_experiment_with_its_stages(sweep):
    """`--experiment=my_sweep` found nothing, and `--experiment=gsm8k_chain` no `.import`."""
    points = {"lab_lr_1e_6_tbs_32", "lab_seed_7.import"}
    # Where the bundle is gone, the name alone says that it may be a point.
    assert experiments(sweep, "lab") == points | {"lab_gone"}
    assert experiments(sweep, "lab_smoke") == {"lab_smoke"}
    assert experiments(sweep, "chain") == {"chain", "chain.import", "chain.rl"}
    assert experiments(sweep, "chain.rl") == {"chain.rl"}
    # So are the points that have the first values in common.
    assert (
        experiments(sweep, "lab_lr_1e_6") == {"lab_lr_1e_6_tbs_32"} and experiments(sweep, "lab_lr") == set()
    )
    listing = list_runs(sweep, Wanted(experiment="lab", version="2000.01.01"), 5)
    assert listing.records == () and set(listing.meant) == points | {"lab_gone"}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("lab*", {"lab_lr_1e_6_tbs_32", "lab_seed_7.import", "lab_smoke", "lab_gone", "labour"}),
        ("lab_*_32", {"lab_lr_1e_6_tbs_32"}),
        ("chain.?l", {"chain.rl"}),
        ("LAB*", set()),
    ],
)
def test_a_pattern_of_names_fits_whole_names(sweep, pattern, found):
    assert experiments(sweep, pattern) == found
    sweep.gets.clear()
    list_runs(sweep, Wanted(experiment=pattern), 50)
    assert not [name for name in sweep.gets if name.startswith(BUNDLE_PREFIX)]


def test_only_names_that_begin_like_points_cost_a_bundle(sweep):
    sweep.gets.clear()
    list_runs(sweep, Wanted(experiment="lab"), 50)
    assert len([name for name in sweep.gets if name.startswith(BUNDLE_PREFIX)]) == 4
    sweep.gets.clear()
    list_runs(sweep, Wanted(experiment="chain"), 50)
    assert not [name for name in sweep.gets if name.startswith(BUNDLE_PREFIX)]


def test_reads_are_one_for_each_run_and_the_events_of_those_shown(store):
    for ordinal in range(2, 30):
        add(store, "cats", "a", "submitted", "failed", ordinal=ordinal)
    store.gets.clear(), store.lists.clear()
    listing = list_runs(store, Wanted(), 2)
    assert [record.key.ordinal for record in listing.records] == [29, 28] and listing.left_out == 29
    assert store.lists == ["runs/"]
    assert len(store.gets) == 31 + 2 * 3
    store.gets.clear()
    assert names(store, most=1, experiment="dogs") == ["dogs/cccccccc/1"]
    assert len(store.gets) == 1 + 3
    # What the first event already denies is not read further.
    store.gets.clear()
    assert names(store, version="2026.12.01") == ["cats/bbbbbbbb/1"] and len(store.gets) == 31 + 5


def test_a_state_that_is_rare_is_looked_for_among_older_runs(store):
    assert names(store, most=1, states=frozenset({RunState.FAILED})) == ["cats/aaaaaaaa/1"]


@pytest.mark.parametrize("damaged", ["0001", "0002"])
def test_a_damaged_record_hides_no_other(store, damaged):
    next(store.folder.glob(f"runs/cats/a*/1/events/{damaged}.json")).write_text("{")
    listing = list_runs(store, Wanted(), 50)
    assert [record.key.short_name for record in listing.records] == ["dogs/cccccccc/1", "cats/bbbbbbbb/1"]
    (why,) = listing.damaged
    assert why.startswith(f"event runs/cats/{'a' * 64}/1/events/{damaged}.json cannot be read: ")


def test_since_is_a_span_a_date_or_a_time():
    assert parse_since("90m", NOW) == NOW - datetime.timedelta(minutes=90)
    assert parse_since("2w", NOW) == NOW - datetime.timedelta(days=14)
    assert parse_since("2026-11-29", NOW) == datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC)
    assert parse_since("2026-11-30T14:00:00+02:00", NOW) == NOW


@pytest.mark.parametrize(
    "text", ["", "yesterday", "7", "0d", "-1d", "7y", "2026-11-30T12:00:00", "2026-13-01"]
)
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(SinceInvalid) as caught:
        parse_since(text, NOW)
    assert str(caught.value) == (
        f"'{text}' is no moment. Give a span before now such as 12h or 7d, a date such as 2026-11-30 (UTC), or a "
        "time such as 2026-11-30T12:00:00Z"
    )


def test_the_table_is_plain_in_a_file(store):
    records = list_runs(store, Wanted(), 50).records
    out = io.StringIO()
    show_runs(records, out)
    head, first, second, third = out.getvalue().splitlines()
    assert head.split() == [name.upper() for name in COLUMNS]
    assert first.split()[:7] == [
        "dogs/cccccccc/1",
        "2026.11.30",
        "running",
        "-",
        "rl",
        "rehearsal",
        "81ae0ef7",
    ]
    assert second.split()[2:4] == ["succeeded", "yes"] and third.split()[2] == "failed"
    assert len({line.index("rehearsal") for line in (first, second, third)}) == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (200, ""),
        (100, "not shown for want of width: cluster, by\n"),
        (40, "not shown for want of width: version, verified, stage, runtime, cluster, launched, by\n"),
        (5, "not shown for want of width: version, verified, stage, runtime, cluster, launched, by\n"),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_no_value_is_cut(store, monkeypatch, width, left_out):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    show_runs(list_runs(store, Wanted(), 50).records, out)
    head, *rows = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines(keepends=True)
    assert head.startswith("RUN") and "STATE" in head
    assert all(name in row for name, row in zip(("dogs/cccccccc/1", "cats/bbbbbbbb/1"), rows, strict=False))
    assert [re.search(r"running|succeeded|failed", row)[0] for row in rows[:3]] == [
        "running",
        "succeeded",
        "failed",
    ]
    assert "".join(rows[3:]) == left_out


def test_the_table_is_coloured_at_a_terminal(store):
    out = Terminal()
    show_runs(list_runs(store, Wanted(), 50).records, out)
    assert "\x1b[36mrunning" in out.getvalue() and "\x1b[31mfailed" in out.getvalue()


def test_the_table_for_a_pull_request_and_for_programs(store, tmp_path):
    other = FileStore(tmp_path / "other")
    key = RunKey(experiment="a_b", launch_digest="d" * 64, ordinal=1)
    append_event(other, key, "intent", "x|y\x1b[1m@<b>", {})
    records = list_runs(other, Wanted(), 5).records
    assert version_of(records[0]) == "" and run_row(records[0])[1] == "-"
    last = runs_markdown(records).splitlines()[-1]
    assert last.startswith(r"| a\_b/dddddddd/1 | - | intent | - |") and last.endswith(
        r"| x\|y \[1m&#64;\<b\> |"
    )
    (found,) = runs_json(list_runs(store, Wanted(experiment="dogs"), 5).records)
    assert found["state"] == "running" and found["verified"] is None
    assert found["runtime_commit"] == "81ae0ef7" + "0" * 32 and found["coordinator_job"] == "/slipway/x"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

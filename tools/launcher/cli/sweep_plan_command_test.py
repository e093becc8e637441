"""Sweeps as tables: their action, what is on record of their points, and pinning them."""

import io
import json
import sys
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.cli.sweep_testlib import write_sweep
from tools.launcher.render.sweep import load_sweep
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event

SEEDS = ("1", "2", "3")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    status, flags = write_sweep(tmp_path_factory.mktemp("sweep"), SEEDS)
    assert status == 0
    return flags


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)


def points_of(flags):
    return load_sweep(Path(flags[0].removeprefix("--sweep=")).read_bytes()).points


def own_store(tmp_path):
    return FileStore(tmp_path / "state/slipway/store")


def record(store, point, *kinds, runtime="rehearsal", digest=None, ordinal=1, **facts):
    """Begin a run of a point and let these things happen to it."""
    name = point.label.rpartition(":")[2]
    key = RunKey(experiment=name, launch_digest=digest or point.launch, ordinal=ordinal)
    append_event(store, key, "intent", "ann@desk", {"runtime": runtime, "recipe": point.recipe})
    for kind in kinds:
        append_event(store, key, kind, "ann@desk", {"job_id": "/slipway/x", **facts})
    return key


def test_the_table_has_every_point_with_its_numbers_and_the_total(built, capsys):
    assert run(["sweep-plan", *built]) == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "//experiments/x:seeds: 3 points, version 2026.09.21, on local"
    assert " ".join(lines[1].split()) == "point seed nodes x GPUs steps tokens/step GPU-hours recipe state"
    first = points_of(built)[0]
    # 64 answers of 1536 tokens; 8 GPUs for 12 hours.
    assert " ".join(lines[2].split()) == f"seed_1 1 1 x 8 H100 8 98,304 96 {first.recipe[:8]} new"
    assert lines[5] == "to be launched: 3 of 3 points, 288 GPU-hours at most."
    assert lines[6].startswith("records: file://")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (100, []),
        (60, ["recipe", "tokens/step"]),
        (30, ["recipe", "tokens/step", "nodes x GPUs", "steps", "GPU-hours"]),
        (5, ["recipe", "tokens/step", "nodes x GPUs", "steps", "GPU-hours", "seed"]),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_is_told_so(built, monkeypatch, width, left_out):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    assert run(["sweep-plan", *built]) == exit_codes.OK
    _, head, one, two, three, *rest = shown.getvalue().splitlines()
    assert [name in head for name in left_out] == [False] * len(left_out)
    assert all(row.split()[0].startswith("seed_") and row.endswith("new") for row in (one, two, three))
    assert width == 5 or max(map(len, (head, one, two, three))) <= width
    told = f"not shown for want of width: {', '.join(left_out)}"
    assert (rest[0] == told) == bool(left_out) and rest[-3].startswith("to be launched: 3 of 3 points")


def test_a_file_has_every_column(built, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    assert run(["sweep-plan", *built]) == exit_codes.OK
    said = capsys.readouterr().out
    assert "recipe" in said and "for want of width" not in said


def test_each_point_stands_as_its_record_says(built, tmp_path, capsys):
    one, two, three = points_of(built)
    store = own_store(tmp_path)
    key = record(store, one, "submitted", "succeeded", "verified")
    record(store, two, "submitted", "failed")
    record(store, two, "submitted", "coordinator_started", ordinal=2)
    record(store, three, "submitted", "failed")
    assert run(["sweep-plan", *built, "--format=json"]) == exit_codes.OK
    shown = json.loads(capsys.readouterr().out)
    assert [(point["state"], point["to_be_launched"]) for point in shown["points"]] == [
        ("verified", False),
        ("running", False),
        ("failed", False),
    ]
    assert shown["points"][0]["run"] == key.short_name
    assert shown["gpu_hours_to_launch"] == 0
    assert shown["axes"] == ["seed"]


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        ((), "unconfirmed"),
        (("refused",), "refused"),
        (("conflict",), "conflict"),
        (("submitted", "succeeded"), "succeeded"),
        (("submitted", "succeeded", "verify_failed"), "not verified"),
        (("submitted", "cancelled"), "cancelled"),
    ],
)
def test_other_states_have_their_words(built, tmp_path, capsys, kinds, state):
    record(own_store(tmp_path), points_of(built)[0], *kinds)
    assert run(["sweep-plan", *built, "--format=json"]) == exit_codes.OK
    assert json.loads(capsys.readouterr().out)["points"][0]["state"] == state


def test_the_same_recipe_verified_in_another_place_counts_and_a_rehearsal_of_it_does_not(
    built, tmp_path, capsys
):
    one, two, three = points_of(built)
    store, other = own_store(tmp_path), "d" * 64
    key = record(store, one, "submitted", "succeeded", "verified", digest=other)
    record(store, two, "submitted", "succeeded", "verified", digest=other, runtime="marinskyrl")
    record(store, three, "submitted", "succeeded", digest=other)
    assert run(["sweep-plan", *built, "--format=json"]) == exit_codes.OK
    points = json.loads(capsys.readouterr().out)["points"]
    assert [(point["state"], point["run"]) for point in points] == [
        ("verified", key.short_name),
        ("new", None),
        ("new", None),
    ]


def test_a_damaged_record_is_of_its_point_alone(built, tmp_path, capsys):
    one = points_of(built)[0]
    store = own_store(tmp_path)
    record(store, one, "submitted")
    (event,) = (tmp_path / "state/slipway/store").rglob("0002.json")
    event.chmod(0o600)
    event.write_bytes(b"{")
    assert run(["sweep-plan", *built, "--format=json"]) == exit_codes.OK
    states = [point["state"] for point in json.loads(capsys.readouterr().out)["points"]]
    assert states == ["unreadable", "new", "new"]


def test_markdown_is_a_table(built, capsys):
    assert run(["sweep-plan", *built, "--format=markdown"]) == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "**//experiments/x:seeds: 3 points, version 2026.09.21, on local**"
    assert lines[2] == ("| point | seed | nodes x GPUs | steps | tokens/step | GPU-hours | recipe | state |")
    assert lines[4].startswith("| seed\\_1 | 1 | 1 x 8 H100 | 8 | 98,304 | 96 | ")


def test_no_store_of_others_is_asked_unasked(tmp_path, capsys):
    status, flags = write_sweep(tmp_path / "far", ("1",), local=False)
    capsys.readouterr()
    assert status == 0
    assert run(["sweep-plan", *flags]) == exit_codes.OK
    said = capsys.readouterr().out
    assert "records: not looked up, no store was named with --store" in said
    assert said.splitlines()[2].endswith("?")
    assert run(["sweep-plan", *flags, f"--store=file://{tmp_path}/shared"]) == exit_codes.OK
    assert capsys.readouterr().out.splitlines()[2].endswith("new")


def test_a_store_that_was_named_and_does_not_answer_is_said_with_the_table(built, tmp_path, capsys):
    place = tmp_path / "loop"
    place.mkdir()
    (place / "runs").symlink_to("runs")
    assert run(["sweep-plan", *built, f"--store=file://{place}"]) == exit_codes.UNKNOWN
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and str(place) in said.err
    assert f"records: not known, file://{place} did not answer." in said.out


def test_two_points_of_one_name_are_refused(tmp_path, capsys):
    """What makes the second point another run is not in the name of its artifact."""
    status, _ = write_sweep(tmp_path, ("1", "2"), more={"2": {"tests/qwen06-seed2": "tests/qwen06-seed1"}})
    assert status == 1
    assert (
        "error: //experiments/x:seeds: the points seed_1 and seed_2 would both write "
        "users/lab/tests/qwen06-seed1@2026.09.21, with the fingerprints "
    ) in (said := capsys.readouterr().err)
    assert (
        'seed (1, 2) is not in that name. Put every axis into it in main(), such as name=f"team/run-{seed}"\n'
    ) in said
    assert not (tmp_path / "seeds.sweep.json").exists()


def test_an_axis_that_changes_nothing_is_refused(tmp_path, capsys):
    same = {"seed=2": "seed=1", "tests/qwen06-seed2": "tests/qwen06-seed1"}
    assert write_sweep(tmp_path, ("1", "2"), more={"2": same})[0] == 1
    said = capsys.readouterr().err
    assert "the points seed_1 and seed_2 have one recipe, sha256:" in said
    assert "seed (1, 2) changes nothing that is learned. Use it in main(), or take it out of axes\n" in said
    assert "would both write" not in said


def test_a_table_that_is_none_is_wrong_usage(tmp_path, built, capsys):
    table = tmp_path / "x.json"
    assert run(["sweep-plan", f"--sweep={table}", built[1]]) == exit_codes.USAGE
    assert capsys.readouterr().err.startswith(f"error: {table}: there is no such file")
    table.write_text('{"schema": 1, "sweep": "//x:y", "points": []}')
    assert run(["sweep-plan", f"--sweep={table}", built[1]]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"error: {table} is not of this launcher's making: points: ")
    assert said.endswith(". Build the sweep again\n")


def test_a_plan_of_another_launcher_is_named_by_the_action(tmp_path, capsys):
    _, flags = write_sweep(tmp_path, ("1",))
    plan = Path(points_of(flags)[0].files.plan)
    content = json.loads(plan.read_bytes())
    for broken, why in (
        ({}, "does not read as one: Field required"),
        ({**content, "detail": None}, "it has no `detail`"),
    ):
        plan.write_text(json.dumps(broken))
        capsys.readouterr()
        assert rewritten(flags, tmp_path) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: //experiments/x:seeds: the plan of //experiments/x:seeds_seed_1")
        assert why in said and said.endswith(". Build the sweep again\n")


def rewritten(flags, folder):
    """Run the action of a sweep once more over what is there."""
    from tools.launcher.cli import sweep_writer

    point = points_of(flags)[0]
    files = point.files.model_dump()
    given = {
        "case": {"point": point.point, "values": point.values},
        "files": files,
        "graph": files["graph"],
        "label": point.label,
        "plan": files["plan"],
    }
    arguments = ["--sweep=//experiments/x:seeds", f"--point={json.dumps(given)}", f"--out={folder / 'again'}"]
    return sweep_writer.main(arguments)


def test_every_point_is_pinned(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    pin = ["sweep-pin", built[0], "--ledger=x/versions.lock.yaml"]
    assert run([*pin, "--dry-run"]) == exit_codes.OK
    assert not (tmp_path / "x").exists()
    said = capsys.readouterr().out
    assert said.count("dry run: ") == 1
    assert said.endswith("\ndry run: 3 of 3 points would change, and x/versions.lock.yaml is not written\n")
    assert run(pin) == exit_codes.OK
    # It was said once for each point.
    said = capsys.readouterr().out
    assert said.count("written: ") == 1
    assert said.endswith("\nwritten: 3 of 3 points, in x/versions.lock.yaml. Review and commit it\n")
    ledger = (tmp_path / "x/versions.lock.yaml").read_text()
    for point in points_of(built):
        assert point.artifact.rpartition("@")[0] in ledger and point.recipe in ledger
    capsys.readouterr()
    assert run(pin) == exit_codes.OK
    assert capsys.readouterr().out.count("is pinned already") == 3


def test_a_point_that_is_refused_keeps_no_other_from_being_pinned(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    pin = ["sweep-pin", built[0], "--ledger=versions.lock.yaml"]
    assert run(pin) == exit_codes.OK
    ledger = tmp_path / "versions.lock.yaml"
    first, second, _ = points_of(built)
    changed = ledger.read_text().replace(first.recipe, "e" * 64).replace(second.launch, "f" * 64)
    ledger.write_text(changed)
    capsys.readouterr()
    assert run(pin) == exit_codes.REFUSED
    said = capsys.readouterr()
    assert f"refused: {first.artifact} is pinned as eeeeeeeeeeee; " in said.err
    assert second.launch in ledger.read_text()
    assert "written: 1 of 3 points, in versions.lock.yaml. Review" in said.out


def test_pinning_outside_bazel_says_so_once(built, monkeypatch, capsys):
    monkeypatch.delenv("BUILD_WORKSPACE_DIRECTORY", raising=False)
    assert run(["sweep-pin", built[0], "--ledger=x"]) == exit_codes.USAGE
    assert capsys.readouterr().err.count("BUILD_WORKSPACE_DIRECTORY is not set") == 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

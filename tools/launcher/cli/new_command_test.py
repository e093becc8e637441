"""`new`: what it makes builds at once, and what it refuses to make."""

import ast
import itertools
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.cli import exit_codes, sweep_writer
from tools.launcher.cli.commands import run
from tools.launcher.cli.new_templates import FILES, TEMPLATES
from tools.launcher.cli.preflight_action import OUTPUTS, main

VERSION = "2026.12.01"
LISTS = ("tests/lint/packages.bzl", "tests/goldens/BUILD.bazel", "experiments/BUILD.bazel")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A workspace with the lists of the real one; `bazel run` says where it is."""
    for file in (*LISTS, "tools/launcher/defs.bzl"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file)
    (tmp_path / "MODULE.bazel").touch()
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)
    return tmp_path


def declared(folder: Path) -> dict[str, Any]:
    """The attributes of the experiment or sweep; BUILD.bazel reads as Python."""
    calls = [
        each
        for each in ast.walk(ast.parse((folder / "BUILD.bazel").read_text()))
        if isinstance(each, ast.Call)
    ]
    (call,) = (each for each in calls if ast.unparse(each.func) in ("rl_experiment", "rl_sweep"))
    return {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}


def preflight(folder: Path, name: str, options: dict[str, str]) -> int:
    """The real build action, with what BUILD.bazel declares; it writes into a folder called `name`."""
    attributes = declared(folder)
    (model,), (data,) = attributes["models"], attributes["datasets"]
    cards = {"cluster": attributes["cluster"], "model": model, "dataset": data}
    out = folder / name
    out.mkdir()
    return main(
        [
            f"--label=//experiments/{folder.name}:{name}",
            f"--main={folder / 'experiment.py'}",
            f"--version={attributes['version']}",
            "--stage=rl",
            *(f"--option={option}={value}" for option, value in options.items()),
            "--runtime=third_party/marinskyrl/81ae0ef7.yaml",
            *(f"--{kind}={label[2:].replace(':', '/')}.yaml" for kind, label in cards.items()),
            *(f"--{output}_out={out / output}" for output in OUTPUTS),
        ]
    )


def made(template: str, checkout: Path) -> Path:
    """The folder of a new experiment."""
    assert run(["new", "my_first", f"--template={template}", f"--version={VERSION}"]) == exit_codes.OK
    folder = checkout / "experiments/my_first"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert not any(re.search("@[A-Z]+@", (folder / file).read_text()) for file in FILES)
    return folder


RATE = "trainer.policy.optimizer_config.lr"


def rate_of(out: Path) -> float:
    settings = json.loads((out / "plan").read_bytes())["detail"]["settings"]
    (rate,) = (each["value"] for each in settings if each["path"] == RATE)
    return float(rate)


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name != "sweep"])
def test_what_is_made_passes_the_build_action_without_a_warning(template, checkout, capsys):
    folder = made(template, checkout)
    capsys.readouterr()
    assert preflight(folder, "my_first", declared(folder)["options"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert f"experiments/my_first/{VERSION}" in (folder / "my_first/launch").read_text()
    assert rate_of(folder / "my_first") == 1e-6
    assert '"lr": 1.0e-6' in (folder / "experiment.py").read_text()


def test_a_sweep_that_is_made_plans_all_its_points(checkout, capsys):
    folder = made("sweep", checkout)
    axes = declared(folder)["axes"]
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    capsys.readouterr()
    given = []
    for number, values in enumerate(points):
        assert preflight(folder, f"point_{number}", values) == 0
        out = folder / f"point_{number}"
        assert rate_of(out) == float(values["learning_rate"])
        read = {kind: str(out / kind) for kind in ("digest", "graph", "launch", "plan")}
        label = f"//experiments/my_first:point_{number}"
        case = {"point": f"point_{number}", "values": values}
        point = {"case": case, "files": read, "graph": read["graph"], "label": label, "plan": read["plan"]}
        given.append(f"--point={json.dumps(point)}")
    assert "warning" not in capsys.readouterr().err
    table = folder / "my_first.sweep.json"
    assert sweep_writer.main(["--sweep=//experiments/my_first", *given, f"--out={table}"]) == 0
    assert run(["sweep-plan", f"--sweep={table}", "--cluster=third_party/clusters/local.yaml"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"//experiments/my_first: 4 points, version {VERSION}, on local\n")


def test_a_sweep_has_no_golden(checkout, capsys):
    before = snapshot(checkout)
    assert run(["new", "my_first", "--template=sweep", "--golden"]) == exit_codes.USAGE
    assert "error: --golden: the template sweep makes many documents" in capsys.readouterr().err
    assert snapshot(checkout) == before


def entries(text: str, opening: str) -> list[str]:
    """The entries of a Starlark list of texts."""
    after = text[text.index(opening) :]
    return re.findall(r'"(.*)"', after[: after.index("]")])


def test_it_is_in_every_list_at_its_sorted_place(checkout, capsys):
    assert run(["new", "dog_count", "--golden", f"--version={VERSION}"]) == exit_codes.OK
    said = capsys.readouterr().out
    for file, opening, entry in (
        (LISTS[0], "PACKAGES = [", "experiments/dog_count"),
        (LISTS[1], "EXPERIMENTS = [", "//experiments/dog_count"),
        (LISTS[2], "experiments = [", "//experiments/dog_count"),
    ):
        listed = entries((checkout / file).read_text(), opening)
        assert entry in listed and listed == sorted(listed), file
        assert len(listed) == len(entries(Path(file).read_text(), opening)) + 1
        assert f"added to: {file}" in said
    folder = checkout / "experiments/dog_count"
    assert (folder / "golden/launch.yaml").read_bytes() == b""
    assert declared(folder)["golden"] == "golden/launch.yaml"
    assert "tools/bazel build //experiments/dog_count\n" in said and "//tests/goldens:update" in said


def test_without_a_golden_its_list_stays_as_it_is(checkout):
    before = (checkout / LISTS[1]).read_bytes()
    assert run(["new", "dog_count"]) == exit_codes.OK
    assert (checkout / LISTS[1]).read_bytes() == before


def test_a_list_that_is_not_as_expected_is_left_to_people(checkout, capsys):
    (checkout / LISTS[0]).write_text("PACKAGES = packages()\n")
    (checkout / LISTS[2]).unlink()
    assert run(["new", "dog_count"]) == exit_codes.OK
    said = capsys.readouterr().out
    assert f'add by hand, to {LISTS[0]}: "experiments/dog_count",' in said
    assert f'add by hand, to {LISTS[2]}: "//experiments/dog_count",' in said
    assert (checkout / LISTS[0]).read_text() == "PACKAGES = packages()\n"


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Everything below a folder."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def test_a_dry_run_tells_and_writes_nothing(checkout, capsys):
    before = snapshot(checkout)
    assert run(["new", "dog_count", "--dry-run"]) == exit_codes.OK
    said = capsys.readouterr().out
    assert "would write: experiments/dog_count/experiment.py\n" in said
    assert f"would add to: {LISTS[0]}\n" in said and said.endswith("dry run: nothing is written\n")
    assert snapshot(checkout) == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "Dog-Count",
            "error: 'Dog-Count' is no name of an experiment. Use lower-case letters, digits and '_', a",
        ),
        ("Dog-Count", " letter first, such as 'dog_count'"),
        ("1st", "such as 'my_1st'"),
        ("../up", "such as 'up'"),
        ("Ärger", "such as 'rger'"),
        ("a" * 41, "has 41 characters, and 40 fit into the name of a job. Choose a shorter one"),
        (
            "plan",
            "error: 'plan' is a target that every experiment has. Choose another name, such as 'my_plan'",
        ),
        ("class", "error: 'class' is a word of Python. Choose another name, such as 'my_class'"),
    ],
)
def test_a_bad_name_is_refused_with_a_better_one(name, sentence, checkout, capsys):
    before = snapshot(checkout)
    assert run(["new", name]) == exit_codes.USAGE
    assert sentence in capsys.readouterr().err
    assert snapshot(checkout) == before


@pytest.mark.parametrize(
    ("version", "why"),
    [("dev", "is not fixed"), ("2026.02.30", "2026-02 has no day 30"), ("v1", "is neither YYYY.MM.DD")],
)
def test_a_bad_version_is_refused(version, why, checkout, capsys):
    assert run(["new", "dog_count", f"--version={version}"]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert why in said and "Give a day, such as 2026.11.30, or leave it out" in said
    assert not (checkout / "experiments/dog_count").exists()


@pytest.mark.parametrize("there", ["folder", "file", "broken link"])
def test_what_exists_is_refused(there, checkout, capsys):
    place = checkout / "experiments/dog_count"
    {"folder": place.mkdir, "file": place.touch, "broken link": lambda: place.symlink_to("nowhere")}[there]()
    before = snapshot(checkout)
    assert run(["new", "dog_count"]) == exit_codes.REFUSED
    said = capsys.readouterr().err
    assert said == (
        "refused: experiments/dog_count exists. Nothing is overwritten: choose another name, or remove it\n"
    )
    assert snapshot(checkout) == before


@pytest.mark.parametrize("missing", ["MODULE.bazel", "tools/launcher/defs.bzl"])
def test_outside_of_a_workspace_it_is_wrong_usage(missing, checkout, capsys):
    (checkout / missing).unlink()
    assert run(["new", "dog_count"]) == exit_codes.USAGE
    assert f"{checkout} has no {missing}, so it is no workspace of this launcher" in capsys.readouterr().err


def test_a_folder_that_appears_meanwhile_is_left_alone(checkout, capsys, monkeypatch):
    place = checkout / "experiments/dog_count"
    real = Path.rename

    def late(self, target):
        place.mkdir()
        (place / "theirs").touch()
        return real(self, target)

    monkeypatch.setattr(Path, "rename", late)
    assert run(["new", "dog_count"]) == exit_codes.REFUSED
    assert "was made by somebody else just now. Choose another name" in capsys.readouterr().err
    assert [path.name for path in place.iterdir()] == ["theirs"]
    assert sorted(path.name for path in (checkout / "experiments").iterdir()) == ["BUILD.bazel", "dog_count"]


def test_an_interrupted_call_leaves_nothing(checkout, monkeypatch):
    def interrupted(self, target):
        raise KeyboardInterrupt

    before = snapshot(checkout)
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["new", "dog_count"])
    assert snapshot(checkout) == before


def test_a_disk_that_takes_nothing_is_a_sentence(checkout, capsys, monkeypatch):
    def full(self, *_, **__):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    assert run(["new", "dog_count"]) == exit_codes.UNKNOWN
    said = capsys.readouterr().err
    assert "No space left on device. Nothing was made" in said
    assert not (checkout / "experiments/dog_count").exists()


def test_a_list_that_cannot_be_written_is_named_with_its_line(checkout, capsys, monkeypatch):
    def refused(path, data):
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr("tools.launcher.cli.new_scaffold.write_atomically", refused)
    assert run(["new", "dog_count"]) == exit_codes.USAGE
    assert (
        f"experiments/dog_count is made, and {LISTS[0]} could not be written (Read-only file system). Add to its "
        'list: "experiments/dog_count",'
    ) in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

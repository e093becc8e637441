"""`import-runtime` from the command line: its output word for word, and every way in which it refuses."""

import shutil
import sys

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.runtime_import.checkout_for_test import (
    BASE,
    COMMIT,
    ENVIRONMENTS,
    ESTIMATORS,
    PINNED_FILE,
    REDUCTION,
    REGISTRY,
    TRANSLATION,
    pinned,
    write,
    write_checkout,
)

_CONFIG = "skyrl-train/skyrl_train/config"
_SHARED = "marinskyrl/speculative_decoding.py"


@pytest.fixture(scope="module", name="template")
def _template(tmp_path_factory):
    return write_checkout(tmp_path_factory.mktemp("checkout"), pinned())


@pytest.fixture(name="here")
def _here(tmp_path, monkeypatch, template):
    """A folder with a checkout, its commit, and one experiment; commands start in it."""
    shutil.copytree(template, tmp_path / "checkout")
    write(tmp_path, "checkout/.git/HEAD", f"{COMMIT}\n")
    document = {
        "runtime": {"entrypoint": ""},
        "skyrl": {"context_budget": {}, "trainer": {"log_level": "INFO"}},
    }
    write(tmp_path, "experiments/maze/golden/launch.yaml", dump_yaml(document))
    (tmp_path / "third_party/marinskyrl").mkdir(parents=True)
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    return tmp_path


def imported(*flags, commit=COMMIT):
    return run(
        ["import-runtime", "--checkout=checkout", f"--commit={commit}", f"--pinned={PINNED_FILE}", *flags]
    )


def change(here):
    text = (here / "checkout" / BASE).read_text()
    text = text.replace("  log_level: INFO\n", "  log_depth: 3\n").replace("  epochs: 1\n", "  epochs: 2\n")
    write(here / "checkout", BASE, text)
    write(here / "checkout", TRANSLATION, "x = (\n")


def test_the_output_of_a_changed_checkout(here, capsys):
    change(here)
    assert imported("--marin_core=0.2.211", "--out=experiments/manifest.yaml") == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    taken = [line for line in lines if line.startswith("taken over")]
    assert [line for line in lines if line not in taken] == [
        f"commit: {COMMIT}, as .git says",
        f"compared with: {PINNED_FILE.name}",
        "read: 8 files",
        f"  {ENVIRONMENTS}",
        f"  {_CONFIG}/deepspeed_config/eval.yaml",
        f"  {_CONFIG}/deepspeed_config/train.yaml",
        f"  {BASE}",
        f"  {_CONFIG}/skyrl_gym_config/default.yaml",
        f"  {ESTIMATORS}",
        f"  {REGISTRY}",
        f"  {REDUCTION}",
        "keys added: 1",
        "  trainer.log_depth: int, default 3",
        "keys removed: 1",
        "  trainer.log_level",
        "defaults moved: 1",
        "  trainer.epochs: 1 -> 2",
        "other facts changed: 1",
        "  env_classes_complete: false -> true",
        "experiments touched: 1 of 1",
        "  experiments/maze/golden/launch.yaml",
        "    sets trainer.log_level, which is gone",
        "    relies on the default of trainer.epochs, which moves from 1 to 2",
        f"written: {here}/experiments/manifest.yaml",
    ]
    unread = f"({TRANSLATION} is not readable Python at line 1)"
    assert taken[:4] == [
        f"taken over, not read: {field} {unread}"
        for field in ("engine_init_kwargs_forbidden", "entrypoints", "open_path_patterns", "open_roots")
    ]
    assert taken[4].startswith("taken over, not read: ") and "recipe_enums, recipe_top_level" in taken[4]
    assert (here / "experiments/manifest.yaml").read_text().startswith("# yaml-language-server: ")


def test_a_dry_run_writes_nothing(here, capsys):
    assert imported("--dry_run") == exit_codes.OK
    output = capsys.readouterr().out
    assert output.endswith("not written: --dry_run\n") and "keys added" not in output
    assert "experiments touched: 0 of 1\n" in output
    assert "taken over, not read: marin_core (--marin_core gives it)\n" in output
    assert list((here / "third_party/marinskyrl").iterdir()) == []


def test_without_out_the_manifest_goes_where_the_project_keeps_its_own(here, capsys):
    assert imported() == exit_codes.OK
    place = here / "third_party/marinskyrl" / f"{COMMIT[:8]}.yaml"
    assert capsys.readouterr().out.endswith(f"written: {place}\n") and place.is_file()
    assert imported() == exit_codes.USAGE
    assert (
        f"{place}: there is a file already. Name another one with --out, or add --overwrite"
        in capsys.readouterr().err
    )


def test_a_place_without_its_folder_is_refused(here, capsys):
    assert imported("--out=nowhere/new.yaml") == exit_codes.USAGE
    assert f"there is no folder {here}/nowhere. Correct --out" in capsys.readouterr().err


def test_a_second_import_of_the_written_manifest_differs_in_nothing(here, capsys):
    assert imported("--out=new.yaml") == exit_codes.OK
    assert imported("--pinned=new.yaml", "--dry_run") == exit_codes.OK
    assert "\nno differences to marinskyrl-01234567\nnot written" in capsys.readouterr().out


def test_a_checkout_without_git_metadata_is_read_and_said_so(here, capsys):
    (here / "checkout/.git/HEAD").unlink()
    assert imported() == exit_codes.OK
    assert "not verified: the checkout has no git metadata that says its commit" in capsys.readouterr().out


def test_a_file_is_replaced_only_when_asked(here, capsys):
    write(here, "new.yaml", "mine\n")
    assert imported("--out=new.yaml") == exit_codes.USAGE
    assert (
        "new.yaml: there is a file already. Name another one with --out, or add --overwrite"
        in capsys.readouterr().err
    )
    assert (here / "new.yaml").read_text() == "mine\n"
    assert imported("--out=new.yaml", "--overwrite") == exit_codes.OK
    assert (here / "new.yaml").read_text() != "mine\n"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--commit=0123"], "--commit=0123: not a full commit. Give the 40 hexadecimal digits"),
        (
            ["--commit=" + "f" * 40],
            f"git has {COMMIT} checked out, --commit says {'f' * 40}. Check that commit out",
        ),
        (["--checkout=nowhere"], "nowhere: there is no such folder. Give the checkout of MarinSkyRL"),
        (["--checkout=experiments"], "experiments: there is no skyrl_train/config/ppo_base_config.yaml"),
        (["--pinned=nowhere.yaml"], "nowhere.yaml: there is no such file. Give a runtime manifest"),
        (
            ["--pinned=experiments/maze/golden/launch.yaml"],
            "launch.yaml: kind is None, expected 'runtime_manifest'",
        ),
        (
            ["--experiments=checkout/marinskyrl"],
            "--experiments=checkout/marinskyrl: there is no launch document",
        ),
        (
            ["--experiments=checkout/marinskyrl/speculative_decoding.py"],
            "speculative_decoding.py: the document is a",
        ),
        (
            [f"--experiments={PINNED_FILE}"],
            f"{PINNED_FILE}: this is no launch document, it has no skyrl section. Name a launch.yaml",
        ),
    ],
)
def test_wrong_usage(here, capsys, flags, sentence):
    assert imported("--out=new.yaml", *flags) == exit_codes.USAGE
    assert sentence in capsys.readouterr().err
    assert not (here / "new.yaml").exists()


def test_experiments_may_be_named_as_files_and_as_folders(here, capsys):
    change(here)
    write(here, "built/maze.launch.yaml", "skyrl: {trainer: {epochs: 4}}\n")
    write(here, "built/deep/launch.yaml", "skyrl: {}\n")
    assert imported("--experiments=built", "--experiments=built/maze.launch.yaml") == exit_codes.OK
    output = capsys.readouterr().out
    assert "experiments touched: 1 of 3\n  built/deep/launch.yaml\n    relies on" in output


def test_too_many_documents_are_refused(here, capsys, monkeypatch):
    monkeypatch.setattr("tools.launcher.cli.import_runtime_command._MOST_DOCUMENTS", 0)
    assert imported() == exit_codes.USAGE
    assert "--experiments names 1 launch documents, the limit is 0" in capsys.readouterr().err


def test_a_project_without_a_manifest_asks_for_one(here, capsys, monkeypatch):
    monkeypatch.setattr("tools.launcher.cli.import_runtime_command.shipped_files", lambda: ())
    assert run(["import-runtime", "--checkout=checkout", f"--commit={COMMIT}"]) == exit_codes.USAGE
    assert "the project has no runtime manifest. Name one with --pinned" in capsys.readouterr().err


def test_the_newest_other_manifest_is_compared_with(here, capsys, monkeypatch):
    text = PINNED_FILE.read_text()
    files = []
    for name, release in (("11111111", "0.2.9"), ("22222222", "0.2.10"), (COMMIT[:8], "0.3.0")):
        write(here, f"shipped/{name}.yaml", text.replace("marin_core: 0.2.210", f"marin_core: {release}"))
        files.append(here / f"shipped/{name}.yaml")
    monkeypatch.setattr("tools.launcher.cli.import_runtime_command.shipped_files", lambda: tuple(files))
    assert run(["import-runtime", "--checkout=checkout", f"--commit={COMMIT}", "--dry_run"]) == exit_codes.OK
    assert "\ncompared with: 22222222.yaml\n" in capsys.readouterr().out


def test_the_project_s_manifest_is_found(here, capsys):
    assert run(["import-runtime", "--checkout=checkout", f"--commit={COMMIT}", "--dry_run"]) == exit_codes.OK
    assert f"compared with: {PINNED_FILE.name}" in capsys.readouterr().out


def test_terminal_codes_of_a_checkout_are_not_printed(here, capsys):
    change(here)
    text = (here / "checkout" / BASE).read_text()
    write(here / "checkout", BASE, text.replace("log_depth: 3", 'log_depth: "\\e[31m"'))
    assert imported() == exit_codes.OK
    assert "trainer.log_depth: str, default  [31m\n" in capsys.readouterr().out


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

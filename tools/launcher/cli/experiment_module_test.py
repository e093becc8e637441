"""What goes wrong in an experiment's own code is said with its line and what to do, in words of the project."""

import sys
from pathlib import Path

import pytest

from tools.launcher.cli.experiment_module import ExperimentError, load_experiment

HERE = Path("team/x/experiment.py")
OWN_FILE = "List the file in srcs and import it by its path from the workspace root, such as experiments.team.recipes"
OUTSIDE = (
    "Packages from elsewhere are not there: an experiment has Python's own library and tools.launcher.rl"
)
INPUT = (
    "A build action reads the files that its target names. Write it into the experiment, a card or an option"
)
ENVIRONMENT = (
    "the experiment reads the environment variable 'NO_SUCH_VARIABLE'. A build action has none of yours. "
    "Write its value into the experiment or an option"
)
ROLE_PLAN = "from tools.launcher.rl import SkyRLRolePlan\nSkyRLRolePlan("


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import numpy_of_none", f"No module named 'numpy_of_none'. {OWN_FILE}. {OUTSIDE}"),
        (
            "from marin.rl.skyrl import SkyRLSpec",
            "No module named 'marin'. Import its types from tools.launcher.rl; docs/from-marin.md says what differs",
        ),
        ("from .helper import x", f"attempted relative import with no known parent package. {OWN_FILE}"),
        (
            "from tools.launcher.rl import SkyRLSpecs",
            "ImportError: cannot import name 'SkyRLSpecs' from 'tools.launcher.rl'. Did you mean: 'SkyRLSpec'?",
        ),
        (
            "schedule = 1\nprint(schedul)",
            "NameError: name 'schedul' is not defined. Did you mean: 'schedule'?",
        ),
        ("'x'.joinn([])", "AttributeError: 'str' object has no attribute 'joinn'. Did you mean: 'join'?"),
        ("open('data.txt')", f"the experiment reads 'data.txt', which is not there. {INPUT}"),
        (
            "import os; os.environ['NO_SUCH_VARIABLE']",
            ENVIRONMENT,
        ),
        ("{}['NO_SUCH_VARIABLE']", "KeyError: 'NO_SUCH_VARIABLE'"),
    ],
)
def test_an_error_has_its_line_and_what_to_do(tmp_path, monkeypatch, code, sentence):
    assert (
        _refusal(tmp_path, monkeypatch, code) == f"team/x/experiment.py:{code.count(chr(10)) + 1}: {sentence}"
    )


def test_a_field_that_is_misspelt_is_named_with_the_one_that_is_meant(tmp_path, monkeypatch):
    said = _refusal(tmp_path, monkeypatch, ROLE_PLAN + "micro_batch_size_per_gpu=1, train_batch_size='32')")
    assert said.startswith("team/x/experiment.py:2: SkyRLRolePlan is not well-typed:\n")
    assert "\n    SkyRLRolePlan.micro_train_batch_size_per_gpu: it is missing, and has no default\n" in said
    assert (
        "\n    SkyRLRolePlan.train_batch_size: Input should be a valid integer, got '32'. Write 32 without quotes\n"
        in said
    )
    assert said.endswith(
        "\n    SkyRLRolePlan.micro_batch_size_per_gpu: there is no such field "
        "(did you mean micro_train_batch_size_per_gpu?)"
    )


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("seed=17.0", "seed: Input should be a valid integer, got 17.0. Write 17"),
        ("seed=1.5", "seed: Input should be a valid integer, got 1.5"),
        ("seed='many'", "seed: Input should be a valid integer, got 'many'"),
        (
            "train_data=[]",
            (
                "train_data: Input should be a valid tuple, got a list. Write (a, b) in the place of [a, b]; "
                "a tuple of one has a comma: (a,)"
            ),
        ),
        (
            "train_data=(1)",
            "train_data: Input should be a valid tuple, got 1. A tuple of one has a comma: (a,)",
        ),
    ],
)
def test_a_value_of_another_type_is_shown_as_it_is_written(tmp_path, monkeypatch, argument, sentence):
    said = _refusal(tmp_path, monkeypatch, f"from tools.launcher.rl import SkyRLSpec\nSkyRLSpec({argument})")
    assert f"    SkyRLSpec.{sentence}" in said.splitlines()


def test_a_question_of_python_ends_as_a_sentence(tmp_path, monkeypatch):
    said = _refusal(tmp_path, monkeypatch, "print(1 1)")
    assert (
        said
        == "team/x/experiment.py:1: invalid syntax. Perhaps you forgot a comma. Correct the Python source"
    )


def _refusal(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    monkeypatch.chdir(folder)
    HERE.parent.mkdir(parents=True)
    HERE.write_text(code + "\n")
    with pytest.raises(ExperimentError) as caught:
        load_experiment(HERE)
    return str(caught.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

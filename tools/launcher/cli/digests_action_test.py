"""Digests of many experiments in one action: those of a preflight of each, whatever the others do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.cli import digests_action
from tools.launcher.cli.affected_outputs import digests_of_outputs
from tools.launcher.cli.card_reader import CardReader
from tools.launcher.cli.preflight_process_testlib import (
    ARGUMENTS,
    BINARY,
    CARDS,
    EXPERIMENT,
    changed,
    folder,
    one_shot,
    start_worker,
    with_code,
)

SHARED = [it for it in ARGUMENTS if it.partition("=")[0] not in ("--label", "--main") and "_out=" not in it]
WHICH_PROCESS = with_code("import os\nraise ValueError(eval('os.getpid()'))")
"""An experiment that is refused with the number of the process it is in. `eval` is not the experiment's own code."""
HARMLESS = with_code("import colorsys, math\nfrom tools.launcher.rl import SkyRLSpec")


def request(name: str, *sources: str) -> list[str]:
    declared = [f"--src=experiments/{source}" for source in sources]
    return [f"--label=//experiments/{name}", f"--main=experiments/{name}/experiment.py", *declared, *SHARED]


def place_of(tmp_path: Path, **experiments: str) -> Path:
    """A folder of the declared inputs of several experiments."""
    place = tmp_path / "main"
    folder(place)
    for name, source in experiments.items():
        (place / "experiments" / name).mkdir()
        (place / "experiments" / name / "experiment.py").write_text(source)
    return place


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Return the manifest of experiments, given by name and source."""

    def manifest(**experiments: str) -> dict[str, Any]:
        place = place_of(tmp_path, **experiments)
        monkeypatch.chdir(place)
        asked = [argument for name in experiments for argument in request(name)]
        assert digests_action.main(["--digests_out=out", *asked], CardReader(), tmp_path / "scratch") == 0
        written = json.loads((place / "out").read_text())
        assert written.keys() == {"experiments", "refused", "schema"}
        return written

    return manifest


def alone(tmp_path: Path, source: str | None = None) -> dict[str, str | None]:
    """The digests that a preflight of its own gives."""
    place = folder(tmp_path / "alone", source)
    assert one_shot(place).returncode == 0
    digest, graph = (Path(place, f"out.{name}").read_bytes() for name in ("digest", "graph"))
    return digests_of_outputs(digest, graph).model_dump()


SEED = changed(("seed=17,", "seed=18,"))


def test_they_are_those_of_a_preflight_of_each(told, tmp_path):
    other = alone(tmp_path / "other", SEED)
    same = alone(tmp_path / "same")
    assert other != same
    written = told(a=EXPERIMENT.read_text(), b=SEED, c=HARMLESS)
    assert written["experiments"] == {
        "//experiments/a": same,
        "//experiments/b": other,
        "//experiments/c": same,
    }
    assert written["refused"] == {}


def test_one_process_plans_them_all(told):
    refused = changed(("num_inference_engines=8", "num_inference_engines=7"))
    written = told(a=WHICH_PROCESS, b=HARMLESS, r=refused, c=WHICH_PROCESS)
    assert process_of(written, "a") == process_of(written, "c")


def process_of(written: dict[str, Any], name: str) -> int:
    """The number that WHICH_PROCESS is refused with."""
    return int(written["refused"][f"//experiments/{name}"].rpartition(" ")[2])


LEAVES = {
    "chance": "import random\nrandom.seed(7)",
    "environment": "import os\nos.environ['SEED'] = '7'",
    "module": "import json\njson.load = None",
    "own module": "from tools.launcher.documents import canonical\ncanonical.digest_of = len",
    "class": "from tools.launcher.rl import SkyRLSpec\nSkyRLSpec.model_post_init = print",
    "card": "inputs.runtime.recipe_keys.clear()",
    "context": "import decimal\ndecimal.getcontext().prec = 2",
    "path": "import sys\nsys.path.insert(0, 'experiments')",
    "modules": "import sys\nsys.modules['math'] = sys",
    "warnings": "import warnings\nwarnings.simplefilter('error')",
    "end": "import os\nos._exit(0)",
}


@pytest.mark.parametrize("code", LEAVES.values(), ids=LEAVES)
def test_one_that_leaves_something_behind_makes_no_difference(told, tmp_path, code):
    expected = alone(tmp_path)
    written = told(a=WHICH_PROCESS, b=with_code(code), c=EXPERIMENT.read_text(), d=WHICH_PROCESS)
    assert written["experiments"]["//experiments/c"] == expected
    assert process_of(written, "a") != process_of(written, "d")


def test_one_that_ends_its_process_is_refused(told):
    written = told(a=with_code("import os\nos._exit(3)"), b=EXPERIMENT.read_text())
    assert written["refused"] == {
        "//experiments/a": "its process ends before it is planned (exit status 3). Return the terminal step from main(), "
        "or raise an ordinary error"
    }
    assert list(written["experiments"]) == ["//experiments/b"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import os, signal\nos.kill(eval('os.getpid()'), signal.SIGKILL)",
            "error: //experiments/b: its process was ended by signal 9 before it was planned\n",
        ),
        (
            "import tools.launcher.cli.digests_action as ours\nours.judge_experiment = None",
            "error: //experiments/b: preflight itself fails, as told above\n",
        ),
    ],
)
def test_what_may_go_well_the_next_time_is_no_refusal(tmp_path, monkeypatch, capfd, code, sentence):
    """A manifest is kept, in caches that others read too: memory that was short once is not to stand there."""
    place = place_of(tmp_path, a=EXPERIMENT.read_text(), b=with_code(code))
    monkeypatch.chdir(place)
    asked = ["--digests_out=out", *request("a"), *request("b")]
    assert digests_action.main(asked, CardReader(), tmp_path / "scratch") == 1
    assert not (place / "out").exists()
    assert capfd.readouterr().err.endswith(sentence)


def test_a_part_of_a_package_that_another_imports_is_not_there(told):
    importing = with_code("import logging.handlers")
    using = with_code("import logging\nlogging.handlers.MemoryHandler(3)")
    written = told(a=importing, b=using)
    assert list(written["experiments"]) == ["//experiments/a"]
    assert "has no attribute 'handlers'" in written["refused"]["//experiments/b"]


def test_a_ledger_that_makes_a_card_forgotten_is_no_change(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.launcher.cli.card_reader.MOST_REMEMBERED", len(CARDS))
    place = place_of(tmp_path, a=WHICH_PROCESS, b=WHICH_PROCESS)
    monkeypatch.chdir(place)
    (place / "ledger.yaml").write_text("schema: 1\nversions: {}\n")
    asked = [argument for name in "ab" for argument in [*request(name), "--ledger=ledger.yaml"]]
    assert digests_action.main(["--digests_out=out", *asked], CardReader(), tmp_path / "scratch") == 0
    written = json.loads((place / "out").read_text())
    assert process_of(written, "a") == process_of(written, "b")


def test_what_is_refused_has_its_first_sentence(told):
    engines = changed(("num_inference_engines=8", "num_inference_engines=7"))
    written = told(
        a=engines, b=with_code("raise ValueError('no\\nmore')"), c=with_code("import time; time.time()")
    )
    refused = written["refused"]
    assert refused["//experiments/a"].startswith("GEO-08 at skyrl.generator.num_inference_engines: ")
    assert refused["//experiments/b"].startswith("experiments/b/experiment.py:")
    assert refused["//experiments/b"].endswith(": ValueError: no")
    assert "the experiment asks what time it is" in refused["//experiments/c"]


def test_each_finds_its_own_sources_only(tmp_path, monkeypatch):
    importing = with_code("from experiments.parts.recipes import WHO\nWHO.append(1)\nassert WHO == [1]")
    reading = with_code("open('experiments/parts/recipes.py')")
    place = place_of(tmp_path, a=importing, b=importing, c=reading, d=importing)
    (place / "experiments/parts").mkdir()
    (place / "experiments/parts/recipes.py").write_text("WHO = []\n")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")  # as $TMPDIR is on macOS
    monkeypatch.chdir(place)
    asked = [
        *request("a", "parts/recipes.py"),
        *request("b"),
        *request("c"),
        *request("d", "parts/recipes.py"),
    ]
    assert (
        digests_action.main(["--digests_out=out", *asked], CardReader(), tmp_path / "link" / "scratch") == 0
    )
    written = json.loads((place / "out").read_text())
    assert list(written["experiments"]) == ["//experiments/a", "//experiments/d"], written["refused"]
    assert "No module named 'experiments.parts'" in written["refused"]["//experiments/b"]
    assert "which is not there" in written["refused"]["//experiments/c"]


def test_a_card_that_cannot_be_read_refuses_those_that_name_it(tmp_path, monkeypatch):
    place = place_of(tmp_path, a=EXPERIMENT.read_text(), b=EXPERIMENT.read_text())
    (place / "bad.yaml").write_text("kind: [")
    monkeypatch.chdir(place)
    bad = [it.replace(CARDS["cluster"], "bad.yaml") for it in request("a")]
    assert (
        digests_action.main(["--digests_out=out", *bad, *request("b")], CardReader(), tmp_path / "scratch")
        == 0
    )
    written = json.loads((place / "out").read_text())
    assert list(written["experiments"]) == ["//experiments/b"]
    assert written["refused"]["//experiments/a"].startswith("bad.yaml")


def test_a_process_and_the_worker_write_the_same(tmp_path):
    place = place_of(tmp_path, a=EXPERIMENT.read_text(), b=SEED, c=with_code("random"))
    asked = [argument for name in "abc" for argument in request(name)]
    (place / "params").write_text("\n".join(["--digests_out=one", *asked]) + "\n")
    done = subprocess.run(
        [sys.executable, BINARY, "@params"],
        cwd=place,
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with start_worker(tmp_path / "log", place) as worker:
        for number, name in enumerate(("two", "three")):
            answer = worker.call(f"--digests_out={name}", *asked)
            assert answer == {"requestId": 1, "exitCode": 0, "output": ""}, number
        assert worker.call("--digests_out=merged", "--part=one", "--part=two")["exitCode"] == 0
        worker.close_input()
        assert worker.ended() == 0
    one = (place / "one").read_bytes()
    assert json.loads(one)["refused"].keys() == {"//experiments/c"}
    assert all((place / name).read_bytes() == one for name in ("two", "three", "merged"))


def test_parts_become_one_and_none_is_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    digests = {"version": "2026.11.30", "recipe": "a" * 64, "launch": "b" * 64, "graph": None}
    for name in "yx":
        content = {
            "schema": 1,
            "experiments": {f"//{name}:{name}": digests},
            "refused": {f"//{name}:bad": "why"},
        }
        Path(name).write_text(json.dumps(content))
    assert (
        digests_action.main(["--digests_out=all", "--part=y", "--part=x"], CardReader(), tmp_path / "s") == 0
    )
    written = json.loads(Path("all").read_text())
    assert list(written["experiments"]) == ["//x:x", "//y:y"]
    assert list(written["refused"]) == ["//x:bad", "//y:bad"]
    assert digests_action.main(["--digests_out=none"], CardReader(), tmp_path / "s") == 0
    assert json.loads(Path("none").read_text()) == {"schema": 1, "experiments": {}, "refused": {}}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

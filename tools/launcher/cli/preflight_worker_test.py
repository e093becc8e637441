"""The preflight binary as a worker: the bytes and words of one process, whatever came before."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tools.launcher.cli.preflight_action import OUTPUTS
from tools.launcher.cli.preflight_process_testlib import (
    ARGUMENTS,
    CARDS,
    EXPERIMENT,
    changed,
    folder,
    one_shot,
    outputs,
    start_worker,
    with_code,
)
from tools.launcher.cli.preflight_worker import quick_place
from tools.launcher.worker.worker_process_for_test import Alive, WorkerProcess


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with start_worker(tmp_path_factory.mktemp("worker") / "log") as process:
        yield process
        process.close_input()
        assert process.ended() == 0
        assert process.log.read_text() == ""


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The outputs of one process, and what it prints."""
    place = folder(tmp_path_factory.mktemp("one-shot"))
    done = one_shot(place)
    assert (done.returncode, done.stderr) == (0, "")
    written = outputs(place)
    assert set(written) == {f"out.{name}" for name in OUTPUTS}
    return written, done.stdout


def test_worker_and_one_process_write_the_same_bytes_and_words(worker, tmp_path, expected):
    place = folder(tmp_path)
    answer = worker.call(*ARGUMENTS, sandboxDir=place)
    assert answer == {"requestId": 1, "exitCode": 0, "output": expected[1]}
    assert outputs(place) == expected[0]
    assert not list(tmp_path.rglob("__pycache__"))


# What an experiment can see of the process, as text in a refusal. Calls in `eval` are no calls of its own file.
PROBE = """
import atexit, builtins, decimal, gc, json, locale, logging, os, random, resource, signal, sys, threading, warnings
from tools.launcher.catalog import cards
from tools.launcher.documents import canonical
mask = os.umask(0o22)
raise ValueError(json.dumps([
    sorted(sys.modules), sys.path, sys.argv[1:], sys.meta_path.__len__(), str(warnings.filters), sys.flags.ignore_environment,
    sorted(os.environ.items()), os.path.basename(eval("os.getcwd()")), mask, resource.getrlimit(resource.RLIMIT_CPU),
    sorted(vars(builtins)), builtins.len([1]), json.dumps({"a": 1.5}), canonical.canonical_json({"a": 1}).decode(),
    sorted(cards.ModelCard.model_fields), str(cards.ModelCard.model_config), repr(vars(cards).get("LEAK")),
    str(decimal.getcontext()), locale.setlocale(locale.LC_ALL), gc.isenabled(), gc.get_threshold(), gc.get_debug(),
    sys.getrecursionlimit(), [str(signal.getsignal(n)) for n in (2, 13, 15, 17)], signal.getitimer(0),
    threading.active_count(), logging.root.level, len(logging.root.handlers), atexit._ncallbacks(),
    eval("random.uniform(0, 1)") == random.Random(1).uniform(0, 1), sys.getswitchinterval(), str(sys.gettrace()), str(sys.excepthook),
    sys.dont_write_bytecode, sys.stdout.name, sys.stdin.read(),
]))
"""
HOSTILE = """
import atexit, builtins, decimal, gc, json, locale, logging, os, random, resource, signal, sys, threading, warnings
import tools.launcher.cli.preflight_action as action, tools.launcher.cli.plan_experiment as plan
from tools.launcher.catalog import cards
from tools.launcher.documents import canonical
sys.path[:] = ["/nowhere"]; sys.modules["leak"] = sys; sys.argv.append("leak"); sys.meta_path.append(None)
warnings.simplefilter("error"); os.environ.clear(); os.environ["LEAK"] = "1"; os.chdir("/"); os.umask(0o777)
resource.setrlimit(resource.RLIMIT_CPU, (500, 600)); cards.LEAK = 1
cards.ModelCard.__pydantic_fields__.clear(); cards.ModelCard.model_config["extra"] = "allow"
decimal.getcontext().prec = 2; locale.setlocale(locale.LC_ALL, "C"); gc.disable(); gc.set_threshold(1)
sys.setrecursionlimit(400); signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN)
signal.setitimer(0, 500); threading.Thread(target=threading.Event().wait).start()
logging.root.setLevel(1); logging.root.addHandler(logging.NullHandler()); random.seed(1)
atexit.register(print, "leak"); sys.setswitchinterval(1); sys.excepthook = None; sys.settrace(None)
object.__setattr__(inputs.cluster, "marin_prefix", "s3://leak/leak")
for card in inputs.models.values(): object.__setattr__(card, "name", "leak")
canonical.canonical_json = canonical.digest_of = plan.dump_yaml = plan.judge = action.OUTPUTS = None
json.dumps = builtins.len = builtins.open = None; os.write(1, b"all done")
"""


def probed(worker: WorkerProcess, place: str) -> str:
    answer = worker.call(*ARGUMENTS, sandboxDir=place)
    assert answer["exitCode"] == 1
    _, _, text = str(answer["output"]).partition("ValueError: ")
    assert len(json.loads(text)) == 36
    return text


def test_a_hostile_experiment_changes_nothing_for_the_next(worker, tmp_path, expected):
    probing = folder(tmp_path / "here" / "x", with_code(PROBE))
    hostile = folder(tmp_path / "hostile", with_code(HOSTILE))
    victim = folder(tmp_path / "victim")
    before = probed(worker, probing)
    answer = worker.call(*ARGUMENTS, sandboxDir=hostile)
    assert answer["exitCode"] != 0 and answer["output"].startswith("all done")
    assert probed(worker, probing) == before
    assert worker.call(*ARGUMENTS, sandboxDir=victim)["output"] == expected[1]
    assert outputs(victim) == expected[0]


def test_a_hostile_experiment_changes_nothing_for_one_beside_it(worker, tmp_path, expected):
    alive = Alive(tmp_path)
    spoiling = f"alive = open({str(alive.pipe)!r}, 'rb')\n{HOSTILE}\nalive.read()"
    hostile = folder(tmp_path / "hostile", with_code(spoiling))
    victim = folder(tmp_path / "victim")
    worker.send(requestId=1, arguments=ARGUMENTS, sandboxDir=hostile)
    with alive.pipe.open("wb"):  # The first is at work until this ends.
        worker.send(requestId=2, arguments=ARGUMENTS, sandboxDir=victim)
        assert worker.answer() == {"requestId": 2, "exitCode": 0, "output": expected[1]}
    answer = worker.answer()
    assert answer["requestId"] == 1 and "all done" in answer["output"]
    assert outputs(victim) == expected[0]


def test_a_module_of_the_sources_is_read_anew_for_each(worker, tmp_path):
    importing = changed(
        ("STEPS = {", "from experiments.team.recipes import WHO\nraise ValueError(WHO)\nSTEPS = {")
    )
    for who in ("ada", "bob", "eve"):  # of one size, and perhaps of one second
        place = folder(tmp_path / who, importing)
        (tmp_path / who / "experiments/team").mkdir()
        (tmp_path / who / "experiments/team/recipes.py").write_text(f"WHO = {who!r}\n")
        answer = worker.call(*ARGUMENTS, sandboxDir=place)
        assert answer["exitCode"] == 1 and answer["output"].endswith(f"ValueError: {who}\n")
    place = folder(tmp_path / "without", importing)
    assert (
        "No module named 'experiments.team'. List the file in srcs"
        in worker.call(*ARGUMENTS, sandboxDir=place)["output"]
    )


def test_the_experiments_code_runs_in_a_child_only(worker, tmp_path):
    code = "import os\nraise ValueError(eval('f\"{os.getpid()} {os.getppid()}\"'))"
    output = worker.call(*ARGUMENTS, sandboxDir=folder(tmp_path, with_code(code)))["output"]
    process, parent = output.split()[-2:]
    assert process != parent == str(worker.pid)


def test_a_card_is_known_by_its_content(worker, tmp_path):
    place = folder(tmp_path)
    card = tmp_path / CARDS["cluster"]
    good, bare = card.read_bytes(), b"kind: cluster\nname: bare\n"
    for content, status in ((good, 0), (bare, 1), (good, 0), (b"kind: [", 1)):
        card.unlink()  # as links of a sandbox are replaced
        card.write_bytes(content)
        answer = worker.call(*ARGUMENTS, sandboxDir=place)
        assert answer["exitCode"] == status, answer
    card.unlink()
    output = worker.call(*ARGUMENTS, sandboxDir=place)["output"]
    assert f"{CARDS['cluster']} cannot be read: No such file or directory. Correct the label" in output
    assert place not in output  # the name is the action's, not that of a sandbox


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_refusal_has_all_violations_in_the_words_of_one_process(worker, tmp_path, form):
    source = changed(
        ("num_inference_engines=8", "num_inference_engines=7"),
        ("policy_mini_batch_size=16", "policy_mini_batch_size=12"),
    )
    place = folder(tmp_path, source)
    answer = worker.call(*ARGUMENTS, f"--format={form}", sandboxDir=place)
    assert answer["exitCode"] == 1 and "GEO-08" in answer["output"] and "BAT-01" in answer["output"]
    if form == "json":
        assert json.loads(answer["output"])["verdict"] == "reject"
    done = one_shot(place, f"--format={form}")
    assert (done.returncode, done.stdout + done.stderr) == (1, answer["output"])
    assert outputs(place) == {}


def test_wrong_usage_is_an_answer(worker):
    answer = worker.call("--label=x")
    assert answer["exitCode"] == 2
    assert "the following arguments are required: --main" in answer["output"]


def test_an_experiment_that_hangs_is_cancelled(worker, tmp_path, expected):
    alive = Alive(tmp_path)
    hanging = with_code(f"import os\nos.close(os.open({str(alive.pipe)!r}, os.O_RDONLY))\nwhile True: pass")
    worker.send(requestId=1, arguments=ARGUMENTS, sandboxDir=folder(tmp_path / "a", hanging))
    os.close(os.open(alive.pipe, os.O_WRONLY))  # it is there
    worker.send(requestId=1, cancel=True)
    assert worker.answer() == {"requestId": 1, "wasCancelled": True}
    answer = worker.call(*ARGUMENTS, sandboxDir=folder(tmp_path / "b"))
    assert answer == {"requestId": 1, "exitCode": 0, "output": expected[1]}


def test_what_is_no_protocol_ends_in_a_sentence(tmp_path):
    with start_worker(tmp_path / "log") as process:
        process.send_bytes(b"[]\n")
        assert process.ended() == 1
    assert process.log.read_text() == (
        "error: a work request is a list, not an object. "
        "Report it; until then build with --strategy=RlPreflight=sandboxed, which needs no worker\n"
    )


@pytest.fixture
def without_sandbox(tmp_path):
    """A worker which Bazel does not sandbox, in a folder with more than what is declared; its temporary files."""
    root, temporary = tmp_path / "_main", tmp_path / "temporary"
    temporary.mkdir()
    folder(root)
    (root / "experiments/gsm8k_grpo/steps.txt").write_text("100")
    (root / "experiments/gsm8k_grpo/undeclared.py").write_text("STEPS = 100\n")
    (root / "experiments/gsm8k_grpo/declared.py").write_text("STEPS = 'found'\n")
    with start_worker(tmp_path / "log", root, temporary) as process:
        yield process, root, temporary
        process.close_input()
        assert process.ended() == 0
        assert process.log.read_text() == ""
        assert list(temporary.iterdir()) == []


def test_without_a_sandbox_the_bytes_and_words_are_the_same(without_sandbox, expected):
    process, root, temporary = without_sandbox
    for _ in range(2):
        assert process.call(*ARGUMENTS) == {"requestId": 1, "exitCode": 0, "output": expected[1]}
        assert outputs(root) == expected[0]
        # The folder of a request goes with its answer.
        [folders] = temporary.iterdir()
        assert list(folders.iterdir()) == []
        for path in root.glob("out.*"):
            path.unlink()


def test_without_a_sandbox_a_card_is_read_for_each(without_sandbox, expected):
    process, root, _ = without_sandbox
    card = root / CARDS["cluster"]
    good, bare = card.read_bytes(), b"kind: cluster\nname: bare\n"
    for content, status in ((bare, 1), (good, 0)):
        card.write_bytes(content)
        assert process.call(*ARGUMENTS)["exitCode"] == status
    assert outputs(root) == expected[0]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            'open("experiments/gsm8k_grpo/steps.txt")',
            "the experiment reads 'experiments/gsm8k_grpo/steps.txt', which is not there. A build action reads the files",
        ),
        ("import experiments.gsm8k_grpo.undeclared", "No module named 'experiments.gsm8k_grpo.undeclared'"),
        (
            'import os\nraise ValueError(sorted(os.listdir("experiments/gsm8k_grpo")), os.path.basename(eval("os.getcwd()")))',
            "ValueError: (['declared.py', 'experiment.py'], '_main')",
        ),
        (
            "from experiments.gsm8k_grpo.declared import STEPS\nraise ValueError(STEPS)",
            "ValueError: found",
        ),
    ],
)
def test_without_a_sandbox_only_what_is_declared_is_there(without_sandbox, code, problem):
    process, root, _ = without_sandbox
    (root / EXPERIMENT).write_text(with_code(code))
    # A file that is named twice is there once.
    sources = ("--src=experiments/gsm8k_grpo/declared.py", f"--src={EXPERIMENT}")
    answer = process.call(*ARGUMENTS, *sources)
    assert answer["exitCode"] == 1 and problem in answer["output"]


def test_an_experiment_that_is_cancelled_leaves_no_folder(without_sandbox, tmp_path):
    process, root, temporary = without_sandbox
    alive = Alive(tmp_path)
    (root / EXPERIMENT).write_text(
        with_code(f"import os\nos.close(os.open({str(alive.pipe)!r}, os.O_RDONLY))\nwhile True: pass")
    )
    process.send(requestId=7, arguments=ARGUMENTS)
    os.close(os.open(alive.pipe, os.O_WRONLY))  # it is there
    [folders] = temporary.iterdir()
    assert [path.name for path in folders.iterdir()] == ["7"]
    process.send(requestId=7, cancel=True)
    assert process.answer() == {"requestId": 7, "wasCancelled": True}
    assert list(folders.iterdir()) == []


def test_sigterm_leaves_no_folder(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with start_worker(tmp_path / "log", tmp_path, temporary) as process:
        process.call("--label=x")  # it is up
        assert len(list(temporary.iterdir())) == 1
        process.signal(signal.SIGTERM)
        process.ended()
    assert list(temporary.iterdir()) == []


def test_a_worker_without_a_place_for_folders_says_so(tmp_path):
    (tmp_path / "file").touch()
    code = (
        "import os, sys, tempfile\n"
        "os.environ['TMPDIR'] = '/chosen'\n"
        f"tempfile.tempdir = {str(tmp_path / 'file')!r}\n"
        "from tools.launcher.cli.preflight_worker import serve_preflights\n"
        "sys.exit(serve_preflights())"
    )
    with WorkerProcess(["-c", code], tmp_path / "log") as process:
        assert process.ended() == 1
    told = process.log.read_text()
    assert told.startswith("error: no folder for the inputs of experiments: [Errno 20] Not a directory: ")
    assert told.endswith(
        ". Free some, or build with --strategy=RlPreflight=sandboxed, which needs no worker\n"
    )


@pytest.mark.parametrize(
    ("variables", "there", "memory"),
    [
        ({}, True, True),
        ({"TMPDIR": "/tmp"}, True, True),
        ({"TMPDIR": "/var/tmp"}, True, False),
        ({}, False, False),  # another system than Linux
    ],
)
def test_links_are_made_in_memory_unless_a_folder_was_chosen(tmp_path, monkeypatch, variables, there, memory):
    place = tmp_path if there else tmp_path / "nowhere"
    monkeypatch.setattr("tools.launcher.cli.preflight_worker._MEMORY", place)
    monkeypatch.delenv("TMPDIR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert quick_place() == (place if memory else None)


def test_inputs_that_cannot_be_linked_are_an_answer(without_sandbox):
    process, _, temporary = without_sandbox
    assert process.call(*ARGUMENTS)["exitCode"] == 0
    [folders] = temporary.iterdir()
    folders.rmdir()
    folders.touch()
    answer = process.call(*ARGUMENTS)
    assert answer["exitCode"] == 1
    assert answer["output"].startswith("error: the inputs cannot be linked: ")
    assert answer["output"].endswith(f". Free space in {folders}\n")
    folders.unlink()


def test_one_process_loads_nothing_of_the_worker(tmp_path):
    code = (
        "import sys\nfrom tools.launcher.cli import preflight_main\nassert preflight_main.main() == 0\n"
        "print(*sorted(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code, *ARGUMENTS],
        cwd=folder(tmp_path),
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "tools.launcher.cli.preflight_action" in loaded
    assert not [
        name for name in loaded if name.startswith("tools.launcher.worker") or name.endswith("_worker")
    ]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

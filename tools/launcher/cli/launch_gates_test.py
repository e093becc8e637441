"""From the files of a build, the environment and the store to what the gates say."""

import argparse
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.cli.built_experiment_testlib import build, source_of
from tools.launcher.cli.cluster_gates import DRY_RUN
from tools.launcher.cli.experiment_files import ExperimentFiles, read_experiment_files
from tools.launcher.cli.gates_display import gates_text, show_gates
from tools.launcher.cli.launch_gates import launch_gates
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.iris.capacity import BackendFacts, NodeFacts
from tools.launcher.iris.jobs import IrisUnreachable, LoginNeeded
from tools.launcher.iris.remote import ClusterNotOpened
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event
from tools.launcher.submit.gates.gate import Gate, GateReport
from tools.launcher.submit.gates.overrides import OverrideError
from tools.launcher.submit.gates.shape import shape_of
from tools.launcher.submit.source_state import SourceState

LARGE = "//experiments/gsm8k_grpo:gsm8k_grpo"
SMOKE = "//experiments/gsm8k_grpo:gsm8k_smoke"
BUDGET = "experiments/budget.yaml"
KEY = "wandb-6f1d0b9e8c"
CLUSTER = LaunchPlace(
    cluster="cw-us-east-02a",
    route=Route(scheduler="iris", controller="http://127.0.0.1:10000", target_cluster=None),
    runtime="marinskyrl",
    store_url="gs://team/slipway",
    object_root_url=None,
    state=None,
)


class Controller:
    """A controller with one kind of node, which says what it is told to."""

    def __init__(self, *backends: BackendFacts) -> None:
        self._backends = backends

    def check_in(self) -> str:
        return "ada"

    def backends(self) -> tuple[BackendFacts, ...]:
        return self._backends


HOLDS_IT = BackendFacts(name="k8s", gpu_variants=("h100",), nodes=(NodeFacts(gpus=8),) * 32)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExperimentFiles]:
    """Four nodes, and a smoke of one, of one experiment; and four nodes that nothing vouches for."""
    folder = tmp_path_factory.mktemp("built")
    flags = {
        "large": build(folder / "large", source_of(4), smoke=SMOKE),
        "smoke": build(folder / "smoke", source_of(1), label=SMOKE),
        "alone": build(folder / "alone", source_of(4)),
    }
    return {name: read_experiment_files(argparse.Namespace(**files)) for name, files in flags.items()}


def source(dirty: bool | None = False) -> SourceState:
    return SourceState(
        who="ada@lab",
        when="2026-11-30T12:00:00Z",
        source_commit="c" * 40,
        dirty=dirty,
        note="",
        changed=("a.py",) if dirty else (),
    )


def report(files: ExperimentFiles, **changes: Any) -> GateReport:
    """The gates of a launch in which all is well, but for `changes`."""
    flags = argparse.Namespace(
        budget=changes.pop("budget", BUDGET),
        allow_dirty=changes.pop("allow_dirty", False),
        override=changes.pop("override", []),
        authorize=changes.pop("authorize", None),
    )
    facts: dict[str, Any] = {
        "place": CLUSTER,
        "stage": "rl",
        "source": source(),
        "credentials": ("WANDB_API_KEY",),
        "environ": {"WANDB_API_KEY": KEY},
        "store": None,
        "gateway": Controller(HOLDS_IT),
    }
    return launch_gates(files, flags, **facts | changes)


def gate(found: GateReport, gate_id: str) -> Gate:
    return next(each for each in found.gates if each.id == gate_id)


def put_smoke(
    store: FileStore, files: ExperimentFiles, *, experiment: str = "gsm8k_smoke", **intent: Any
) -> None:
    shape = shape_of(files.launch, files.graph, files.plan.model_dump(mode="json"))
    key = RunKey(experiment=experiment, launch_digest=files.digests.launch, ordinal=1)
    opening = {"runtime": "marinskyrl", "shape": shape} | intent
    append_event(store, key, "intent", "ada@lab", opening)
    append_event(store, key, "submitted", "ada@lab", {"job_id": "/slipway/x"})
    append_event(store, key, "verified", "ada@lab", {"verified": True, "rehearsal": False})


def test_a_launch_in_which_all_is_well(built, tmp_path):
    files = built["large"].model_copy(update={"graph": built["large"].graph | {"pinned": True}})
    store = FileStore(tmp_path)
    put_smoke(store, built["smoke"])
    found = report(files, store=store)
    assert [each.state for each in found.gates] == ["passed"] * 7, gates_text(found)
    assert "users/lab/tests/qwen06-gsm8k-rl@2026.09.21 is fixed and pinned" in gates_text(found)
    assert "4 nodes x 8 GPUs x 12 h = 384 GPU-hours; the ceiling of cw-us-east-02a is 4608" in gates_text(
        found
    )
    assert "reachable      passed  http://127.0.0.1:10000 answers, and knows ada\n" in gates_text(found)
    assert "the cluster has 32 nodes with 8 or more h100 GPUs\n" in gates_text(found)
    assert "missing" not in gates_text(found)


def test_everything_that_is_missing_is_told_at_once(built, tmp_path):
    found = report(
        built["large"],
        source=source(dirty=True),
        environ={},
        store=FileStore(tmp_path),
        budget=None,
        gateway=IrisUnreachable("http://127.0.0.1:10000", 10),
    )
    assert len(found.missing) == 7
    assert all(each.fix for each in found.missing)
    text = gates_text(found)
    for line in (
        f"  clean-tree     missing  the checkout differs from commit {'c' * 40}: a.py\n",
        '                          or answer for it: --override smoke="who: why"\n',
        (
            "                          fix: tools/bazel run //experiments/gsm8k_grpo:pin, then commit "
            "versions.lock"
        ),
        "                          fix: tools/bazel run //experiments/gsm8k_grpo:gsm8k_smoke.launch\n",
    ):
        assert line in text
    assert [text.count(f"--override {each.id}=") for each in found.gates] == [0, 0, 0, 1, 1, 0, 1]


def test_a_dry_run_asks_nobody(built, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    found = report(built["large"], store=None, gateway=None)
    for gate_id in ("reachable", "placeable"):
        assert (gate(found, gate_id).state, gate(found, gate_id).found) == ("not_asked", DRY_RUN)
    smoke = gate(found, "smoke")
    assert (smoke.state, smoke.found) == ("not_asked", f"dry run: the records of {SMOKE} are not read")
    assert f"  smoke          not asked  dry run: the records of {SMOKE} are not read\n" in gates_text(found)
    assert gate(report(built["alone"], store=None, gateway=None), "smoke").state == "missing"
    terminal = Terminal()
    show_gates(found, terminal)
    assert "\x1b[35mnot asked" in terminal.getvalue()


def test_a_stage_that_trains_nothing_takes_no_gpu(built):
    found = report(built["alone"], stage="import", budget=None)
    assert found.missing == ()
    for gate_id in ("budget", "smoke", "placeable"):
        assert gate(found, gate_id).found == "stage import trains nothing and takes no GPU"
    versions = gate(found, "fixed-version")
    assert (versions.state, versions.found) == (
        "not_needed",
        "the launch makes nothing: all it reads exists",
    )


def test_on_the_local_iris_nothing_is_at_stake(built, tmp_path):
    local = LaunchPlace(
        cluster="local",
        route=EMBEDDED,
        runtime="rehearsal",
        store_url="file:///s",
        object_root_url="file:///o",
        state=tmp_path,
    )
    found = report(built["alone"], place=local, source=source(dirty=True), budget=None, credentials=())
    states = {each.id: each.state for each in found.gates}
    assert states == {
        "clean-tree": "not_needed",
        "fixed-version": "not_needed",
        "credentials": "not_needed",
        "budget": "not_needed",
        "smoke": "not_needed",
        "reachable": "passed",
        "placeable": "passed",
    }
    assert gate(found, "credentials").found == "a rehearsal contacts none of the services they are for"
    launched = report(built["alone"], place=local, environ={})
    assert [each.id for each in launched.missing] == ["credentials"], "a launch hands them on everywhere"


def test_a_gang_that_the_local_iris_does_not_offer(built, tmp_path):
    launch = dict(built["alone"].launch)
    launch["iris"] = launch["iris"] | {"allocation": launch["iris"]["allocation"] | {"num_nodes": 40}}
    files = built["alone"].model_copy(update={"launch": launch})
    local = CLUSTER.model_copy(update={"state": tmp_path, "route": EMBEDDED})
    placeable = gate(report(files, place=local), "placeable")
    assert placeable.state == "missing"
    assert placeable.found.startswith("the embedded cluster has no gang of 40 nodes with 8 x H100 each")


def test_overrides_are_applied_and_recorded(built, tmp_path):
    found = report(
        built["large"],
        source=source(dirty=True),
        allow_dirty=True,
        override=["smoke=bob: the pool is down"],
        store=FileStore(tmp_path),
    )
    assert [each.id for each in found.missing] == ["fixed-version"]
    assert found.facts()["overrides"] == {
        "clean-tree": "ada@lab: --allow-dirty",
        "smoke": "bob: the pool is down",
    }
    assert "                             answered for by bob: the pool is down\n" in gates_text(found)
    with pytest.raises(OverrideError, match="there is no such gate"):
        report(built["large"], override=["smok=bob: x"])


@pytest.mark.parametrize(
    ("experiment", "intent", "state"),
    [
        ("gsm8k_smoke", {}, "passed"),
        ("gsm8k_smoke.rl", {}, "passed"),
        ("gsm8k_smoke2", {}, "missing"),
        ("gsm8k_smoke", {"runtime": "rehearsal"}, "missing"),
    ],
)
def test_the_smoke_is_found_by_its_experiments_name(built, tmp_path, experiment, intent, state):
    store = FileStore(tmp_path)
    put_smoke(store, built["smoke"], experiment=experiment, **intent)
    assert gate(report(built["large"], store=store), "smoke").state == state


def test_a_stale_smoke(built, tmp_path):
    store = FileStore(tmp_path)
    put_smoke(store, built["smoke"])
    launch = built["large"].launch
    repinned = launch | {"runtime": launch["runtime"] | {"launcher_commit": "0" * 40}}
    found = report(built["large"].model_copy(update={"launch": repinned}), store=store)
    assert re.search(
        r"stale smoke: gsm8k_smoke/\w{8}/1 of \S+ is verified, but runtime commit is 000000000000 "
        r"here, 81ae0ef7033c",
        gate(found, "smoke").found,
    )


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"override": [f"smoke=ada: {KEY}"]}, "the command line at [0]"),
        ({"authorize": f"ada: {KEY}"}, "the command line at [0]"),
        (
            {"environ": {"WANDB_API_KEY": KEY, "SLIPWAY_REHEARSAL_FAULT": KEY}},
            "the request's environment at SLIPWAY_REHEARSAL_FAULT",
        ),
        ({"place": CLUSTER.model_copy(update={"store_url": f"gs://{KEY}"})}, "the command line at [1]"),
    ],
)
def test_a_credential_that_was_typed_as_something_else(built, words, place):
    found = gate(report(built["alone"], **words), "credentials")
    assert found.found == f"WANDB_API_KEY: its value is in {place}, which is stored and shown"


def test_who_is_not_known_logs_in(built):
    found = report(built["alone"], gateway=LoginNeeded("https://iris.example", "no token"))
    reachable = gate(found, "reachable")
    assert reachable.state == "missing"
    assert reachable.found.startswith("Iris at https://iris.example wants to know who you are: no token")
    assert reachable.fix == "iris --cluster=NAME login, then launch again"
    assert gate(found, "placeable").found == "not known: the cluster was not asked"


def test_a_cluster_that_was_not_opened_says_what_helps(built):
    error = ClusterNotOpened("cluster marin", "there is no kubeconfig /k", "Download it to that path")
    reachable = gate(report(built["alone"], gateway=error), "reachable")
    assert reachable.found == "cluster marin could not be reached: there is no kubeconfig /k"
    assert reachable.fix == "Download it to that path"


@pytest.mark.parametrize(
    ("backend", "state", "says"),
    [
        (HOLDS_IT.model_copy(update={"nodes": HOLDS_IT.nodes[:3]}), "missing", "3 nodes with 8 or more h100"),
        (BackendFacts(name="k8s", gpu_variants=("gb200",)), "missing", "has no h100 GPUs; it has gb200"),
        (
            BackendFacts(name="k8s"),
            "passed",
            "; by its card, cw-us-east-02a has 32 nodes x 8 H100, asked for: 4 nodes x 8 H100",
        ),
    ],
)
def test_whether_the_gang_can_be_placed(built, backend, state, says):
    found = gate(report(built["alone"], gateway=Controller(backend)), "placeable")
    assert (found.state, says in found.found) == (state, True), found
    assert bool(found.fix) == (state == "missing")


def test_where_neither_controller_nor_card_knows(built):
    card = built["alone"].cluster.model_copy(update={"max_nodes": None})
    files = built["alone"].model_copy(update={"cluster": card})
    found = gate(report(files, gateway=Controller(BackendFacts(name="k8s"))), "placeable")
    assert found.state == "missing"
    assert found.found.startswith("not known: ") and found.found.endswith(
        ", and neither does the cluster card"
    )


def test_a_budget_file_that_cannot_be_read(built, tmp_path):
    with pytest.raises(WrongFile, match="none.yaml: there is no such file"):
        report(built["alone"], budget=str(tmp_path / "none.yaml"))
    (tmp_path / "bad.yaml").write_text("schema: 1\n")
    with pytest.raises(DocumentError, match="gpu_hours_per_launch: Field required"):
        report(built["alone"], budget=str(tmp_path / "bad.yaml"))


def test_the_repositorys_budget_names_every_real_cluster():
    text = Path(BUDGET).read_text(encoding="utf-8")
    for card in Path("third_party/clusters").glob("*.yaml"):
        content = card.read_text(encoding="utf-8")
        name = re.search(r"^name: (\S+)$", content, re.MULTILINE)
        assert name is not None
        if "scheduler: iris" in content:
            assert f"    {name[1]}: " in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_same_words_have_colours(built, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    found = report(built["alone"], environ={})
    plain, terminal = io.StringIO(), Terminal()
    show_gates(found, plain)
    show_gates(found, terminal)
    assert plain.getvalue() == gates_text(found)
    assert "\x1b[31mmissing" in terminal.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()) == plain.getvalue()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

"""`diff` of files, labels, revisions, digests and runs: real builds, a real git repository, a real store."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.launcher.cli import exit_codes
from tools.launcher.cli.built_experiment_testlib import build, source_of
from tools.launcher.cli.commands import run
from tools.launcher.cli.sweep_testlib import write_sweep
from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.store.bundles import BUNDLE_PREFIX, LaunchBundle, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event

PAGE = Path("docs/comparing.md")
PACKAGE = "experiments/gsm8k_grpo"
LABEL = f"//{PACKAGE}"
TP2 = {
    "num_inference_engines=8": "num_inference_engines=4",
    "tensor_parallel_size=1": "tensor_parallel_size=2",
}
TP4 = {
    "num_inference_engines=8": "num_inference_engines=2",
    "tensor_parallel_size=1": "tensor_parallel_size=4",
}
ENDINGS = {"launch": ".launch.yaml", "digest": ".digest", "graph": ".graph.json", "plan": ".plan.json"}
BAZEL = """
import json, pathlib, shutil, sys
here = pathlib.Path.cwd()
flags = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
if (here / "edited").exists():  # What a build of the sources, as they are now, makes.
    shutil.copytree(here / "edited", here / "bazel-bin", dirs_exist_ok=True)
endings = {"launch": ".launch.yaml", "digest": ".digest", "graph": ".graph.json", "plan": ".plan.json"}
events = [{"id": {"workspace": {}}, "workspaceInfo": {"localExecRoot": str(here)}}]
for label in pathlib.Path(flags["--target_pattern_file"]).read_text().split():
    package, name = label[2:].split(":")
    groups = []
    for group, ending in (endings | {"sweep": ".sweep.json"}).items():
        file = f"bazel-bin/{package}/{name}{ending}"
        if group in flags["--output_groups"].split(",") and (here / file).exists():
            events.append({"id": {"namedSet": {"id": file}}, "namedSetOfFiles": {"files": [{"name": file}]}})
            groups.append({"name": group, "fileSets": [{"id": file}]})
    completed = {"success": True, "outputGroup": groups} if groups else {}
    if (here / f"bazel-bin/{package}/{name}.py").exists():  # A library, which builds and has no such groups.
        completed = {"success": True}
    events.append({"id": {"targetCompleted": {"label": label}}, "completed": completed})
events.append({"id": {"buildFinished": {}}, "finished": {}})
pathlib.Path(flags["--build_event_json_file"]).write_text("".join(json.dumps(e) + "\\n" for e in events))
"""
"""Stands in for Bazel: what it builds is what lies in bazel-bin, after what lies in `edited` came there."""


def put_build(workspace: Path, edits: dict[str, str]) -> Path:
    """Build the experiment and lay its outputs where Bazel has them; return the launch document."""
    files = build(workspace / "made", source_of(edits=edits))
    folder = workspace / "bazel-bin" / PACKAGE
    folder.mkdir(parents=True, exist_ok=True)
    for kind, ending in ENDINGS.items():
        shutil.copy(files[kind], folder / f"gsm8k_grpo{ending}")
    return folder / "gsm8k_grpo.launch.yaml"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    call = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with the experiment of TP 2 committed with golden and ledger, and TP 4 built."""
    workspace = tmp_path_factory.mktemp("workspace")
    package = workspace / PACKAGE
    (package / "golden").mkdir(parents=True)
    shutil.copy(Path(PACKAGE) / "BUILD.bazel", package)
    shutil.copy(Path(PACKAGE) / "versions.lock.yaml", package)
    shutil.copy(Path(PACKAGE) / "golden" / "launch.yaml", package / "golden")
    (workspace / "tools").mkdir()
    # Not the interpreter's own path, which may be too long for a first line.
    program = workspace / "tools" / "bazel"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$(dirname "$0")/stand_in.py" "$@"\n')
    program.chmod(0o755)
    (workspace / "tools" / "stand_in.py").write_text(BAZEL)
    git(workspace, "init", "-q")
    git(workspace, "add", "experiments")
    git(workspace, "commit", "-qm", "as it is")
    two = put_build(workspace, TP2).read_bytes()
    (workspace / "tp2.yaml").write_bytes(two)
    put_build(workspace, TP4)
    return workspace


@pytest.fixture
def workspace(made, tmp_path, monkeypatch):
    for name in ("BUILD_WORKSPACE_DIRECTORY", "BUILD_WORKING_DIRECTORY"):
        monkeypatch.setenv(name, str(made))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)
    return made


def test_tp_2_to_4_of_documents_in_five_lines(workspace, capsys):
    assert run(["diff", "tp2.yaml", LABEL]) == exit_codes.FAILED
    _, _, _, *lines = capsys.readouterr().out.splitlines()
    consequences = lines[: lines.index("")]
    assert [line[:10].strip() for line in consequences] == ["engines", "GPUs", "identity", "resume", "smoke"]
    assert consequences[0].endswith(
        "4 engines of 2 GPUs (TP 2, PP 1, DP 1, EP 1) -> 2 engines of 4 GPUs (TP 4, PP 1, DP 1, EP 1)"
    )
    assert (
        consequences[1]
        == "GPUs      as before: 8 on 1 x 8 H100: policy 8, reference 0, engines 8 on the same GPUs"
    )
    assert consequences[4] == (
        "smoke     a smoke of A does not count for B: geometry engine TP is 4 here, 2 in the smoke run"
    )


def test_the_page_about_it_shows_just_that(workspace, capsys):
    shown = re.search(r"<!-- diff -->\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert run(["diff", "tp2.yaml", LABEL]) == exit_codes.FAILED
    assert shown is not None and capsys.readouterr().out.partition("\n\n")[2] == shown[1], (
        f"paste it into {PAGE}"
    )


def test_a_document_alone_has_the_shape_of_its_build(workspace, capsys):
    """What is measured of a document is what the plan of the same build says."""
    built = f"bazel-bin/{PACKAGE}/gsm8k_grpo.launch.yaml"
    shutil.copy(workspace / built, workspace / "alone.yaml")
    assert run(["diff", built, "alone.yaml"]) == exit_codes.OK
    assert "equal: the same launch document" in capsys.readouterr().out
    assert run(["diff", "alone.yaml", built, "--format=json"]) == exit_codes.OK
    smoke = json.loads(capsys.readouterr().out)["consequences"]["smoke"]
    assert smoke["verdict"] == "valid"


def test_a_revision_has_its_golden_and_what_the_ledger_pinned(workspace, capsys):
    golden = f"HEAD:{PACKAGE}/golden/launch.yaml"
    assert run(["diff", f"HEAD:{LABEL}", golden, "--format=json"]) == exit_codes.OK
    content = json.loads(capsys.readouterr().out)
    commit = git(workspace, "rev-parse", "HEAD")[:12]
    assert content["a"]["origin"] == f"golden at {commit}" and content["b"]["origin"] == f"file at {commit}"
    assert content["a"]["recipe"].startswith("3ecd7edb") and content["b"]["recipe"] is None
    assert run(["diff", f"HEAD:{LABEL}", LABEL, "--format=json"]) == exit_codes.FAILED
    content = json.loads(capsys.readouterr().out)
    assert content["recipe_compared_by"] == "recipe digests" and content["recipe_changed"]


def test_standard_input(workspace, monkeypatch, capsys):
    data = (workspace / "tp2.yaml").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run(["diff", "-", "tp2.yaml"]) == exit_codes.OK
    assert "A: -, users/lab/tests/qwen06-gsm8k-rl@2026.09.21 (standard input)" in capsys.readouterr().out


@pytest.fixture
def store(workspace, tmp_path):
    """A store with the built launch on record."""
    store = FileStore(tmp_path / "store")
    folder = workspace / "bazel-bin" / PACKAGE
    launch, digest, graph, plan = (
        (folder / f"gsm8k_grpo{ending}").read_bytes() for ending in ENDINGS.values()
    )
    bundle = LaunchBundle(launch_yaml=launch, graph_json=graph, plan_json=plan, digest_text=digest.decode())
    key = RunKey(
        experiment="gsm8k_grpo",
        launch_digest=digest_of(load_yaml_mapping(launch, source="x")),
        ordinal=1,
    )
    bundle_digest = put_content(store, BUNDLE_PREFIX, pack(bundle))
    append_event(store, key, "intent", "ada@lab", {"bundle": bundle_digest, "recipe": digest.decode()[14:78]})
    return store, key


def test_a_launch_on_record_by_run_and_by_digest(workspace, store, capsys):
    objects, key = store
    for name in ("gsm8k_grpo", key.short_name, f"sha256:{key.launch_digest[:12]}"):
        assert run(["diff", name, LABEL, f"--store={objects.url}"]) == exit_codes.OK
        assert f"A: {name}, users/lab/tests/qwen06-gsm8k-rl@2026.09.21 ({key.short_name}, launched " in (
            capsys.readouterr().out
        )


def test_a_digest_that_fits_two_launches(workspace, store, capsys):
    objects, key = store
    other = key.model_copy(update={"launch_digest": key.launch_digest[:10] + "0" * 54})
    append_event(objects, other, "intent", "ada@lab", {})
    both = ", ".join(sorted(f"gsm8k_grpo/{each.launch_digest[:12]}" for each in (key, other)))
    few, name = key.launch_digest[:8], f"sha256:{other.launch_digest}"
    assert run(["diff", f"sha256:{few}", LABEL, f"--store={objects.url}"]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        f"error: sha256:{few} fits several launches: {both}. Give more digits\n"
    )
    assert run(["diff", name, LABEL, f"--store={objects.url}"]) == exit_codes.USAGE
    assert capsys.readouterr().err.endswith("names no bundle. Name the document itself\n")


@pytest.mark.parametrize(
    ("a", "sentence"),
    [
        ("nope.yaml", "error: nope.yaml: there is no such file. Correct the path\n"),
        ("-", "error: standard input is named twice. Give - once\n"),
        (
            "nope:experiments/x.yaml",
            (
                "error: 'nope:experiments/x.yaml' is no file, and 'nope' is no revision of {workspace}. Name a file, a "
                "label such as //experiments/x, REV:FILE, sha256:DIGEST, or a run such as cat_count/2f1bbe6d\n"
            ),
        ),
        (
            "HEAD:x.yaml",
            "error: HEAD:x.yaml: {commit} has no file x.yaml. Paths are relative to the root of the workspace\n",
        ),
        (
            "HEAD://experiments/x",
            (
                "error: HEAD://experiments/x: at {commit} this target has no golden document. Give --build, which builds it "
                "in a checkout of its own\n"
            ),
        ),
        (
            "//experiments/x",
            (
                "error: //experiments/x does not build: Bazel cannot analyze it; `tools/bazel build //experiments/x:x` "
                "tells more\n"
            ),
        ),
        ("//a:b:c", "error: '//a:b:c' is no label. Write one such as //experiments/x or //experiments/x:y\n"),
        ("//experiments/...", "error: '//experiments/...' is no label. Write one such as //experiments/x"),
        ("//experiments/x:all", "error: '//experiments/x:all' is no label. Write one such as "),
        ("//../x", "error: '//../x' is no label. Write one such as //experiments/x or //experiments/x:y\n"),
        ("HEAD://", "error: '//' is no label. Write one such as //experiments/x or //experiments/x:y\n"),
        ("@//experiments/x", "error: @//experiments/x does not build: "),
        ("", "error: a side is empty text. Name a file, a label, a revision's file, a digest or a run\n"),
        (
            "HEAD:experiments",
            (
                "error: HEAD:experiments: {commit} has no file experiments. Paths are relative to the root of the "
                "workspace\n"
            ),
        ),
        (
            "sha256:xyz",
            "error: 'sha256:xyz' is no launch digest. Give sha256: and 6 to 64 of its hex digits\n",
        ),
        ("x" * 5000, "error: no run on record fits 'xxx"),
        (
            "sha256:abcdef",
            "error: sha256:abcdef: no launch with this digest is on record in {store}. Name its --store\n",
        ),
        ("cats", "error: no run on record fits 'cats'. There are runs of: gsm8k_grpo "),
    ],
)
def test_what_is_not_there_is_said(workspace, store, capsys, a, sentence):
    assert run(["diff", a, a, f"--store={store[0].url}"]) == exit_codes.USAGE
    names = {
        "workspace": workspace,
        "commit": git(workspace, "rev-parse", "HEAD")[:12],
        "store": store[0].url,
    }
    assert capsys.readouterr().err.startswith(sentence.format(**names))


@pytest.fixture
def edited(workspace):
    """The workspace after an edit of the sources: the next build makes the experiment with TP 2."""
    folder = workspace / "bazel-bin" / PACKAGE
    before = {ending: (folder / f"gsm8k_grpo{ending}").read_bytes() for ending in ENDINGS.values()}
    files = build(workspace / "editing", source_of(edits=TP2))
    place = workspace / "edited" / PACKAGE
    place.mkdir(parents=True)
    for kind, ending in ENDINGS.items():
        shutil.copy(files[kind], place / f"gsm8k_grpo{ending}")
    yield workspace
    shutil.rmtree(workspace / "edited")
    for ending, data in before.items():
        (folder / f"gsm8k_grpo{ending}").write_bytes(data)


def test_a_label_is_what_its_sources_say_now(edited, capsys):
    """Not what the last build wrote: sources that changed since would be called equal."""
    shutil.copy(edited / f"bazel-bin/{PACKAGE}/gsm8k_grpo.launch.yaml", edited / "before.yaml")
    assert run(["diff", "before.yaml", LABEL, "--no-build"]) == exit_codes.OK
    assert "(what the last build wrote, and the sources may have changed since)" in capsys.readouterr().out
    assert run(["diff", "before.yaml", LABEL]) == exit_codes.FAILED
    assert "(built now from the working tree)" in capsys.readouterr().out
    assert run(["diff", "tp2.yaml", LABEL, "--no-build"]) == exit_codes.OK


def test_no_bazel_to_build_with_is_not_known(workspace, capsys):
    program = workspace / "tools" / "bazel"
    program.rename(workspace / "tools" / "away")
    try:
        assert run(["diff", "tp2.yaml", LABEL]) == exit_codes.UNKNOWN
    finally:
        (workspace / "tools" / "away").rename(program)
    assert "tools/bazel: No such file or directory" in capsys.readouterr().err


def test_what_was_never_built_is_said_where_nothing_is_built(workspace, capsys):
    assert run(["diff", "tp2.yaml", "//experiments/x", "--no-build"]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        f"error: //experiments/x: no built document at {workspace}/bazel-bin/experiments/x/x.launch.yaml. Build it: "
        "tools/bazel build //experiments/x:x, or leave --no-build out\n"
    )


@pytest.fixture
def table(workspace):
    """Where the build of a sweep wrote its table."""
    place = workspace / "bazel-bin/experiments/x"
    place.mkdir(exist_ok=True)
    yield place / "seeds.sweep.json"
    shutil.rmtree(place)


@pytest.mark.parametrize("building", [[], ["--no-build"]])
def test_a_sweep_is_answered_with_its_points(table, tmp_path, capsys, building):
    status, _ = write_sweep(tmp_path, tuple("12345"))
    shutil.copy(tmp_path / "seeds.sweep.json", table)
    assert status == 0
    assert run(["diff", "//experiments/x:seeds", LABEL, *building]) == exit_codes.USAGE
    points = ", ".join(f"//experiments/x:seeds_seed_{seed}" for seed in "1234")
    assert capsys.readouterr().err.endswith(
        "error: //experiments/x:seeds is a sweep, which is no launch itself. Name one of its points: "
        f"{points} and 1 more\n"
    )


def test_a_sweep_of_another_launcher_is_one(table, capsys):
    table.write_bytes(b"{")
    assert run(["diff", "//experiments/x:seeds", LABEL]) == exit_codes.USAGE
    assert capsys.readouterr().err.endswith(
        "Name one of its points; `tools/bazel query //experiments/x:all` lists them\n"
    )


def test_what_builds_and_is_no_experiment(workspace, capsys):
    package = workspace / "bazel-bin/experiments/x"
    package.mkdir()
    (package / "lib.py").touch()
    try:
        assert run(["diff", "//experiments/x:lib", LABEL]) == exit_codes.USAGE
    finally:
        shutil.rmtree(package)
    assert capsys.readouterr().err.endswith(
        "error: //experiments/x:lib is no experiment: its build writes no launch, graph, plan, digest. "
        "Name an rl_experiment\n"
    )


def test_a_folder_is_answered_with_its_label(workspace, capsys):
    package = workspace / "experiments/cats"
    package.mkdir(parents=True)
    assert run(["diff", "experiments/cats", LABEL]) == exit_codes.USAGE
    assert "experiments/cats: this is a folder, not a file" in capsys.readouterr().err
    (package / "BUILD.bazel").touch()
    assert run(["diff", "experiments/cats/", LABEL]) == exit_codes.USAGE
    said = "error: experiments/cats/ is a folder. Name its experiment: //experiments/cats\n"
    assert capsys.readouterr().err == said


def test_a_digest_may_be_written_in_capitals(workspace, store, capsys):
    objects, key = store
    name = f"sha256:{key.launch_digest[:12].upper()}"
    assert run(["diff", name, LABEL, f"--store={objects.url}"]) == exit_codes.OK


def test_a_file_of_a_revision_that_is_no_document(workspace, capsys):
    (workspace / "huge").write_bytes(b"x" * (16 * 2**20 + 1))
    git(workspace, "add", "huge")
    tree = git(workspace, "write-tree")
    commit = git(workspace, "commit-tree", "-m", "x", tree)
    git(workspace, "reset", "-q")
    (workspace / "huge").unlink()
    assert run(["diff", f"{commit}:huge", "tp2.yaml"]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        f"error: {commit}:./huge has 16777217 bytes, the limit is 16777216. Name a launch document\n"
    )


@pytest.mark.parametrize("graph", [b"[]", b"{", b"[" * 100_000, b"\xff"])
def test_a_graph_that_is_none(workspace, tmp_path, capsys, graph):
    folder = workspace / "bazel-bin" / PACKAGE
    for ending in ENDINGS.values():
        shutil.copy(folder / f"gsm8k_grpo{ending}", tmp_path / f"x{ending}")
    (tmp_path / "x.graph.json").write_bytes(graph)
    assert run(["diff", str(tmp_path / "x.launch.yaml"), "tp2.yaml"]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path}/x.launch.yaml: the built files cannot be read (")
    assert said.endswith("). Build the experiment again\n")


def test_a_graph_of_another_launcher_says_less(workspace, tmp_path, capsys):
    folder = workspace / "bazel-bin" / PACKAGE
    for ending in ENDINGS.values():
        shutil.copy(folder / f"gsm8k_grpo{ending}", tmp_path / f"x{ending}")
    (tmp_path / "x.graph.json").write_text('{"steps": [3, {"kind": "skyrl", "compatible": null}]}')
    assert run(["diff", str(tmp_path / "x.launch.yaml"), "tp2.yaml", "--format=json"]) == exit_codes.FAILED
    consequences = json.loads(capsys.readouterr().out)["consequences"]
    assert consequences["smoke"]["verdict"] == "not_known"
    assert consequences["GPU-hours"]["sentence"] == (
        "not known: needs A's graph with the coordinator's deadline: it is of another launcher"
    )


def test_another_deadline_of_the_coordinator_is_no_equal_launch(workspace, capsys):
    folder = workspace / "bazel-bin" / PACKAGE
    put = {
        "coordinator_timeout_hours=12": "coordinator_timeout_hours=13",
        'credentials=("WANDB_API_KEY",)': 'credentials=("WANDB_API_KEY", "HF_TOKEN")',
    }
    files = build(workspace / "other", source_of(edits={**TP4, **put}))
    for kind, ending in ENDINGS.items():
        shutil.copy(files[kind], workspace / f"other{ending}")
    assert run(["diff", str(folder / "gsm8k_grpo.launch.yaml"), "other.launch.yaml"]) == exit_codes.FAILED
    shown = capsys.readouterr().out
    assert "GPU-hours  at most 96 -> 104 for one launch" in shown
    assert shown.endswith(
        "0 fields, 0 of the recipe (*):\n"
        "3 fields of the graph alone:\n"
        "  ~  graph.coordinator_timeout_hours: 12 -> 13\n"
        "  ~  graph.credentials[0]: WANDB_API_KEY -> HF_TOKEN\n"
        "  +  graph.credentials[1]: WANDB_API_KEY\n"
    )


def test_attempts_of_a_job_count_until_the_coordinators_deadline(workspace, capsys):
    folder = workspace / "bazel-bin" / PACKAGE
    put = {"job_timeout_seconds=0": "job_timeout_seconds=3600"}
    assert "max_retries=1" in source_of()
    for name, edits in (("four", put), ("capped", {**put, "timeout_hours=12": "timeout_hours=3"})):
        files = build(workspace / name, source_of(edits=edits))
        for kind, ending in ENDINGS.items():
            shutil.copy(files[kind], workspace / f"{name}{ending}")
    for name, hours in (("four", 32), ("capped", 24)):
        run(["diff", str(folder / "gsm8k_grpo.launch.yaml"), f"{name}.launch.yaml"])
        assert f"GPU-hours  at most 96 -> {hours} for one launch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "value", "hours"),
    [
        ("iris.timeout", 3600, "at most 8 for one launch"),
        ("iris.timeout", -5, "not known: needs B's iris.timeout as seconds from 0, it is -5"),
        (
            "iris.allocation.num_nodes",
            10**390,
            "not known: needs B's iris.allocation.num_nodes as a positive integer",
        ),
        ("iris.allocation.gpus_per_node", "8", "at most 8 for one launch"),
        (
            "iris.max_retries",
            1,
            "not known: needs B's graph, which has the coordinator's deadline: the job's own is of each attempt",
        ),
        ("iris.max_retries", -1, "not known: needs B's iris.max_retries as a number from 0, it is -1"),
        ("iris.max_retries", None, "not known: needs B's iris.max_retries, which is missing"),
    ],
)
def test_gpu_hours_of_a_document_alone(workspace, capsys, path, value, hours):
    document = load_yaml_mapping((workspace / "tp2.yaml").read_bytes(), source="x")
    document["iris"] |= {"timeout": 3600, "max_retries": 0}
    (workspace / "a.yaml").write_text(yaml.safe_dump(document))
    section = document["iris"]["allocation"] if path.startswith("iris.allocation.") else document["iris"]
    section[path.rpartition(".")[2]] = value
    (workspace / "b.yaml").write_text(yaml.safe_dump(document))
    run(["diff", "a.yaml", "b.yaml", "--format=json"])
    said = json.loads(capsys.readouterr().out)["consequences"]["GPU-hours"]["sentence"]
    assert said.removeprefix("as before: ").startswith(hours)


def test_a_runtime_without_a_manifest_is_told(workspace, capsys):
    document = load_yaml_mapping((workspace / "tp2.yaml").read_bytes(), source="x")
    document["runtime"]["launcher_commit"] = "f" * 40
    (workspace / "b.yaml").write_text(yaml.safe_dump(document))
    assert run(["diff", "tp2.yaml", "b.yaml"]) == exit_codes.FAILED
    a, b = capsys.readouterr().out.splitlines()[:2]
    assert a.endswith("(file)")
    assert b.endswith(
        "(file; there is no manifest of its runtime, and what it leaves out is that of 81ae0ef7.yaml)"
    )


def test_files_of_two_builds_are_not_taken_for_one(workspace, tmp_path, capsys):
    folder = workspace / "bazel-bin" / PACKAGE
    for ending in ENDINGS.values():
        shutil.copy(folder / f"gsm8k_grpo{ending}", tmp_path / f"x{ending}")
    shutil.copy(workspace / "tp2.yaml", tmp_path / "x.launch.yaml")
    assert run(["diff", str(tmp_path / "x.launch.yaml"), "tp2.yaml", "--format=json"]) == exit_codes.OK
    side = json.loads(capsys.readouterr().out)["a"]
    assert side["recipe"] is None and side["origin"].endswith("alone: its digest file is of another build")


def test_markdown_for_a_pull_request(workspace, capsys):
    assert run(["diff", "tp2.yaml", LABEL, "--format=markdown"]) == exit_codes.FAILED
    assert "| engines | 4 engines of 2 GPUs (TP 2," in capsys.readouterr().out


def test_a_workspace_without_git_says_so(workspace, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert run(["diff", "HEAD:x.yaml", "-"]) == exit_codes.USAGE
    assert capsys.readouterr().err.startswith("error: git rev-parse says: fatal: not a git repository")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

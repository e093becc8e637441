"""`affected` of revisions of a real git repository.

Bazel is a stand-in here, which says what a file of the revision says, in Bazel's own words;
tests/affected/two_revisions.py asks the real one.
"""

import ast
import fcntl
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.affected_bazel import Workspace, first_error
from tools.launcher.cli.affected_build import build_manifest
from tools.launcher.cli.affected_events import BuildEvents
from tools.launcher.cli.commands import run
from tools.launcher.compare.digest_manifest import DigestManifest, dump_manifest

STAND_IN = """
import json, os, pathlib, sys
here = pathlib.Path.cwd()
words = sys.argv[1:]
startup = []
while words[0].startswith("--"):
    startup.append(words.pop(0))
command, *arguments = words
with open(os.environ["CALLS"], "a") as log:
    log.write(f"{command} {'own' if startup else 'user'} {'RUNFILES_DIR' in os.environ}\\n")
state = json.loads((here / "state.json").read_text())
if command == "query" and "visible(" in arguments[-1]:
    print("//x/same:same" if state.get("together") == "private" else "")
    sys.exit(0)
if command == "query":
    print(*(f"//x/{name}:{name}" for name in state["experiments"]), sep="\\n")
    sys.stderr.write(state.get("said", ""))
    sys.exit(state.get("query", 0))
flags = dict(word.split("=", 1) for word in arguments if "=" in word)
with open(os.environ["CALLS"] + ".caches", "a") as log:
    log.write(flags.get("--disk_cache", "none") + "\\n")
for name in state.get("writes", []):
    (here / name).write_text("written while it was built")
made = here / "made"
made.mkdir(exist_ok=True)
events = [{"id": {"workspace": {}}, "workspaceInfo": {"localExecRoot": str(made)}}]

def end():
    events.append({"id": {"buildFinished": {}}, "finished": {}})
    pathlib.Path(flags["--build_event_json_file"]).write_text("".join(json.dumps(e) + "\\n" for e in events))
    sys.exit(state.get("build", 0))

TOGETHER = "//tools/launcher/asked:digests"
if pathlib.Path(flags["--target_pattern_file"]).read_text() == TOGETHER + "\\n":
    seen = "--nocheck_visibility" in arguments
    if state.get("together", True) is False or (state.get("together") == "private" and not seen):
        end()
    listed = pathlib.Path(flags["--repo_env"].removeprefix("SLIPWAY_ASKED_EXPERIMENTS=")).read_text()
    known = {f"//x/{name}:{name}": content for name, content in state["experiments"].items()}
    assert listed == "".join(label + "\\n" for label in sorted(known)), listed
    digests = {
        label: {"version": "2026.11.30", "recipe": it[0] * 64, "launch": it[1] * 64, "graph": None}
        for label, it in known.items() if not isinstance(it, str)
    }
    refused = {label: state["sentence"] for label, it in known.items() if isinstance(it, str)}
    manifest = json.dumps({"schema": 1, "experiments": digests, "refused": refused})
    (made / "digests.json").write_text(state.get("manifest", manifest))
    file = {"name": "digests.json", "uri": "bytestream://elsewhere/x", "pathPrefix": []}
    events.append({"id": {"namedSet": {"id": "0"}}, "namedSetOfFiles": {"files": [file]}})
    completed = {"success": True, "outputGroup": [{"name": "default", "fileSets": [{"id": "0"}]}]}
    events.append({"id": {"targetCompleted": {"label": TOGETHER}}, "completed": completed})
    end()
for number, (name, content) in enumerate(state["experiments"].items()):
    label = f"//x/{name}:{name}"
    if isinstance(content, str):
        (made / f"{name}.err").write_text(content)
        action = {"exitCode": 1, "stderr": {"name": "stderr", "uri": f"file://{made}/{name}.err"}}
        events.append({"id": {"actionCompleted": {"label": label}}, "action": action})
        events.append({"id": {"targetCompleted": {"label": label}}, "completed": {}})
        continue
    recipe, launch = content
    (made / f"{name}.digest").write_text(f"recipe sha256:{recipe * 64}\\nlaunch sha256:{launch * 64}\\n")
    (made / f"{name}.graph.json").write_text('{"steps": [{"kind": "skyrl", "version": "2026.11.30"}]}')
    groups = []
    for group, ending in (("digest", ".digest"), ("graph", ".graph.json")):
        file = {"name": name + ending, "uri": "bytestream://elsewhere/x", "pathPrefix": []}
        key = f"{number}{group}"
        events.append({"id": {"namedSet": {"id": key}}, "namedSetOfFiles": {"files": [file]}})
        groups.append({"name": group, "fileSets": [{"id": key}]})
    completed = {"success": True, "outputGroup": groups}
    events.append({"id": {"targetCompleted": {"label": label}}, "completed": completed})
end()
"""

REFUSAL = (
    "error: GEO-08 at skyrl.generator.x\n    too few engines\n    repair: set it\npreflight of //x: 1 error\n"
)


SENTENCE = "GEO-08 at skyrl.generator.x: too few engines"


def state(**experiments: str | list[str]) -> dict[str, Any]:
    return {"experiments": experiments, "sentence": SENTENCE}


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    call = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def commit(workspace: Path, content: dict[str, Any]) -> str:
    (workspace / "state.json").write_text(json.dumps(content))
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "x", "--allow-empty")
    return git(workspace, "rev-parse", "HEAD")


BEFORE = state(same=["a", "a"], changed=["a", "a"], moved=["a", "a"], broken=["a", "a"])
AFTER = state(same=["a", "a"], changed=["b", "b"], moved=["a", "b"], broken=REFUSAL)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace of two commits, called from inside `bazel run`."""
    workspace = tmp_path / "workspace"
    (workspace / "tools/launcher/asked").mkdir(parents=True)
    (workspace / "tools/launcher/asked/BUILD.bazel").touch()
    program = workspace / "tools" / "bazel"
    # Not the interpreter's own path, which may be too long for a first line.
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$(dirname "$0")/stand_in.py" "$@"\n')
    (workspace / "tools" / "stand_in.py").write_text(STAND_IN)
    program.chmod(0o755)
    (workspace / ".gitignore").write_text("made\nuser.bazelrc\n")
    git(workspace, "init", "-q")
    commit(workspace, BEFORE)
    commit(workspace, AFTER)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(workspace))
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(workspace))
    monkeypatch.setenv("RUNFILES_DIR", "of the launcher")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return workspace


def calls(workspace: Path) -> list[str]:
    file = workspace.parent / "calls"
    return file.read_text().splitlines() if file.exists() else []


def test_what_changed_since_a_revision(workspace, capsys):
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    output = capsys.readouterr()
    short = git(workspace, "rev-parse", "HEAD~1")[:12]
    assert output.out.splitlines() == [
        "refused   //x/broken:broken    does not build any more: GEO-08 at skyrl.generator.x: too few engines",
        (
            "recipe    //x/changed:changed  2026.11.30 now means another recipe: publish a new version, unless nobody launched "
            "it (recipe aaaaaaaa -> bbbbbbbb)"
        ),
        (
            "launch    //x/moved:moved      the same recipe in another place or with other limits; its version stays "
            "(launch aaaaaaaa -> bbbbbbbb)"
        ),
        f"HEAD~1 ({short}) to the working tree: 1 refused, 1 recipe, 1 launch; 1 unaffected",
    ]
    assert (
        output.err
        == f"affected: building the digests of HEAD~1 ({short}), which are kept for the next call\n"
    )
    # The base with a server of its own, the head where the user is; neither sees this program's runfiles.
    assert calls(workspace) == ["query own False", "build own False", "query user False", "build user False"]


def test_what_was_built_once_is_read(workspace, capsys):
    arguments = ["affected", "--base=HEAD~1", "--head=HEAD"]
    assert run(arguments) == exit_codes.OK
    built = calls(workspace)
    first = capsys.readouterr().out
    assert run(arguments) == exit_codes.OK
    assert capsys.readouterr().out == first and calls(workspace) == built
    # The working tree is that of HEAD, under another name.
    assert run(arguments[:2]) == exit_codes.OK
    assert calls(workspace) == built
    # Other flags, and other options of the user, may mean other digests.
    assert run([*arguments, "--bazel-flag=--config=x"]) == exit_codes.OK
    assert len(calls(workspace)) == 2 * len(built)


def test_files_that_are_not_committed_count(workspace, capsys):
    (workspace / "state.json").write_text(json.dumps(BEFORE))
    for _ in range(2):
        assert run(["affected", "--base=HEAD~1", "--fail-on=recipe"]) == exit_codes.OK
        assert "no experiment affected; 4 unaffected" in capsys.readouterr().out
    assert calls(workspace).count("build user False") == 2, (
        "what is kept of an edited tree is not read for it"
    )


def test_what_was_asked_about_before_it_was_committed_is_no_work_as_a_base(workspace, capsys):
    (workspace / "state.json").write_text(json.dumps(BEFORE))
    (workspace / "new_file").write_text("x")
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    commit(workspace, BEFORE)
    built = calls(workspace)
    (workspace / "state.json").write_text(json.dumps(AFTER))
    assert run(["affected", "--base=HEAD"]) == exit_codes.OK
    assert calls(workspace)[len(built) :] == ["query user False", "build user False"]
    assert "building the digests" not in capsys.readouterr().err.partition("\n")[2]


def digests(workspace: Path) -> int:
    """Of how many states they are kept."""
    return len(list((workspace.parent / "cache" / "slipway" / "digests").glob("*")))


@pytest.mark.parametrize(("writes", "states"), [([], 2), (["late"], 1), (["user.bazelrc"], 1)])
def test_what_was_edited_while_it_was_built_is_not_kept(workspace, writes, states):
    (workspace / "state.json").write_text(json.dumps(AFTER | {"writes": writes}))
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert digests(workspace) == states


def test_options_that_were_edited_while_a_revision_was_built_are_not_taken_for_its(workspace):
    commit(workspace, BEFORE | {"writes": [str(workspace / "user.bazelrc")]})
    commit(workspace, AFTER)
    assert run(["affected", "--base=HEAD~1", "--head=HEAD"]) == exit_codes.OK
    assert digests(workspace) == 1


def a_changed_submodule(workspace: Path) -> None:
    """It is a submodule of HEAD too, with other files."""
    (workspace / "inner").mkdir()
    git(workspace / "inner", "init", "-q")
    commit(workspace / "inner", BEFORE)
    commit(workspace, BEFORE)
    assert git(workspace, "ls-files", "--stage", "inner").startswith("160000 ")
    (workspace / "inner" / "state.json").write_text("edited")


def a_repository_that_is_not_added(workspace: Path) -> None:
    (workspace / "below" / "inner").mkdir(parents=True)
    git(workspace / "below" / "inner", "init", "-q")
    commit(workspace / "below" / "inner", BEFORE)
    (workspace / "below" / "inner" / "more").write_text("x")


def a_file_that_is_assumed_unchanged(workspace: Path) -> None:
    git(workspace, "update-index", "--assume-unchanged", "state.json")
    (workspace / "state.json").write_text(json.dumps(BEFORE))


def a_file_that_is_skipped(workspace: Path) -> None:
    git(workspace, "update-index", "--skip-worktree", "state.json")
    (workspace / "state.json").write_text(json.dumps(BEFORE))


def a_large_file(workspace: Path) -> None:
    """It has no blocks: only its size is large."""
    with (workspace / "data").open("wb") as file:
        file.truncate(65_000_000)


@pytest.mark.parametrize(
    "made",
    [
        a_changed_submodule,
        a_repository_that_is_not_added,
        a_file_that_is_assumed_unchanged,
        a_file_that_is_skipped,
        a_large_file,
    ],
)
def test_a_tree_that_git_does_not_look_at_is_neither_kept_nor_read(workspace, made):
    made(workspace)
    for number in (1, 2):
        assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
        assert digests(workspace) == 1, "those of the base alone"
        assert calls(workspace).count("build user False") == number


def test_an_edit_that_git_was_told_not_to_see_counts(workspace, capsys):
    arguments = ["affected", "--base=HEAD~1"]
    assert run([*arguments, "--head=HEAD"]) == exit_codes.OK
    capsys.readouterr()
    a_file_that_is_assumed_unchanged(workspace)
    assert run(arguments) == exit_codes.OK
    assert "no experiment affected; 4 unaffected" in capsys.readouterr().out


def test_an_index_of_ours_runs_no_hook_and_leaves_no_part_beside_the_users(workspace):
    ran = workspace.parent / "ran"
    hook = workspace / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\necho "$GIT_INDEX_FILE" >> "{ran}"\n')
    hook.chmod(0o755)
    git(workspace, "config", "core.splitIndex", "true")
    git(workspace, "config", "core.hooksPath", str(hook.parent))
    git(workspace, "update-index", "--refresh")
    ran.unlink()
    (workspace / "new_file").write_text("x")
    before = sorted((workspace / ".git").glob("sharedindex.*"))
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert digests(workspace) == 2
    assert sorted((workspace / ".git").glob("sharedindex.*")) == before
    assert not ran.exists(), ran.read_text()


def caches(workspace: Path) -> list[str]:
    """What each build got as its disk cache."""
    return (workspace.parent / "calls.caches").read_text().splitlines()


def test_builds_get_the_disk_cache_that_is_asked_for_and_no_other(workspace):
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert caches(workspace) == ["none"] * 2
    assert run(["affected", "--base=HEAD~1", "--bazel-flag=--disk_cache=/asked"]) == exit_codes.OK
    assert caches(workspace)[2:] == ["/asked"] * 2


def test_the_users_repository_is_as_before(workspace):
    (workspace / "staged").write_text("x")
    git(workspace, "add", "staged")
    (workspace / "user.bazelrc").write_text("build --x\n")

    def everything() -> list[str]:
        return [
            git(workspace, *question)
            for question in (
                ["status", "--porcelain"],
                ["worktree", "list"],
                ["for-each-ref"],
                ["stash", "list"],
                ["count-objects", "-v"],
            )
        ]

    before = everything()
    assert run(["affected", "--base=HEAD~1", "--head=HEAD"]) == exit_codes.OK
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert everything() == before
    assert run(["affected", "--base=HEAD~1", "--head=HEAD", "--targets=//x/..."]) == exit_codes.OK
    (checkout,) = (workspace.parent / "cache" / "slipway" / "revisions").glob("*/checkout")
    assert (checkout / "user.bazelrc").read_text() == "build --x\n"
    assert json.loads((checkout / "state.json").read_text()) == AFTER
    assert not (checkout / "staged").exists()


def kept(workspace: Path) -> Path:
    """The folder of the workspace's other revisions, without the digests of the last call."""
    shutil.rmtree(workspace.parent / "cache" / "slipway" / "digests")
    (home,) = (workspace.parent / "cache" / "slipway" / "revisions").iterdir()
    return home


def lock_of_a_git_that_was_ended(home: Path) -> None:
    (home / "index.lock").touch()


def a_checkout_that_was_cut_off(home: Path) -> None:
    """It wrote files, and its index was not written yet."""
    (home / "unfinished").touch()
    (home / "checkout" / "state.json").write_text(json.dumps(state(of_no_revision=["a", "a"])))
    (home / "checkout" / "of_another_revision").touch()


def a_checkout_that_somebody_deleted(home: Path) -> None:
    shutil.rmtree(home / "checkout")


@pytest.mark.parametrize(
    "left", [lock_of_a_git_that_was_ended, a_checkout_that_was_cut_off, a_checkout_that_somebody_deleted]
)
def test_what_an_earlier_call_left_is_put_right(workspace, capsys, left):
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    first = capsys.readouterr().out
    home = kept(workspace)
    left(home)
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert capsys.readouterr().out == first
    assert not (home / "checkout" / "of_another_revision").exists()


def test_a_sparse_checkout_of_the_user_is_none_of_the_revisions(workspace):
    git(workspace, "config", "core.sparseCheckout", "true")
    (workspace / ".git" / "info").mkdir(exist_ok=True)
    (workspace / ".git" / "info" / "sparse-checkout").write_text("/state.json\n")
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK


def test_two_at_once_take_turns_and_say_so(workspace, capsys):
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    home = kept(workspace)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Timer(0.2, fcntl.flock, (lock, fcntl.LOCK_UN)).start()
        assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert "waiting: another command builds a revision of this workspace\n" in capsys.readouterr().err


def test_a_workspace_that_was_elsewhere(workspace, monkeypatch, capsys):
    (workspace / "moved").mkdir()
    git(workspace, "mv", "state.json", "moved")
    git(workspace, "commit", "-qm", "x")
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(workspace / "moved"))
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.USAGE
    short = git(workspace, "rev-parse", "HEAD~1")[:12]
    assert capsys.readouterr().err == (
        f"error: {short} has no folder that the workspace {workspace / 'moved'} is now. Name a later revision\n"
    )


def test_interrupted_says_what_is_kept(workspace, monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tools.launcher.cli.affected_states.build_manifest", interrupted)
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.INTERRUPTED
    assert capsys.readouterr().err.endswith(
        "interrupted: nothing was told; what is built already is kept for the next call\n"
    )


@pytest.mark.parametrize(
    ("flags", "status"), [([], exit_codes.OK), (["--fail-on=recipe"], exit_codes.FAILED)]
)
def test_failing_is_asked_for(workspace, flags, status):
    assert run(["affected", "--base=HEAD~1", *flags]) == status


def test_a_manifest_stands_for_a_revision(workspace, capsys):
    base = workspace.parent / "main.json"
    base.write_bytes(dump_manifest(DigestManifest(schema=1, experiments={})))
    assert run(["affected", f"--base={base}", "--format=json"]) == exit_codes.OK
    report = json.loads(capsys.readouterr().out)
    assert [item["effect"] for item in report["affected"]] == ["refused", "new", "new", "new"]
    assert report["base"] == str(base)


@pytest.mark.parametrize(
    ("content", "base", "status", "sentence"),
    [
        (
            AFTER,
            "nope",
            exit_codes.USAGE,
            (
                "error: 'nope' is no revision of {workspace} and no file that ends in .json. Name a commit, branch or tag, "
                "such as origin/main; `git fetch` brings those of others\n"
            ),
        ),
        (AFTER, "--upload-pack=x", exit_codes.USAGE, "error: '--upload-pack=x' is no revision of "),
        (
            AFTER,
            "nope.json",
            exit_codes.USAGE,
            "error: nope.json: the file cannot be read: No such file or directory",
        ),
        (
            AFTER | {"query": 7, "said": "ERROR: no such thing\n"},
            "HEAD",
            exit_codes.UNKNOWN,
            "error: bazel query in {checkout} ended with 7: no such thing. Correct the sources, or --targets\n",
        ),
        (
            AFTER | {"query": 3, "said": "ERROR: something else\n"},
            "HEAD",
            exit_codes.UNKNOWN,
            "error: bazel query in {checkout} read only a part: something else. Correct the sources\n",
        ),
        (
            AFTER | {"build": 37},
            "HEAD",
            exit_codes.UNKNOWN,
            (
                "error: bazel build in {checkout} ended with 37: that is neither built nor refused. Run `tools/bazel build "
                "//experiments/...` there and correct what it says\n"
            ),
        ),
    ],
)
def test_what_cannot_be_told_is_said(workspace, capsys, content, base, status, sentence):
    commit(workspace, content)
    assert run(["affected", f"--base={base}", "--head=HEAD"]) == status
    said = capsys.readouterr().err.splitlines(keepends=True)[-1]
    found = [*(workspace.parent / "cache" / "slipway" / "revisions").glob("*/checkout"), None]
    assert said.startswith(sentence.format(workspace=workspace, checkout=found[0]))


def test_a_package_that_cannot_be_read(workspace, capsys):
    said = (
        "ERROR: package contains errors: x/broken\n"
        "ERROR: package contains errors: x/broken: Traceback (most recent call last):\n"
        '\tFile "/w/x/broken/BUILD.bazel", line 3, column 14, in <toplevel>\n'
        "Error: rl_experiment() got unexpected keyword argument: y\n"
        "WARNING: --keep_going specified\n"
    )
    changed = state(same=["a", "a"], changed=["a", "a"], moved=["a", "a"]) | {"query": 3, "said": said}
    (workspace / "state.json").write_text(json.dumps(changed))
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    assert capsys.readouterr().out.splitlines()[0] == (
        "refused   //x/broken:broken  does not build any more: Error: rl_experiment() got unexpected keyword argument: y"
    )


def test_a_revision_without_the_launcher(workspace, capsys):
    git(workspace, "rm", "-q", "tools/bazel")
    git(workspace, "commit", "-qm", "x")
    assert run(["affected", "--base=HEAD"]) == exit_codes.UNKNOWN
    assert "tools/bazel: No such file or directory. The revision must have this file, which runs Bazel\n" in (
        capsys.readouterr().err
    )


def test_what_cannot_be_planned_together_is_built_one_by_one(workspace, capsys):
    arguments = ["affected", "--base=HEAD~1", "--head=HEAD"]
    assert run(arguments) == exit_codes.OK
    together = capsys.readouterr().out.splitlines()[:-1]
    assert calls(workspace) == ["query own False", "build own False"] * 2
    commit(workspace, BEFORE | {"together": False})
    commit(workspace, AFTER | {"together": False})
    assert run(arguments) == exit_codes.OK
    output = capsys.readouterr()
    assert output.out.splitlines()[:-1] == together
    assert output.err.count("affected: they cannot be planned together, and are built one by one\n") == 2
    assert calls(workspace)[4:] == ["query own False", *["build own False"] * 2] * 2


def test_experiments_that_not_everybody_may_use(workspace, capsys):
    (workspace / "state.json").write_text(json.dumps(BEFORE | {"together": "private"}))
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    output = capsys.readouterr()
    assert "no experiment affected; 4 unaffected" in output.out and "one by one" not in output.err
    # A server of its own is not asked twice: visibility is not looked at there.
    assert calls(workspace) == [
        "query own False",
        "build own False",
        "query user False",
        "build user False",
        "query user False",
        "build user False",
    ]


def test_a_manifest_that_somebody_else_built_meanwhile_is_not_taken(workspace, capsys):
    digests = {"version": "2026.11.30", "recipe": "a" * 64, "launch": "a" * 64, "graph": None}
    others = json.dumps({"schema": 1, "experiments": {"//y:y": digests}, "refused": {}})
    (workspace / "state.json").write_text(json.dumps(BEFORE | {"manifest": others}))
    assert run(["affected", "--base=HEAD~1"]) == exit_codes.OK
    output = capsys.readouterr()
    assert "no experiment affected; 4 unaffected" in output.out and "//y" not in output.out
    assert "one by one" in output.err


def test_a_revision_whose_experiments_nobody_can_ask_for_together(workspace, capsys):
    git(workspace, "rm", "-qr", "tools/launcher/asked")
    older = commit(workspace, BEFORE)
    assert run(["affected", f"--base={older}", f"--head={older}"]) == exit_codes.OK
    output = capsys.readouterr()
    assert "no experiment affected; 4 unaffected" in output.out
    assert "one by one" not in output.err, "there is nothing to mend"
    assert calls(workspace) == ["query own False", "build own False"]


@pytest.mark.parametrize("together", [True, False])
def test_outputs_of_another_launcher_are_named(workspace, together):
    (workspace / "state.json").write_text(
        json.dumps(state(odd=["not hex", "a"]) | {"together": together, "manifest": "{}"})
    )
    with pytest.raises(Exception, match="not of this launcher's making.*Compare with a later revision"):
        build_manifest(Workspace(workspace), "//x/...", workspace.parent / "lists")


# Lines of Bazel 8 for a target that lacks a dependency, shortened.
REAL_EVENTS = """\
{"id":{"targetConfigured":{"label":"//e:lacks"}},"children":[{"unconfiguredLabel":{"label":"//third_party/models:nope"}}],"aborted":{"reason":"ANALYSIS_FAILURE"}}
{"id":{"unconfiguredLabel":{"label":"//third_party/models:nope"}},"aborted":{}}
{"id":{"targetConfigured":{"label":"//e:odd"}},"children":[],"aborted":{"reason":"ANALYSIS_FAILURE"}}
{"id":{"buildFinished":{}},"finished":{"exitCode":{"name":"BUILD_FAILURE","code":1}}}
"""


def test_why_a_target_was_not_built():
    events = BuildEvents(REAL_EVENTS.splitlines())
    assert events.finished and events.outputs("//e:lacks") == {}
    more = "; `tools/bazel build {}` tells more"
    assert events.why_not("//e:lacks") == (
        "it needs //third_party/models:nope, which cannot be loaded" + more.format("//e:lacks")
    )
    assert events.why_not("//e:odd") == "Bazel cannot analyze it" + more.format("//e:odd")


@pytest.mark.parametrize(
    ("said", "first"),
    [("INFO: x\nERROR: a\nERROR: b\n", "a"), ("Killed\n", "Killed"), ("", "it said nothing")],
)
def test_the_first_error(said, first):
    assert first_error(said) == first


def test_the_manifest_of_this_repository_has_every_experiment():
    """A list in a BUILD file cannot look for its members."""
    texts = {
        node.value
        for node in ast.walk(ast.parse(Path("experiments/BUILD.bazel").read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    experiments = {f"//{file.parent}" for file in Path("experiments").glob("*/experiment.py")}
    assert experiments and texts >= experiments, "add it to the list of //experiments:digests"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

"""`lint` as its users meet it: the program, with its exit status and what it prints."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
SMOKE = ROOT / "tests/contract/examples/smoke-fsdp.yaml"
MOE = ROOT / "tests/contract/examples/moe-megatron.yaml"
MANIFEST = ROOT / "third_party/marinskyrl/81ae0ef7.yaml"

MEGABYTE = 1 << 20


def lint(*arguments, stdin=b"", **options):
    """Run the program. Its exit status is 0, 1 or 2, and it never dies with a traceback."""
    command = [sys.executable, "-m", "tools.launcher.cli.lint_main", *map(os.fsencode, arguments)]
    environment = {"PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)]), "LC_ALL": "C.UTF-8"}
    environment |= options.pop("environment", {})
    done = subprocess.run(
        command, input=stdin, capture_output=True, timeout=120, env=environment, cwd=ROOT, **options
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode in (0, 1, 2), done
    return done


def documents(*arguments, **options):
    done = lint("--format=json", *arguments, **options)
    entries = json.loads(done.stdout)["documents"]
    assert done.returncode == (1 if any(entry["verdict"] == "reject" for entry in entries) else 0)
    return entries


def document(**changes):
    """The smoke example as YAML, with top-level sections changed."""
    content = yaml.safe_load(SMOKE.read_bytes())
    for name, values in changes.items():
        content[name] = content[name] | values
    return yaml.safe_dump(content).encode()


def test_the_examples_are_accepted_in_one_call():
    smoke, moe = documents(SMOKE, MOE)
    assert (smoke["path"], smoke["verdict"], moe["verdict"]) == (str(SMOKE), "accept", "accept")
    assert not [item for item in smoke["violations"] if item["severity"] == "error"]
    assert {item["id"] for item in smoke["not_checked"]} >= {"GEO-25", "BAT-09"}
    assert smoke["runtime"] == {
        "name": "marinskyrl-81ae0ef7",
        "commit": "81ae0ef7033c500207b191a2ae7c3806f6dc78ff",
        "file": "81ae0ef7.yaml",
        "why": "it has the document's runtime.launcher_commit",
    }


def test_one_rejected_document_rejects_the_call(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(document(iris={"nodes": 1}))
    good, rejected = documents(SMOKE, bad)
    assert (good["verdict"], rejected["verdict"]) == ("accept", "reject")
    assert {
        "id": "DOC-02",
        "severity": "error",
        "path": "iris.nodes",
        "message": "iris has no key 'nodes'. Near: iris.allocation.num_nodes, which is there as well",
        "repair": "delete iris.nodes",
    } in rejected["violations"]


def test_standard_input_is_a_document():
    (entry,) = documents("-", stdin=SMOKE.read_bytes())
    assert (entry["path"], entry["verdict"]) == ("-", "accept")


def test_the_text_names_place_message_and_repair(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(document(iris={"nodes": 1}, run={"seed": "many"}))
    done = lint(bad, SMOKE)
    text = done.stdout.decode()
    assert done.returncode == 1
    assert f"{bad}: reject, 2 errors, " in text
    assert re.search(r"  error: DOC-02 at iris\.nodes \(line \d+\)\n      iris has no key 'nodes'", text)
    assert "      run.seed is 'many', not an integer\n      repair: write run.seed as an integer\n" in text
    rejected, accepted = text.split("\n\n")[:2]
    assert "  not checked: needs a cluster card with max_nodes: " in accepted
    assert re.search(r"  not checked: \d+ \(.+\); checklist: \d \(.+\)\. In full: --format=json\n", rejected)
    assert rejected.count("not checked: ") == 1
    assert "  model card: none: none was given. Give one: --model_card=FILE\n" in accepted
    assert "runtime manifest: 81ae0ef7.yaml: it has the document's runtime.launcher_commit" in text
    assert re.search(r"\n2 documents: 1 accepted, 1 rejected; 2 errors, \d+ warnings?\n$", text)
    assert "\x1b" not in text


def test_sarif_has_rules_results_and_places(tmp_path):
    bad = tmp_path / "ä b.yaml"
    bad.write_bytes(document(iris={"nodes": 1}))
    done = lint("--format=sarif", bad)
    log = json.loads(done.stdout)
    assert (done.returncode, log["version"]) == (1, "2.1.0")
    assert set(log) == {"$schema", "version", "runs"}
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in rules)
    (result,) = [each for each in run["results"] if each["ruleId"] == "DOC-02"]
    assert rules[result["ruleIndex"]]["id"] == "DOC-02"
    assert result["level"] == "error" and "Repair: delete iris.nodes" in result["message"]["text"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"file://{tmp_path}/%C3%A4%20b.yaml"
    line = place["region"]["startLine"]
    assert bad.read_text(encoding="utf-8").splitlines()[line - 1].strip() == "nodes: 1"
    assert location["logicalLocations"] == [{"fullyQualifiedName": "iris.nodes"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the document is empty, not a mapping"),
        (b"{}", "the document is an empty mapping"),
        (b"- 1", "the document is a list, not a mapping"),
        (b"kind: model\nname: x\n", "this says `kind: model`; a launch document has no kind"),
        (b"kind: [model]\n", ""),
        ("schema_version: 1".encode("utf-16"), "byte 0 is not UTF-8 text"),
        (b"\x00" * 1000, "control characters are not allowed"),
        (b"a: 1\na: 2\n", "line 2, column 1: the key 'a' appears twice in one mapping"),
        (b"a: [" * 100_000, "more than 60 deep"),
        (b"[" * MEGABYTE, "exceeded maximum nesting depth"),
        (b"? " * 100_000, "more than 60 deep"),
        (b"a: 1" + b":1" * 400_000, "a number of 800001 characters"),
        (b"%TAG !a! tag:x\n" * 50_000 + b"---\na: 1", "more than 20 %TAG directives"),
        (b"x" * (17 * MEGABYTE), "the file has 17825792 bytes, the limit is 16777216"),
        (b"a0: &a0 [1,1,1,1,1,1,1,1,1]\n" + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)), "aliases expanded"),
        (b"a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        (b"a: 1\n---\nb: 2\n", "expected a single document"),
        (SMOKE.read_bytes()[:700], ""),
    ],
)  # fmt: skip
def test_any_bytes_end_in_a_verdict(tmp_path, content, message):
    path = tmp_path / "hostile.yaml"
    path.write_bytes(content)

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        # Address space, of which the libraries alone take a part; what is resident is below 200 MB.
        resource.setrlimit(resource.RLIMIT_AS, (400 * MEGABYTE, 400 * MEGABYTE))

    (entry,) = documents(path, preexec_fn=limit)
    assert entry["verdict"] == "reject"
    assert any(message in item["message"] for item in entry["violations"]), entry["violations"]
    assert message == "" or [item["id"] for item in entry["violations"]][:1] in (["DOC-01"], ["ART-08"])


def test_what_is_no_file_is_rejected(tmp_path):
    pipe, folder, secret, loop = (tmp_path / name for name in ("pipe", "folder", "secret", "loop"))
    os.mkfifo(pipe)
    folder.mkdir()
    loop.symlink_to(loop)
    secret.write_bytes(b"")
    entries = documents(pipe, folder, loop, "/dev/zero", "")
    assert [entry["violations"][0]["message"] for entry in entries] == [
        "this is a pipe, not a file",
        "this is a folder, not a file",
        "the file cannot be read: Too many levels of symbolic links",
        "this is a device, not a file",
        "the path is empty",
    ]
    assert {entry["violations"][0]["id"] for entry in entries} == {"DOC-01"}


def test_a_file_name_may_have_any_bytes(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\x1b[31m\n.yaml"
    Path(os.fsdecode(name)).write_bytes(SMOKE.read_bytes())
    for environment in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        (entry,) = documents(name, environment=environment)
        assert entry["path"] == f"{tmp_path}/\\xff\x1b[31m\n.yaml"
        text = lint(name, environment=environment).stdout
        assert b"\x1b" not in text and b"\\xff" in text
        json.loads(lint("--format=sarif", name, environment=environment).stdout)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "the following arguments are required: FILE"),
        (["nowhere.yaml"], "lint: nowhere.yaml: there is no such file. Correct the path"),
        ([SMOKE, "--format=xml"], "invalid choice: 'xml'"),
        ([SMOKE, "--frobnicate"], "unrecognized arguments"),
        (["-", "-"], "lint: standard input is named twice. Give - once"),
        ([SMOKE, "--model_card=nowhere.yaml"], "lint: nowhere.yaml: the file cannot be read: No such file"),
        ([SMOKE, f"--model_card={MANIFEST}"], "kind is 'runtime_manifest', expected 'model'"),
        ([SMOKE, f"--runtime_manifest={SMOKE}"], "kind is None, expected 'runtime_manifest'"),
    ],
)
def test_wrong_usage_is_a_sentence_and_2(arguments, sentence):
    done = lint(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert sentence in done.stderr.decode()


def card(folder, name, **fields):
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"name": name, **fields}), encoding="utf-8")
    return path


def test_one_card_serves_every_document_and_several_only_by_identity(tmp_path):
    export = {"name": "tests/qwen06-sft", "version": "2026.09.01", "fingerprint": "1512cff8"}
    named = card(tmp_path, "named", kind="model", export=export)
    other = card(tmp_path, "other", kind="model", repository="Qwen/Qwen3-0.6B")
    (alone,) = documents(SMOKE, f"--model_card={other}")
    assert alone["cards"]["model"] == {"file": str(other), "why": "it was given"}
    (chosen,) = documents(SMOKE, f"--model_card={other}", f"--model_card={named}")
    assert chosen["cards"]["model"] == {
        "file": str(named),
        "why": "of those given, inputs.model.identity names it",
    }
    (nothing,) = documents(SMOKE, f"--model_card={other}", f"--model_card={other}")
    assert nothing["cards"]["model"] == {
        "file": None,
        "why": f"inputs.model.identity names none of those given ({other}, {other})",
    }


def test_a_cluster_card_is_named_by_its_configuration(tmp_path):
    east = card(tmp_path, "east", kind="cluster", config="lib/iris/config/cw-us-east-02a.yaml", max_nodes=1)
    west = card(tmp_path, "west", kind="cluster", config="lib/iris/config/west.yaml", max_nodes=1)
    (entry,) = documents(SMOKE, f"--cluster_card={west}", f"--cluster_card={east}")
    assert entry["cards"]["cluster"]["file"] == str(east)
    assert "GEO-25" not in {item["id"] for item in entry["not_checked"]}


def test_a_manifest_is_given_or_that_of_the_commit_or_the_newest(tmp_path):
    foreign = tmp_path / "foreign.yaml"
    foreign.write_bytes(document(runtime={"launcher_commit": "81ae0ef7" + "0" * 32}))
    (entry,) = documents(foreign)
    assert entry["runtime"]["file"] == "81ae0ef7.yaml"
    assert (
        entry["runtime"]["why"] == "the newest one; there is none of the document's runtime.launcher_commit"
    )

    other = tmp_path / "other.yaml"
    other.write_bytes(MANIFEST.read_bytes().replace(b"81ae0ef7033c500207b191a2ae7c3806f6dc78ff", b"ab" * 20))
    (entry,) = documents(SMOKE, f"--runtime_manifest={other}")
    assert (entry["runtime"]["commit"], entry["runtime"]["why"]) == ("ab" * 20, "it was given")
    both = (f"--runtime_manifest={other}", f"--runtime_manifest={MANIFEST}")
    (entry,) = documents(SMOKE, *both)
    assert entry["runtime"]["why"] == "of those given, it has the document's runtime.launcher_commit"
    (entry,) = documents(foreign, *both)
    assert entry["runtime"]["why"] == "the last one given; none has the document's runtime.launcher_commit"


def test_a_closed_output_is_no_traceback():
    command = f"{sys.executable} -m tools.launcher.cli.lint_main {' '.join([str(SMOKE)] * 300)} | head -1"
    environment = {"PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)]), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, shell=True, capture_output=True, env=environment, cwd=ROOT, timeout=120)
    assert done.stderr == b"" and done.stdout.endswith(b"\n") and done.stdout.count(b"\n") == 1


def test_lint_loads_nothing_heavy():
    code = (
        "import sys, tools.launcher.cli.lint_main, tools.launcher.cli.lint_command\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    environment = {"PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert not {"iris", "google", "grpc", "numpy", "rich", "pyarrow", "requests"} & set(done.stdout.split())


def test_paths_start_where_bazel_run_was_called():
    there = {"BUILD_WORKING_DIRECTORY": str(SMOKE.parent)}
    (entry,) = documents(SMOKE.name, environment=there)
    assert (entry["path"], entry["verdict"]) == (SMOKE.name, "accept")


LEDGERS = [f"--ledger=experiments/{name}/versions.lock.yaml" for name in ("cat_count", "gsm8k_grpo")]


def test_a_document_is_judged_by_the_ledgers(tmp_path):
    """Several are read as one; the pinned document passes, and one that was changed does not."""
    golden = ROOT / "experiments/gsm8k_grpo/golden/launch.yaml"
    changed = tmp_path / "changed.yaml"
    changed.write_bytes(golden.read_bytes().replace(b"seed: 17", b"seed: 18"))
    kept, refused = documents(*LEDGERS, golden, changed)
    assert kept["verdict"] == "accept" and {"ART-06", "ART-17"} <= set(kept["passed"])
    assert [item["id"] for item in refused["violations"] if item["severity"] == "error"] == ["ART-17"]
    (unknown,) = documents(LEDGERS[0], golden)
    assert [item["id"] for item in unknown["checklist"] if item["id"].startswith("ART")] == [
        "ART-13",
        "ART-17",
    ]


def test_two_ledgers_that_know_one_version_are_wrong_usage(tmp_path):
    copy = tmp_path / "copy.yaml"
    copy.write_bytes((ROOT / "experiments/cat_count/versions.lock.yaml").read_bytes())
    done = lint(LEDGERS[0], f"--ledger={copy}", SMOKE)
    assert done.returncode == 2
    assert (
        b"slipway/cat-count-rl@2026.11.30 stands in experiments/cat_count/versions.lock.yaml as well"
        in done.stderr
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

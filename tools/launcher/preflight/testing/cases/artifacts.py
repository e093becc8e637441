"""Cases of the ART checks."""

from typing import Any

from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.ledger import PinnedVersion, VersionLedger
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes, Reminds
from tools.launcher.preflight.testing.experiments import (
    COMMIT,
    data_step,
    model_step,
    planned,
    rl_step,
    step,
    tasktrove_source,
)
from tools.launcher.preflight.testing.subjects import DELETED, dataset_card, document, model_card
from tools.launcher.rl.pinning import apart_from_runtime
from tools.launcher.rl.recipe import SkyRLRecipe

_RUN = "run.id"
_EXPORTS = "artifacts.export_root"
_MODEL = "inputs.model"
_TRAIN = "inputs.train_data[0]"
_VALIDATION = "inputs.validation_data[0]"
_DRAFT = "skyrl.generator.speculative_decoding.model"

_SELECTION: dict[str, Any] = {
    "sources": ["swe"],
    "tags": ["python"],
    "modes": [],
    "tag_match": "any",
    "limit": 512,
    "seed": 7,
}
_TASKS: dict[str, Any] = {
    "uri": "s3://lab/tasktrove/clean/pack.parquet",
    "identity": "tasktrove/clean@2026.09.01:aabbccdd",
    "local_path": "/tmp/marinskyrl/data/clean",
    "relative_path": "pack.parquet",
    "verifier_ref": "verify-tool@1.4.0",
    "selection": _SELECTION,
    "kind": "tasktrove_parquet",
}


_SNAPSHOT = {"count": 3, "digest": "sha256:aa", "distinct_environment_count": 2}


_NAME, _VERSION = "users/lab/tests/qwen06-gsm8k-rl", "2026.09.21"
_OLD_RUNTIME = "32edb00f" * 5


def _ledger(**changes: Any) -> dict[str, Any]:
    """The fact that the example's version was published under another runtime, in another form."""
    pin = {
        "recipe": "11aa22bb" * 8,
        "apart_from_runtime": "22bb33cc" * 8,
        "document": "33cc44dd" * 8,
        "runtime": _OLD_RUNTIME,
        "launch": "44dd55ee" * 8,
    }
    versions = {
        _NAME: {_VERSION: PinnedVersion(**pin | changes)},
        "lab/run": {_VERSION: PinnedVersion(**pin | changes)},
    }
    return {"ledger": VersionLedger(schema=1, versions=versions)}


_COMPATIBLE = {"checkpoints": "compatible", "because": "only the logger changed"}
_NOTHING_PINNED: dict[str, Any] = {"ledger": VersionLedger()}


def _experiment(**changes: Any) -> Any:
    return lambda: planned(rl_step(model_step(), **changes))


def _tasks(**selection: Any) -> dict[str, Any]:
    return {_TRAIN: _TASKS | {"selection": _SELECTION | selection}}


def _version(version: str) -> dict[str, Any]:
    return {_RUN: f"team/run-{version}", _EXPORTS: f"s3://lab/marin/team/run/{version}/exports"}


def _fixed_on_dev() -> Any:
    moving = step("data", "dev")
    return planned(step("run", kind="skyrl", deps=(step("model", kind="hf_model", deps=(moving,)),)))


def _conflict() -> SkyRLRecipe:
    return SkyRLRecipe.combine(base={"trainer": {"epochs": 1}}, long={"trainer": {"epochs": 4}})


def _two_parts(a: dict[str, Any], b: dict[str, Any]) -> SkyRLRecipe:
    return SkyRLRecipe.combine(a={"trainer": a}, b={"trainer": b})


def _agreement() -> SkyRLRecipe:
    return SkyRLRecipe.combine(base={"trainer": {"epochs": 1}}, long={"trainer": {"epochs": 1}})


FAILING = (
    Fails(
        check="ART-06",
        facts=_ledger(),
        says="users/lab/tests/qwen06-gsm8k-rl@2026.09.21 has checkpoints from runtime 32edb00f; this build uses 81ae0ef7",
        at="runtime.launcher_commit",
    ),
    Fails(
        check="ART-06",
        planned=_experiment(),
        facts=_ledger(),
        says="lab/run@2026.09.21 has checkpoints from runtime 32edb00f; this build uses 81ae0ef7",
    ),
    Fails(
        check="ART-17",
        planned=_experiment(),
        facts=_ledger(),
        says="lab/run@2026.09.21 is pinned as 11aa22bb; this definition is "
        f"{step_fingerprint(rl_step(model_step()))[:8]}. What exists under that version would be taken for this",
        at="run.id",
    ),
    Fails(
        check="ART-17",
        planned=_experiment(),
        facts=_ledger(runtime=COMMIT, apart_from_runtime=apart_from_runtime(rl_step(model_step()))),
        says="lab/run@2026.09.21 is pinned as 11aa22bb",
    ),
    Fails(
        check="ART-17",
        facts=_ledger(),
        says="users/lab/tests/qwen06-gsm8k-rl@2026.09.21 is pinned as 33cc44dd; this document is "
        f"{document_recipe(document('smoke'))[:8]}, apart from runtime and placement. What exists under that version would be taken for this",
    ),
    Fails(check="ART-01", changes={_RUN: "team/../x-2026.01.15"}, says="'team/../x' contains '..'"),
    Fails(check="ART-01", changes={_RUN: "/team/x-dev"}, says="'/team/x' has a slash at an end"),
    Fails(
        check="ART-01",
        planned=lambda: planned(step("s3://b/x")),
        says="contains a URL scheme",
        at="s3://b/x@2026.09.21",
    ),
    Fails(
        check="ART-02", changes=_version("2026.13.45"), says="version '2026.13.45': month 13 does not exist"
    ),
    Fails(check="ART-02", changes=_version("2027.02.29"), says="2027-02 has no day 29"),
    Fails(check="ART-02", changes=_version("v1"), says="version 'v1' is neither YYYY.MM.DD"),
    Fails(check="ART-02", changes={_RUN: "team/run-2026.13.01"}, says="month 13 does not exist"),
    Fails(check="ART-02", changes={_RUN: "run"}, says="version 'run' is neither"),
    Fails(
        check="ART-02",
        planned=lambda: planned(step("a", "2026.1.5")),
        says="'2026.1.5' is neither",
        at="a@2026.1.5",
    ),
    Fails(
        check="ART-03", planned=_fixed_on_dev, says="run@2026.09.21 is fixed but depends on mutable data@dev"
    ),
    # A document states the identities of its direct inputs itself (launch-document.md §4.8).
    Fails(
        check="ART-03",
        changes={"inputs.model.identity": "tests/sft@dev:1512cff8"},
        says="qwen06-gsm8k-rl@2026.09.21 is fixed but depends on mutable tests/sft@dev",
        at="inputs.model.identity",
    ),
    Fails(
        check="ART-03",
        changes={
            "inputs.validation_data": [
                document("smoke")["inputs"]["train_data"][0] | {"identity": "tests/gsm8k@smoke-dev:425a569b"}
            ]
        },
        says="mutable tests/gsm8k@smoke-dev",
        at="inputs.validation_data[0].identity",
    ),
    Fails(
        check="ART-04",
        planned=lambda: planned(step("a"), step("b"), overrides={"c": "2026.01.15"}),
        says="--override c=2026.01.15 matches no artifact of this graph. Known: a, b",
    ),
    Fails(
        check="ART-04",
        planned=lambda: planned(step("a"), overrides={"a": "2026.01.15"}),
        says="--override a=2026.01.15 is not used: the graph has a@2026.09.21",
    ),
    Fails(
        check="ART-05",
        planned=lambda: planned(step("a", recorded_fingerprint="1512cff8", expected_fingerprint="1512cff9")),
        says="a@2026.09.21: fingerprint is 1512cff8, pinned '1512cff9'",
    ),
    Fails(check="ART-05", planned=lambda: planned(step("a", expected_fingerprint="")), says="pinned ''"),
    Fails(
        check="ART-07",
        changes={f"{_VALIDATION}.uri": "s3://lab/team-b/gsm8k"},
        says="both stage to '/tmp/marinskyrl/data/gsm8k'",
        at=f"{_VALIDATION}.local_path",
    ),
    Fails(
        check="ART-07",
        changes={f"{_TRAIN}.local_path": "/tmp/marinskyrl/models/qwen06-sft/"},
        says="inputs.model ('s3://marin-us-east-02a/tests/qwen06-sft/hf/step-32') and inputs.train_data[0]",
    ),
    Fails(
        check="ART-08",
        changes={f"{_MODEL}.tokenizer_revision": "main"},
        says="tokenizer_revision 'main' of 'Qwen/Qwen3-0.6B' is not a full commit hash (40 lower-case hex digits)",
    ),
    Fails(
        check="ART-08", changes={f"{_MODEL}.tokenizer_revision": "C" * 40}, says="is not a full commit hash"
    ),
    Fails(check="ART-08", changes={f"{_MODEL}.tokenizer_revision": "c1899de"}, says="'c1899de'"),
    Fails(check="ART-08", changes={f"{_MODEL}.tokenizer_revision": DELETED}, says="tokenizer_revision null"),
    Fails(
        check="ART-08",
        changes={f"{_MODEL}.uri": "Qwen/Qwen3-0.6B", f"{_MODEL}.identity": "main"},
        says="identity 'main' of 'Qwen/Qwen3-0.6B'",
    ),
    Fails(
        check="ART-08",
        changes={_DRAFT: {"source_uri": "hf://a/b", "source_identity": "main"}},
        says="source_identity 'main' of 'hf://a/b'",
    ),
    Fails(
        check="ART-09",
        planned=lambda: planned(rl_step(rl_step(model_step(), name="lab/first"))),
        says="lab/first@2026.09.21 exports no Hugging Face model",
    ),
    Fails(
        check="ART-09",
        planned=lambda: planned(rl_step(model_step(relative_path=None))),
        says="lab/model@2026.09.01 has no known Hugging Face export: the card 'lab-model' names none of it",
        severity="warning",
    ),
    Fails(
        check="ART-09",
        planned=lambda: planned(rl_step(model_step(), relative_path="/hf")),
        says="relative_path of the model '/hf' is absolute",
    ),
    Fails(check="ART-10", changes=_tasks(sources=[], tags=[]), says="the TaskTrove selection is empty"),
    Fails(check="ART-10", changes=_tasks(tags=["a", "b", "a"]), says="the selection names 'a' 2 times"),
    Fails(check="ART-10", changes=_tasks(tags=["a", " "]), says="the selection has a blank entry"),
    Fails(
        check="ART-10",
        changes=_tasks(modes="all"),
        says="modes of the selection is 'all', not a list of text",
    ),
    Fails(check="ART-10", changes=_tasks(limit=0), says="limit 0 must be a positive integer, or null"),
    Fails(check="ART-10", changes=_tasks(limit=True), says="limit true must be a positive integer"),
    Fails(
        check="ART-10", changes=_tasks(tag_match="some"), says="tag_match 'some' is unknown. Known: all, any"
    ),
    Fails(check="ART-10", changes=_tasks(seed="7"), says="seed '7' of the selection is not an integer"),
    Fails(check="ART-10", changes=_tasks(count=3), says="a TaskTrove selection has no field 'count'"),
    Fails(
        check="ART-10",
        changes={_TRAIN: _TASKS | {"selection": []}},
        says="selection is a list, not a mapping",
    ),
    Fails(
        check="ART-10",
        planned=lambda: planned(rl_step(model_step(), data=tasktrove_source("../manifest.json"))),
        says="manifest_path '../manifest.json' leaves the artifact",
        at="lab/data@2026.09.01",
    ),
    Fails(
        check="ART-11",
        changes={_TRAIN: _TASKS | {"verifier_ref": ""}},
        facts={"train_dataset": dataset_card(tasktrove_verify_tool_ref="")},
        says="dataset card lab-data: the manifest has no verify_tool_ref (verifier_ref is '')",
    ),
    Fails(
        check="ART-12",
        changes={"inputs.train_data": []},
        says="train_data is empty: the trainer would fall back to a file in the home directory",
    ),
    Fails(
        check="ART-12", changes={"inputs.train_data": DELETED, "skyrl.entrypoint": DELETED}, says="is empty"
    ),
    Fails(
        check="ART-14",
        changes={"inputs.data_kind": "csv"},
        says="data kind 'csv' is unknown. Known: tasks, parquet",
    ),
    Fails(
        check="ART-14",
        changes={"skyrl.data.kind": True},
        says="data kind true is unknown",
        at="skyrl.data.kind",
    ),
    Fails(
        check="ART-14", changes={f"{_TRAIN}.kind": DELETED}, says="kind null of the data source is unknown"
    ),
    Fails(check="ART-14", changes={f"{_TRAIN}.kind": ["directory"]}, says="kind a list of the data source"),
    Fails(check="ART-14", changes={f"{_TRAIN}.rows": 3}, says="a directory source has no field 'rows'"),
    Fails(check="ART-14", changes={f"{_TRAIN}.uri": DELETED}, says="a directory source needs uri"),
    Fails(
        check="ART-14", changes={f"{_TRAIN}.identity": ""}, says="identity of the data source is '', not text"
    ),
    Fails(
        check="ART-14",
        changes={f"{_TRAIN}.relative_path": "../x.parquet"},
        says="inputs.train_data[0].relative_path '../x.parquet' leaves the artifact",
    ),
    Fails(check="ART-14", changes={f"{_TRAIN}.relative_path": "/x.parquet"}, says="'/x.parquet' is absolute"),
    Fails(check="ART-14", changes={f"{_TRAIN}.relative_path": "s3://b/x"}, says="'s3://b/x' is absolute"),
    Fails(check="ART-14", changes={f"{_TRAIN}.relative_path": 7}, says="relative_path is 7, not text"),
    Fails(
        check="ART-14", changes={"inputs.train_data": {}}, says="inputs.train_data is a mapping, not a list"
    ),
    Fails(
        check="ART-14", changes={_TRAIN: "gsm8k"}, says="inputs.train_data[0] is 'gsm8k', not a data source"
    ),
    Fails(
        check="ART-14",
        changes={_TRAIN: _TASKS | {"snapshot": {"count": 3}}},
        says="does not have exactly count, digest, distinct_environment_count",
    ),
    Fails(
        check="ART-15",
        changes={f"{_MODEL}.identity": DELETED},
        says="the model on object storage 's3://marin-us-east-02a/tests/qwen06-sft/hf/step-32' has the identity null",
    ),
    Fails(
        check="ART-15",
        changes={f"{_MODEL}.local_path": "Qwen/Qwen3-0.6B"},
        says="inputs.model.local_path 'Qwen/Qwen3-0.6B' looks like a repository id",
    ),
    Fails(
        check="ART-15", changes={f"{_MODEL}.local_path": "model"}, says="'model' is not a local absolute path"
    ),
    Fails(
        check="ART-15",
        changes={f"{_MODEL}.uri": "s3://lab/marin/model/../other"},
        says="inputs.model.uri 's3://lab/marin/model/../other' leaves the artifact",
    ),
    Fails(check="ART-15", changes={f"{_MODEL}.uri": " "}, says="inputs.model.uri is ' '"),
    Fails(
        check="ART-15",
        changes={f"{_MODEL}.uri": "file://nfs/model"},
        says="inputs.model.uri 'file://nfs/model' names a file of another host",
    ),
    Fails(
        check="ART-14",
        changes={"skyrl.data.kind": None},
        says="data kind null is unknown",
        at="skyrl.data.kind",
    ),
    Fails(
        check="ART-16",
        changes={"skyrl.context_budget": DELETED},
        says="skyrl.context_budget is missing from a source document (runtime.entrypoint is empty)",
    ),
    Fails(
        check="ART-16",
        changes={
            "skyrl.context_budget": DELETED,
            "runtime.entrypoint": "skyrl_train.entrypoints.main_base",
            "skyrl.config_groups": {"off_policy_correction": "tis"},
        },
        says="(it has skyrl.config_groups)",
    ),
    Fails(
        check="ART-18",
        facts={"model": model_card(tokenizer_size=151937)},
        says="tokenizer of 'Qwen/Qwen3-0.6B' has 151937 entries, the model embeds 151936",
    ),
    Fails(
        check="ART-19",
        planned=lambda: planned(step("run", kind="skyrl", deps=(step("a"), step("a", "2026.09.22")))),
        says="a@2026.09.21 is in the graph as a@2026.09.22 too",
    ),
    Fails(
        check="ART-19",
        planned=lambda: planned(
            step("run", kind="skyrl", deps=(step("a"), step("a", override_path="s3://x")))
        ),
        says="a@2026.09.21 is in the graph with two definitions",
    ),
    Fails(
        check="ART-19",
        planned=lambda: planned(step("a"), step("a/2026.09.21/exports")),
        says="write to nested paths s3://lab/marin/a/2026.09.21, s3://lab/marin/a/2026.09.21/exports/2026.09.21",
    ),
    *(
        Fails(
            check="ART-07",
            changes={f"{_TRAIN}.local_path": path, f"{_TRAIN}.uri": "s3://lab/other"},
            says="both stage to",
        )
        for path in (
            "/tmp/marinskyrl/data/./gsm8k",
            "/tmp/marinskyrl//data/gsm8k",
            "/tmp/marinskyrl/data/x/../gsm8k",
        )
    ),
    Fails(
        check="ART-20",
        changes={f"{_VALIDATION}.relative_path": "./train.parquet"},
        says="inputs.validation_data[0] equals inputs.train_data[0]",
        severity="warning",
    ),
    Fails(
        check="ART-20",
        changes={f"{_VALIDATION}.relative_path": "train.parquet"},
        says="inputs.validation_data[0] equals inputs.train_data[0]",
        severity="warning",
    ),
    Fails(
        check="ART-21",
        planned=lambda: planned(recipe=_conflict()),
        says="recipe part 'base' sets trainer.epochs to 1, part 'long' to 4",
        at="skyrl.trainer.epochs",
    ),
    Fails(
        check="ART-21",
        planned=lambda: planned(recipe=_two_parts({"stop": ["a"]}, {"stop": [1, True]})),
        says="recipe part 'a' sets trainer.stop to ['a'], part 'b' to [1, true]",
    ),
    Fails(
        check="ART-21",
        planned=lambda: planned(recipe=_two_parts({"policy": {"x": 1}}, {"policy": 3})),
        says="recipe part 'a' sets trainer.policy to a mapping, part 'b' to 3",
    ),
    Fails(
        check="ART-22",
        changes={"inputs.train_data": [_TASKS, _TASKS]},
        says="inputs.train_data[1] repeats inputs.train_data[0]",
        severity="warning",
    ),
)

REMINDING = (
    Reminds(
        check="ART-06",
        changes=_version("dev"),
        says="team/run@dev is not a fixed version, and the ledger has none of those",
    ),
    Reminds(
        check="ART-13",
        says="decided at launch: if s3://marin-us-east-02a/marin/users/lab/tests/qwen06-gsm8k-rl/2026.09.21/terminal.json "
        "exists, users/lab/tests/qwen06-gsm8k-rl@2026.09.21 is finished and is not trained again",
    ),
    Reminds(
        check="ART-17",
        facts=_NOTHING_PINNED,
        says="users/lab/tests/qwen06-gsm8k-rl@2026.09.21 is not pinned yet: run the experiment's :pin",
    ),
    Reminds(
        check="ART-17",
        planned=_experiment(),
        facts=_ledger(apart_from_runtime=apart_from_runtime(rl_step(model_step())), **_COMPATIBLE),
        says="lab/run@2026.09.21 is pinned as 11aa22bb under runtime 32edb00f, this build is "
        f"{step_fingerprint(rl_step(model_step()))[:8]} under 81ae0ef7: run the experiment's :pin",
    ),
)

PASSING = (
    Passes(check="ART-01"),
    Passes(check="ART-01", planned=lambda: planned(step("team/run"))),
    Passes(check="ART-02"),
    Passes(check="ART-02", changes=_version("2026.09.21.2")),
    Passes(check="ART-02", changes=_version("2028.02.29")),
    Passes(check="ART-02", changes=_version("smoke-dev")),
    Passes(check="ART-02", changes={_RUN: "team/run-dev"}),
    Passes(check="ART-02", planned=lambda: planned(step("a", "dev"))),
    Passes(check="ART-03", planned=lambda: planned(step("a", "dev", deps=(step("b", "smoke-dev"),)))),
    Passes(check="ART-04", planned=lambda: planned(step("a"), overrides={"a": "2026.09.21"})),
    Passes(
        check="ART-05",
        planned=lambda: planned(
            step("a", recorded_fingerprint="1512cff8aa", expected_fingerprint="1512cff8")
        ),
    ),
    Passes(check="ART-06", changes={"skyrl.trainer.resume_mode": "none"}),
    Passes(check="ART-06", facts=_NOTHING_PINNED, changes=_version("2026.09.22")),
    Passes(check="ART-06", facts=_ledger(runtime=COMMIT), changes={"run.seed": 4}),
    Passes(check="ART-06", facts=_ledger(**_COMPATIBLE), changes={"run.seed": 4}),
    Passes(check="ART-06", facts=_ledger(), changes={"skyrl.trainer.resume_mode": "none"}),
    Passes(check="ART-07"),
    Passes(check="ART-07", changes={f"{_VALIDATION}.uri": "s3://marin-us-east-02a/tests/gsm8k/"}),
    Passes(check="ART-08"),
    Passes(
        check="ART-08",
        changes={_DRAFT: {"source_uri": "s3://b/draft", "source_identity": "draft@2026.09.01:0badcafe"}},
    ),
    Passes(check="ART-08", changes={f"{_MODEL}.uri": "Qwen/Qwen3-0.6B", f"{_MODEL}.identity": "c" * 40}),
    Passes(check="ART-09", planned=lambda: planned(rl_step(model_step()))),
    Passes(check="ART-09", planned=lambda: planned(rl_step(model_step(None), relative_path="hf/step-32"))),
    Passes(
        check="ART-09",
        planned=lambda: planned(rl_step(rl_step(model_step(), name="lab/first", export_hf=True))),
    ),
    Passes(check="ART-10"),
    Passes(check="ART-10", changes=_tasks(limit=None)),
    Passes(
        check="ART-10", planned=lambda: planned(rl_step(model_step(), data=tasktrove_source("manifest.json")))
    ),
    Passes(check="ART-11"),
    Passes(check="ART-11", changes=_tasks()),
    Passes(check="ART-12"),
    Passes(check="ART-12", changes={"inputs.train_data": [], "skyrl.entrypoint": "generate"}),
    Passes(check="ART-12", changes={"inputs.train_data": [], "run.mode": "checkpoint_export"}),
    Passes(check="ART-14"),
    Passes(check="ART-14", changes=_tasks() | {f"{_VALIDATION}.relative_path": ""}),
    Passes(check="ART-14", changes={_TRAIN: _TASKS | {"snapshot": _SNAPSHOT}}),
    Passes(check="ART-14", changes={"inputs.data_kind": DELETED, "skyrl.data": DELETED}),
    Passes(check="ART-15"),
    *(
        Passes(check="ART-15", changes={f"{_MODEL}.uri": uri})
        for uri in ("file:///models/a", "file://localhost/models/a")
    ),
    Passes(check="ART-16"),
    Passes(
        check="ART-16",
        changes={"skyrl.context_budget": DELETED, "runtime.entrypoint": "skyrl_train.entrypoints.main_base"},
    ),
    Passes(check="ART-13"),
    Passes(check="ART-17", changes=_version("dev")),
    Passes(check="ART-17", facts=_NOTHING_PINNED, changes=_version("2026.09.22")),
    Passes(check="ART-18", facts={"model": model_card(tokenizer_size=151936)}),
    Passes(check="ART-19", planned=lambda: planned(rl_step(model_step()), data_step())),
    Passes(check="ART-20"),
    Passes(
        check="ART-20",
        changes={_TRAIN: _TASKS, _VALIDATION: _TASKS | {"selection": _SELECTION | {"tags": ["rust"]}}},
    ),
    Passes(check="ART-21", planned=lambda: planned(recipe=_agreement())),
    Passes(check="ART-22"),
    Passes(
        check="ART-22",
        changes={
            "inputs.train_data": [_TASKS, _TASKS | {"selection": _SELECTION | {"tags": ["rust"]}}, {}, {}]
        },
    ),
    # GEO-18 and CTX-03 name both parts, and neither may keep the value.
    Passes(
        check="ART-21",
        planned=lambda: planned(
            recipe=_two_parts(
                {"train_batch_size": 16, "max_prompt_length": 1},
                {"train_batch_size": 32, "max_prompt_length": 2},
            )
        ),
    ),
)

NOT_CHECKED = (
    # Mutable on mutable is fine, and a name that is none of the known forms says nothing.
    *(
        NotChecked(check="ART-03", changes=changes, needs="the artifact graph")
        for changes in (
            {"inputs.model.identity": "tests/sft@dev:1512cff8", _RUN: "users/lab/tests/qwen06-gsm8k-rl-dev"},
            {"inputs.model.identity": "tests/sft@v1:1512cff8"},
            {"inputs.model.identity": "org/model@main"},
        )
    ),
    *(
        NotChecked(check=check, needs="the artifact graph")
        for check in ("ART-03", "ART-04", "ART-05", "ART-09", "ART-19", "ART-21")
    ),
    NotChecked(
        check="ART-06", needs="the version ledger: which runtime made the checkpoints of this version"
    ),
    NotChecked(
        check="ART-17", needs="the version ledger: the fingerprint under which this version was published"
    ),
    NotChecked(
        check="ART-17",
        facts=_ledger(),
        changes={"runtime.entrypoint": "lab.main", "skyrl.context_budget": DELETED},
        needs="the document in source form: the ledger has no digest of a resolved one",
    ),
    NotChecked(
        check="ART-17",
        facts=_ledger(document=document_recipe(document("smoke"))),
        needs="the artifact graph: whether input addresses moved with the cluster or name other content",
    ),
    NotChecked(
        check="ART-17",
        facts=_ledger(),
        changes={"run.seed": float("nan")},
        needs="a document that has a digest",
    ),
    NotChecked(check="ART-18", needs="a model card with vocab_size"),
    NotChecked(
        check="ART-18", facts={"model": model_card()}, needs="tokenizer_size in the model card 'lab-model'"
    ),
    NotChecked(
        check="ART-18",
        changes={f"{_MODEL}.tokenizer_uri": "lab/other"},
        facts={"model": model_card(tokenizer_size=7)},
        needs="the size of the tokenizer 'lab/other'",
    ),
    NotChecked(
        check="ART-12", changes={"inputs.train_data": []}, runtime=lambda: None, needs="a runtime manifest"
    ),
    NotChecked(check="ART-02", changes={_RUN: 7}, needs="a usable value: run.id as str, it is 7"),
)

"""The pages of three real plans: what stands on them, and that nothing comes from elsewhere."""

import html.parser
import re
import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from tests.report.plans_testlib import PLANS
from tools.launcher.render.detail import NoDetail, detail_of
from tools.launcher.render.layout import gpus_of
from tools.launcher.render.plan import LaunchPlan, PlannedArtifact
from tools.launcher.render.report import gpu_hours, report_html
from tools.launcher.render.report_artifacts import artifact_graph
from tools.launcher.rl.recipe import leaves
from tools.launcher.submit.gates.budget import BudgetFacts, most_gpu_hours

HOSTILE = "</title><script>alert(1)</script>&\"'\x1b[31m\n"
PLAN_BYTES, PAGE_BYTES = 40_000, {"colocated_1x8": 64_000, "moe_8x8": 64_000, "async_16x8": 96_000}


@pytest.fixture(scope="module")
def plans() -> dict[str, LaunchPlan]:
    return {name: make() for name, make in PLANS.items()}


@pytest.fixture(params=list(PLANS))
def plan(request, plans) -> LaunchPlan:
    return plans[request.param]


VOID = {"meta", "input"}


class Page(html.parser.HTMLParser):
    """Checks nesting and collects what a page refers to."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_a_page_is_wellformed_and_refers_to_itself_only(plan):
    page = report_html(plan)
    parsed = Page(page)
    identifiers = [attributes["id"] for _, attributes in parsed.seen if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in parsed.seen:
        assert tag not in ("script", "link", "img", "iframe", "object")
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        if "href" in attributes:
            assert attributes["href"].removeprefix("#") in identifiers
        for reference in ("aria-labelledby", "for"):
            assert attributes.get(reference, identifiers[0]) in identifiers
    assert not re.findall(rb"@import|https?:|url\((?!#)", page)


def test_pages_and_plans_stay_small(plans):
    for name, plan in plans.items():
        assert len(report_html(plan)) < PAGE_BYTES[name]
        assert len(plan.model_dump_json(indent=2)) < PLAN_BYTES


def test_a_plan_that_was_written_and_read_gives_the_same_bytes(plan):
    again = LaunchPlan.model_validate_json(plan.model_dump_json())
    assert report_html(again) == report_html(plan)


def test_every_rank_of_every_role_is_on_the_page(plan):
    detail = detail_of(plan)
    text = Page(report_html(plan)).text
    gpus = gpus_of(detail.layout)
    assert len(gpus) == plan.allocation["num_nodes"] * plan.allocation["gpus_per_node"]
    for gpu in gpus:
        for word, rank in (("policy", gpu.policy), ("ref", gpu.reference)):
            if rank:
                coordinates = [f"{name}{index}" for name, index in rank.coordinates]
                assert " ".join((word, str(rank.number), *coordinates)) in text
        if gpu.engine:
            coordinates = [f"{name}{index}" for name, index in gpu.engine.coordinates]
            assert " ".join(("engine", str(gpu.engine.group), *coordinates)) in text
    assert any(gpu.policy for gpu in gpus) and any(gpu.engine for gpu in gpus)


def test_nodes_say_who_is_on_them(plans):
    moe = Page(report_html(plans["moe_8x8"])).text
    assert "node 0 policy + reference PP0" in moe and "node 3 policy + reference PP1" in moe
    assert "node 7 engine 3" in moe
    assert "policy EP expert parallel 4 groups of 8 within a node" in moe
    assert "policy PP pipeline stage 16 groups of 2 across 2 nodes" in moe
    small = Page(report_html(plans["colocated_1x8"])).text
    assert "node 0 policy + reference, engines 0–3" in small


def test_the_numbers_are_those_of_the_plan(plans):
    text = Page(report_html(plans["moe_8x8"])).text
    for words in (
        "64 GPUs 8 nodes × 8 H100 on cw-us-east-02a",
        "1,536 GPU-hours at most: 64 GPUs × 24 h, the coordinator's deadline",
        "64 prompts taken for one step",
        "× 8 samples per prompt 512 rows",
        "÷ 32 prompts per mini batch 2 optimizer steps of 256 rows each",
        "÷ 8 data-parallel ranks 32 rows",
        "÷ 1 row per micro batch 32 micro batches",
        "request window: 9,216 tokens prompt 3,072 answer 6,144",
        "4 turns together: 4,608 tokens generated at most",
        "checkpoint root",
        "the newest 2 checkpoints, 14 days, then the bucket deletes it",
        "warning",
        f"sha256:{plans['moe_8x8'].digests.recipe}",
        f"sha256:{plans['moe_8x8'].digests.launch}",
    ):
        assert words in text, words


def test_the_artifact_graph_has_identities_and_what_they_are_from(plans):
    plan = plans["colocated_1x8"]
    text = Page(report_html(plan)).text
    model, data, run, score = plan.artifacts
    assert run.deps == (model.identity, data.identity) and score.deps == (run.identity,)
    assert [item.adopted for item in plan.artifacts] == [True, True, False, False]
    assert f"from {model.identity} , {data.identity}" in text
    for item in plan.artifacts:
        assert f"identity {item.identity} address {item.path}" in text
    for uri in plan.outputs.values():
        assert uri in text


def test_every_leaf_of_the_recipe_has_its_origin(plans):
    plan = plans["async_16x8"]
    settings = {item.path: item for item in detail_of(plan).settings}
    assert settings["entrypoint"].origin == "fully_async"
    assert settings["trainer.strategy"].origin == "backend"
    assert settings["trainer.epochs"].origin == "common"
    assert settings["trainer.train_batch_size"].origin == "role plan"
    assert settings["context_budget.max_turns"].origin == "context budget"
    text = Page(report_html(plan)).text
    for item in settings.values():
        assert item.path in text
    assert "recipe part fully_async: 4 settings" in text


def test_the_settings_are_the_leaves_of_the_document(plans):
    nested = {"a": {"b": 1, "c": {}}, "d": [1]}
    assert dict(leaves(nested)) == {"a.b": 1, "a.c": {}, "d": [1]}
    paths = [item.path for item in detail_of(plans["moe_8x8"]).settings]
    assert len(paths) == len(set(paths)) > 40


def test_every_check_is_named(plan):
    text = Page(report_html(plan)).text
    for identifier in plan.preflight["passed"]:
        assert identifier in text
    for item in (*plan.preflight["violations"], *plan.preflight["not_checked"], *plan.preflight["checklist"]):
        assert item["id"] in text
    assert plan.preflight["violations"] and plan.preflight["not_checked"]


def test_the_hours_are_those_of_the_budget_gate(plans):
    for name, timeout in (("moe_8x8", 0), ("async_16x8", 1_800)):
        plan = plans[name]
        facts = BudgetFacts(
            cluster=plan.allocation["cluster"],
            nodes=plan.allocation["num_nodes"],
            gpus_per_node=plan.allocation["gpus_per_node"],
            job_timeout_seconds=timeout,
            max_retries=1,
            coordinator_timeout_hours=24,
        )
        assert gpu_hours(detail_of(plan).layout, detail_of(plan).deadline) == most_gpu_hours(facts)


def test_attempts_are_told_where_they_count(plans):
    """In the page, and in the plan: most have no such field."""
    words = "2,176 GPU-hours at most: 128 GPUs × 34 attempts of 0.5 h, the job's own deadline"
    assert words in Page(report_html(plans["async_16x8"])).text
    deadlines = {name: plan.detail["deadline"] for name, plan in plans.items()}
    assert deadlines["async_16x8"] == {"seconds": 34 * 1800, "setting": "job_timeout_seconds", "attempts": 34}
    assert deadlines["moe_8x8"] == {"seconds": 24 * 3600, "setting": "coordinator_timeout_hours"}


@pytest.mark.parametrize("sources", [1, 11, 40, 400])
def test_the_artifact_graph_has_room_for_many_sources_and_long_names(plans, sources):
    plan = plans["colocated_1x8"]
    data = [
        PlannedArtifact(
            stage="s" * 100,
            kind="dataset",
            identity=f"{'d' * 200}{index}@2026.11.30:aaaaaaaa",
            path="s3://x",
            adopted=True,
        )
        for index in range(sources)
    ]
    run = PlannedArtifact(
        stage="rl",
        kind="skyrl",
        identity="x@1:bbbbbbbb",
        path="s3://y",
        deps=tuple(item.identity for item in data),
    )
    page = artifact_graph(plan.model_copy(update={"artifacts": (*data, run)}), detail_of(plan).retention)
    picture = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    boxes = [rect for rect in picture.iter("rect") if rect.get("rx") == "3"]
    assert len(boxes) == sources + 1
    for box in boxes:
        assert int(box.attrib["width"]) >= 200 and int(box.attrib["x"]) + int(box.attrib["width"]) <= 340
    assert all(len("".join(text.itertext())) < 140 for text in picture.iter("text"))


def test_an_authors_text_stays_text(plans):
    plan = plans["colocated_1x8"]
    detail = detail_of(plan)
    artifact = plan.artifacts[0].model_copy(update={"identity": f"{HOSTILE}@1:2", "path": HOSTILE})
    setting = detail.settings[0].model_copy(update={"path": HOSTILE, "value": HOSTILE, "origin": HOSTILE})
    changed = plan.model_copy(
        update={
            "experiment": HOSTILE,
            "version": HOSTILE,
            "options": {HOSTILE: HOSTILE},
            "smoke": HOSTILE,
            "artifacts": (artifact, *plan.artifacts[1:]),
            "outputs": {HOSTILE: HOSTILE},
            "memory": {HOSTILE: HOSTILE},
            "allocation": plan.allocation | {"gpu_variant": HOSTILE, "cluster": HOSTILE},
            "detail": detail.model_copy(update={"settings": (setting,)}).model_dump(mode="json"),
        }
    )
    page = report_html(changed)
    assert b"<script" not in page and b"\x1b" not in page
    assert "alert(1)" in Page(page).text


def test_a_plan_from_before_has_no_report(plans):
    with pytest.raises(NoDetail, match="an earlier launcher wrote it"):
        report_html(plans["colocated_1x8"].model_copy(update={"detail": None}))


def channels(colour: str) -> list[float]:
    """Linear light of a colour's channels (WCAG 2, relative luminance)."""
    long = colour if len(colour) == 7 else "#" + "".join(letter * 2 for letter in colour[1:])
    parts = [int(long[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    shares = (0.2126, 0.7152, 0.0722)
    bright, dark = sorted(
        (
            sum(share * part for share, part in zip(shares, channels(colour), strict=True))
            for colour in (one, other)
        ),
        reverse=True,
    )
    return (bright + 0.05) / (dark + 0.05)


def test_text_can_be_read_on_every_colour_in_light_and_dark(plans):
    """axe does not judge text inside SVG, so this does."""
    page = report_html(plans["colocated_1x8"]).decode()
    themes = [
        dict(re.findall(r"--([a-z]+\d?):(#[0-9a-f]{3,6})", block))
        for block in re.findall(r"(--paper:.*?)\}", page, re.DOTALL)
    ]
    assert len(themes) == 2
    for theme in themes:
        fills = [theme["paper"], theme["plain"], *(theme[f"f{index}"] for index in range(8))]
        assert len(set(fills)) == 10
        assert all(contrast(theme["ink"], fill) >= 7 for fill in fills)
        assert all(contrast(theme[f"s{index}"], theme["paper"]) >= 3 for index in range(8))
        for name in ("soft", "link", "warn"):
            assert contrast(theme[name], theme["panel"]) >= 4.5


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

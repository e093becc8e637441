"""What is printed can be pasted."""

import sys

import pytest

from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.preflight.judge import judge
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.render_text import report_text
from tools.launcher.preflight.repair_search.paste import repair_text
from tools.launcher.preflight.repair_search.plan import PATHS
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.experiments import model_step, planned, rl_step
from tools.launcher.preflight.testing.subjects import changed, document, pinned_runtime, repaired
from tools.launcher.rl.topology import ROLE_PLAN_PATHS, SkyRLRolePlan, SkyRLTopology


def _subject(base: str, *, built_here: bool, **values: object) -> PreflightSubject:
    content = changed(document(base), {PATHS[name]: value for name, value in values.items()})
    origin = planned(rl_step(model_step())) if built_here else None
    return PreflightSubject(document=content, runtime=pinned_runtime(), planned=origin)


@pytest.mark.parametrize(
    ("base", "values"),
    [("smoke", {"engines": 7}), ("smoke", {"num_nodes": 3, "train": 40}), ("moe", {"dp": 6})],
)
def test_python_text_builds_the_topology_of_the_repaired_document(base, values):
    subject = _subject(base, built_here=True, **values)
    report = judge(subject, CHECKS)
    assert report.proposals
    for proposal in report.proposals:
        topology = eval(proposal.role_plan, {kind.__name__: kind for kind in (SkyRLTopology, SkyRLRolePlan)})
        assert isinstance(topology, SkyRLTopology)
        after = PreflightSubject(document=repaired(subject.document, proposal.repair) or {})
        for field, path in ROLE_PLAN_PATHS:
            assert getattr(topology.role_plan, field) == after.get(f"skyrl.{path}"), path
        for field in ("num_nodes", "gpus_per_node", "gpu_variant"):
            assert getattr(topology, field) == after.get(f"iris.allocation.{field}")


def test_python_text_names_what_the_recipe_has_to_change():
    report = judge(_subject("moe", built_here=True, forward=4), CHECKS)
    assert report.proposals[0].role_plan.endswith(
        ")\n# and in the recipe: trainer.micro_forward_batch_size_per_gpu: 1"
    )
    assert report.proposals[0].role_plan.startswith(
        "SkyRLTopology(\n    num_nodes=8, gpus_per_node=8, gpu_variant='H100',\n    role_plan=SkyRLRolePlan(\n"
    )


def test_yaml_text_has_the_sections_of_a_document():
    subject = _subject("smoke", built_here=False, engines=7)
    proposal = judge(subject, CHECKS).proposals[0]
    pasted = load_yaml_mapping(proposal.role_plan.encode(), source="proposal")
    after = repaired(subject.document, proposal.repair) or {}
    assert set(pasted) == {"iris", "skyrl"} and set(pasted["skyrl"]) == {"trainer", "generator"}
    assert pasted["iris"]["allocation"].items() <= after["iris"]["allocation"].items()
    assert pasted["skyrl"]["generator"].items() <= after["skyrl"]["generator"].items()
    assert pasted["skyrl"]["trainer"].items() <= after["skyrl"]["trainer"].items()
    assert pasted["skyrl"]["generator"]["num_inference_engines"] == 8
    assert "micro_forward" not in proposal.role_plan
    assert max(len(line) for line in proposal.role_plan.splitlines()) <= 101
    forward = judge(_subject("moe", built_here=False, forward=4), CHECKS).proposals[0]
    assert "micro_forward_batch_size_per_gpu: 1" in forward.role_plan


def test_the_repair_is_ready_to_type():
    proposal = judge(_subject("smoke", built_here=False, colocate_policy_ref=False), CHECKS).proposals[0]
    assert (
        proposal.repair
        == repair_text(proposal.changes)
        == "set skyrl.trainer.placement.colocate_policy_ref=true"
    )


def test_the_text_report_ends_with_the_proposals_and_the_count():
    text = report_text(judge(_subject("smoke", built_here=False, engines=7), CHECKS), subject="d.yaml")
    assert (
        "proposal 1 of 3: 1 change, 8 GPUs\n"
        "    skyrl.generator.num_inference_engines: 7 -> 8\n"
        "        iris:\n"
    ) in text
    assert text.splitlines()[-1].startswith("preflight of d.yaml: 1 error")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

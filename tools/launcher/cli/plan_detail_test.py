"""From the numbers of a launch document to nodes of roles: where each begins, and none left out."""

import sys
from typing import Any

import pytest

from tools.launcher.cli.plan_detail import cluster_layout
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import changed, document, pinned_runtime
from tools.launcher.render.layout import ClusterLayout, gpus_of

_PLACEMENT = "skyrl.trainer.placement."
_ENGINE = "skyrl.generator.inference_engine_"
_TEACHER = {
    "source": "local_inference",
    "resources": {"num_nodes": 2, "gpus_per_node": 8, "tensor_parallel_size": 8, "colocation_group": "a"},
}


def laid_out(example: str, changes: dict[str, Any] | None = None) -> ClusterLayout:
    """The layout of one of the contract's examples, which must account for every node of its plan."""
    content = changed(document(example), changes or {})
    subject = PreflightSubject(document=content, runtime=pinned_runtime())
    layout = cluster_layout(subject)
    covered = {gpu.node for gpu in gpus_of(layout) if gpu.policy or gpu.reference or gpu.engine}
    covered |= {
        node for item in layout.others for node in range(item.first_node, item.first_node + item.nodes)
    }
    assert covered == set(range(Geometry.of(subject).derived_nodes)) == set(range(layout.nodes))
    return layout


def test_the_contracts_small_example_shares_one_node():
    layout = laid_out("smoke")
    assert layout.reference is None and layout.engines is not None
    assert (layout.policy.data, layout.engines.count, layout.engines.first_node) == (8, 8, 0)


def test_the_contracts_large_example_is_half_policy_and_half_engines():
    layout = laid_out("moe")
    policy, engines = layout.policy, layout.engines
    assert (policy.pipeline, policy.expert, policy.expert_tensor, policy.data) == (2, 8, 1, 16)
    assert engines is not None and (engines.first_node, engines.unit, engines.nodes) == (4, 8, 4)
    assert layout.reference is not None and layout.reference.first_node == 0


def test_a_reference_of_its_own_comes_before_the_engines():
    layout = laid_out(
        "moe",
        {
            _PLACEMENT + "colocate_policy_ref": False,
            _PLACEMENT + "ref_num_nodes": 2,
            "iris.allocation.num_nodes": 10,
        },
    )
    assert layout.reference is not None and layout.engines is not None
    assert (layout.reference.first_node, layout.reference.nodes, layout.engines.first_node) == (4, 2, 6)


def test_teachers_and_draft_training_come_last():
    layout = laid_out(
        "moe",
        {
            "skyrl.teachers": {"t": _TEACHER},
            "skyrl.generator.speculative_decoding": {"training": {}},
            "iris.allocation.num_nodes": 11,
        },
    )
    assert [(item.role, item.first_node, item.nodes) for item in layout.others] == [
        ("teachers", 8, 2),
        ("draft training", 10, 1),
    ]


def test_engines_of_the_multiprocess_back_end_cross_nodes_by_slices():
    layout = laid_out(
        "moe",
        {
            _ENGINE + "mp_backend": True,
            _ENGINE + "data_parallel_size": 16,
            _ENGINE + "expert_parallel_size": 16,
            "skyrl.generator.num_inference_engines": 2,
        },
    )
    assert layout.engines is not None
    assert (layout.engines.unit, layout.engines.gpus, layout.engines.nodes) == (1, 16, 4)


def test_engines_that_run_elsewhere_are_not_drawn():
    layout = laid_out("moe", {"skyrl.generator.run_engines_locally": False, "iris.allocation.num_nodes": 4})
    assert layout.engines is None


def test_ulysses_is_the_sequence_parallelism_of_fsdp():
    layout = laid_out("smoke", {"skyrl.trainer.policy.sequence_parallel_size": 4})
    assert (layout.policy.sequence, layout.policy.data) == (4, 2)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

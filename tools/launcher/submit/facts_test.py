import json
import sys

import pytest

from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.store.bundles import LaunchBundle
from tools.launcher.submit.facts import declared_credentials, launch_facts
from tools.launcher.submit.request import LaunchMismatch

GRAPH = {
    "experiment_name": "gsm8k_grpo",
    "default_stage": "rl",
    "coordinator_timeout_hours": 24,
    "max_retries": 2,
    "credentials": ["WANDB_API_KEY"],
}
REMOTE = Route(scheduler="iris", config="marin.yaml", target_cluster="cw-us-east-02a")


def bundle(graph=GRAPH, priority="batch"):
    return LaunchBundle(
        launch_yaml=json.dumps({"iris": {"priority": priority}}).encode(),
        graph_json=json.dumps(graph).encode(),
        plan_json=b"{}",
        digest_text="",
    )


def facts(of, route=REMOTE):
    return launch_facts(
        of,
        stage="rl",
        ordinal=1,
        cluster="x",
        store_url="gs://team/slipway",
        object_root_url=None,
        route=route,
        runtime="marinskyrl",
        credentials=("B", "A"),
    )


def test_deadline_retries_and_priority_are_the_bundles():
    made = facts(bundle())
    assert (made.coordinator_timeout_hours, made.max_retries, made.priority) == (24, 2, "batch")
    assert (made.experiment_name, made.default_stage, made.credentials) == ("gsm8k_grpo", "rl", ("A", "B"))
    assert declared_credentials(bundle()) == ("WANDB_API_KEY",)


def test_nobody_competes_on_the_embedded_cluster():
    assert facts(bundle(), EMBEDDED).priority is None


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (
            bundle(priority="urgent"),
            (
                "the bundle's priority cannot be launched: Input should be 'production', 'interactive', "
                "'batch' or 'system'. Build the experiment again"
            ),
        ),
        (
            bundle({**GRAPH, "coordinator_timeout_hours": 0}),
            (
                "the bundle's coordinator_timeout_hours cannot be launched: Input should be greater than or "
                "equal to 1. Build the experiment again"
            ),
        ),
        (
            bundle({name: value for name, value in GRAPH.items() if name != "max_retries"}),
            (
                "the bundle's graph or launch document lacks what a launch needs (KeyError: 'max_retries'). "
                "Build the experiment again"
            ),
        ),
    ],
)
def test_a_bundle_of_another_making_is_a_sentence(of, sentence):
    with pytest.raises(LaunchMismatch) as raised:
        facts(of)
    assert str(raised.value) == sentence


def test_a_graph_that_does_not_say_its_credentials():
    with pytest.raises(LaunchMismatch, match="the bundle's graph lacks its credentials"):
        declared_credentials(bundle({}))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

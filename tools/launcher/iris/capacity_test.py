"""Tests of what follows from what a controller tells about its nodes."""

import sys

import pytest

from tools.launcher.iris.capacity import (
    BackendFacts,
    GroupFacts,
    NodeFacts,
    PeerFacts,
    Placeability,
    placeability,
)
from tools.launcher.iris.jobs import IrisUnreachable, JobRefused


class Told:
    """A controller that tells this."""

    def __init__(
        self,
        *backends: BackendFacts,
        peers: tuple[PeerFacts, ...] = (),
        error: Exception | None = None,
    ) -> None:
        self.told, self.told_of_peers, self.error = backends, peers, error

    def backends(self) -> tuple[BackendFacts, ...]:
        if self.error is not None:
            raise self.error
        return self.told

    def peers(self) -> tuple[PeerFacts, ...]:
        return self.told_of_peers


def ask(
    told: Told, *, gpus: int = 8, nodes: int = 2, variant: str = "H100", target: str | None = None
) -> Placeability:
    return placeability(told, gpu_variant=variant, gpus_per_node=gpus, num_nodes=nodes, target_cluster=target)


COREWEAVE = BackendFacts(
    name="default", gpu_variants=("h100",), gpus={"h100": 32}, nodes=tuple([NodeFacts(gpus=8)] * 4)
)
AUTOSCALED = BackendFacts(
    name="default",
    groups=(GroupFacts(name="gpu-any", gpu_variant="h100"), GroupFacts(name="c", gpu_variant="")),
)


@pytest.mark.parametrize(
    ("backend", "shape", "verdict", "found"),
    [
        (COREWEAVE, {"nodes": 4}, "yes", "the cluster has 4 nodes with 8 or more h100 GPUs"),
        (
            COREWEAVE,
            {"nodes": 5},
            "no",
            "the cluster has 4 nodes with 8 or more h100 GPUs and can add 0, 5 are asked for",
        ),
        (
            COREWEAVE.model_copy(update={"nodes_to_come": 2}),
            {"nodes": 5},
            "unknown",
            "the cluster has 4 nodes with 8 or more h100 GPUs and may add 2 nodes, 5 are asked for",
        ),
        (
            COREWEAVE,
            {"gpus": 16, "nodes": 1},
            "no",
            "the cluster has 0 nodes with 16 or more h100 GPUs and can add 0, 1 are asked for",
        ),
        (COREWEAVE, {"variant": "GB200"}, "no", "the cluster has no gb200 GPUs; it has h100"),
        (
            COREWEAVE.model_copy(update={"gpu_variants": ("h100", "h200")}),
            {},
            "unknown",
            "the cluster has GPUs of several models and does not tell which node has which",
        ),
        (
            COREWEAVE.model_copy(update={"nodes": ()}),
            {"nodes": 4},
            "yes",
            "the cluster has 32 h100 GPUs",
        ),
        (
            COREWEAVE.model_copy(update={"nodes": ()}),
            {"nodes": 5},
            "unknown",
            "the cluster has 32 h100 GPUs at the moment, 40 are asked for",
        ),
        (
            AUTOSCALED,
            {},
            "unknown",
            "the cluster makes h100 nodes on demand and does not tell how many",
        ),
        (AUTOSCALED, {"variant": "H200"}, "no", "the cluster has no h200 GPUs; it has h100"),
        (
            BackendFacts(name="default"),
            {},
            "unknown",
            "the cluster does not tell how many h100 GPUs it has",
        ),
    ],
)
def test_one_backend(backend: BackendFacts, shape: dict[str, int], verdict: str, found: str) -> None:
    answer = ask(Told(backend), **shape)  # type: ignore[arg-type]
    assert (answer.verdict, answer.found) == (verdict, found)


def test_of_two_backends_one_that_fits_is_enough() -> None:
    small = COREWEAVE.model_copy(update={"nodes": (NodeFacts(gpus=8),)})
    assert ask(Told(small, COREWEAVE), nodes=3).verdict == "yes"
    assert ask(Told(small, COREWEAVE), nodes=9).verdict == "no"
    assert ask(Told(small, BackendFacts(name="b")), nodes=9).verdict == "unknown"
    assert ask(Told()).found == "the cluster does not tell what it runs on"


def test_through_a_hub_the_peer_counts() -> None:
    east = PeerFacts(name="cw-east", reachable=True, backends=(COREWEAVE,))
    away = PeerFacts(name="cw-west", reachable=False, backends=(COREWEAVE,))
    hub = Told(BackendFacts(name="tpus"), peers=(away, east))
    assert ask(hub, nodes=4, target="cw-east") == Placeability(
        verdict="yes", found="cluster cw-east has 4 nodes with 8 or more h100 GPUs"
    )
    assert ask(hub, nodes=5, target="cw-east").verdict == "no"
    assert ask(hub, target="cw-west") == Placeability(
        verdict="unknown", found="the hub does not reach cluster cw-west at the moment"
    )
    assert ask(hub, target="cw-north") == Placeability(
        verdict="no", found="the hub hands no jobs to a cluster cw-north; it has cw-east, cw-west"
    )


def test_a_controller_that_does_not_tell() -> None:
    assert ask(Told(error=JobRefused("no such method"))) == Placeability(
        verdict="unknown", found="the controller does not tell what it runs on: no such method"
    )
    with pytest.raises(IrisUnreachable):
        ask(Told(error=IrisUnreachable("http://127.0.0.1:1", 1.0)))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

"""Can a cluster ever place a gang? Answered from what its controller tells anybody, without a submission.

What only lacks room now is no reason to refuse: a job waits for it. What no node of the cluster could ever
run would wait for ever (a Kubernetes cluster of Iris takes such a job and never starts it).
"""

import re
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from tools.launcher.iris.jobs import JobRefused

# A group of the embedded cluster is made for gangs of one size, and its name says which
# (local/daemon.py): Iris does not tell the size of a group's slices.
_GANG_GROUP = re.compile(r"^(?P<variant>[a-z0-9]+)x(?P<gpus>\d+)-n(?P<nodes>\d+)$")


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class NodeFacts(_Facts):
    """One node of a Kubernetes cluster: how many GPUs can be asked of it."""

    gpus: int


class GroupFacts(_Facts):
    """One scale group of a cluster with an autoscaler; `gpu_variant` is lower-case, "" without GPUs."""

    name: str
    gpu_variant: str


class BackendFacts(_Facts):
    """What one backend of a controller runs on.

    Attributes:
        name: its id.
        gpu_variants: lower-case GPU models it takes jobs for; empty if it does not say.
        gpus: lower-case model -> GPUs of all its nodes, busy or not; no entry if it does not say.
        nodes: its nodes with GPUs, if it is a Kubernetes cluster.
        nodes_to_come: how many nodes its pools may still add.
        groups: its scale groups, if it has an autoscaler.
    """

    name: str
    gpu_variants: tuple[str, ...] = ()
    gpus: dict[str, int] = {}
    nodes: tuple[NodeFacts, ...] = ()
    nodes_to_come: int = 0
    groups: tuple[GroupFacts, ...] = ()


class PeerFacts(_Facts):
    """A cluster that a hub hands jobs to, as the hub last saw it."""

    name: str
    reachable: bool
    backends: tuple[BackendFacts, ...]


class Placeability(_Facts):
    """The answer.

    Attributes:
        verdict: `yes`, it can be placed now or when others have finished; `no`, never; `unknown`, the
            controller does not tell enough.
        found: what was found, one clause without a full stop.
    """

    verdict: Literal["yes", "no", "unknown"]
    found: str


class CapacityGateway(Protocol):
    """What is asked of Iris (`tools.launcher.iris.gateway.IrisGateway` has it)."""

    def backends(self) -> tuple[BackendFacts, ...]:
        """The backends of the controller itself."""
        ...

    def peers(self) -> tuple[PeerFacts, ...]:
        """The clusters it hands jobs to."""
        ...


def placeability(
    gateway: CapacityGateway,
    *,
    gpu_variant: str,
    gpus_per_node: int,
    num_nodes: int,
    target_cluster: str | None = None,
) -> Placeability:
    """Say whether the cluster can ever place a gang.

    Args:
        gateway: to the controller that takes the job.
        gpu_variant: GPU model ("H100").
        gpus_per_node: GPUs of each task.
        num_nodes: tasks, each on a node of its own.
        target_cluster: peer that a hub hands the job to; None for the controller's own nodes.

    Raises:
        IrisUnreachable: the controller was not reached.
        LoginNeeded: it does not know who asks.
    """
    try:
        if target_cluster is None:
            place, backends = "the cluster", gateway.backends()
        else:
            peers = gateway.peers()
            place = f"cluster {target_cluster}"
            peer = next((peer for peer in peers if peer.name == target_cluster), None)
            if peer is None:
                names = ", ".join(sorted(peer.name for peer in peers)) or "none"
                return Placeability(
                    verdict="no",
                    found=f"the hub hands no jobs to a cluster {target_cluster}; it has {names}",
                )
            if not peer.reachable:
                return Placeability(
                    verdict="unknown", found=f"the hub does not reach cluster {target_cluster} at the moment"
                )
            backends = peer.backends
    except JobRefused as refused:
        # An older controller has no such question; some show it to administrators only.
        return Placeability(
            verdict="unknown", found=f"the controller does not tell what it runs on: {refused.reason}"
        )
    answers = [
        _of_backend(place, backend, gpu_variant.lower(), gpus_per_node, num_nodes) for backend in backends
    ]
    for verdict in ("yes", "unknown", "no"):
        for answer in answers:
            if answer.verdict == verdict:
                return answer
    return Placeability(verdict="unknown", found=f"{place} does not tell what it runs on")


def _of_backend(
    place: str, backend: BackendFacts, variant: str, gpus_per_node: int, num_nodes: int
) -> Placeability:
    variants = set(backend.gpu_variants) | {
        group.gpu_variant for group in backend.groups if group.gpu_variant
    }
    if variants and variant not in variants:
        return _no(f"{place} has no {variant} GPUs; it has {', '.join(sorted(variants))}")
    groups = [group for group in backend.groups if group.gpu_variant == variant]
    if groups:
        return _of_groups(place, groups, variant, gpus_per_node, num_nodes)
    if backend.nodes:
        return _of_nodes(place, backend, variant, gpus_per_node, num_nodes)
    total = backend.gpus.get(variant)
    if total is None:
        return _unknown(f"{place} does not tell how many {variant} GPUs it has")
    wanted = num_nodes * gpus_per_node
    if wanted > total:
        return _unknown(f"{place} has {total} {variant} GPUs at the moment, {wanted} are asked for")
    return _yes(f"{place} has {total} {variant} GPUs")


def _of_groups(
    place: str, groups: list[GroupFacts], variant: str, gpus_per_node: int, num_nodes: int
) -> Placeability:
    shapes = [match for group in groups if (match := _GANG_GROUP.match(group.name)) is not None]
    if len(shapes) != len(groups):
        return _unknown(f"{place} makes {variant} nodes on demand and does not tell how many")
    sizes = sorted(int(shape["nodes"]) for shape in shapes if int(shape["gpus"]) >= gpus_per_node)
    if not sizes:
        most = max(int(shape["gpus"]) for shape in shapes)
        return _no(f"{place} has nodes with up to {most} {variant} GPUs, {gpus_per_node} are asked for")
    if num_nodes not in sizes:
        listed = ", ".join(map(str, sizes))
        return _no(f"{place} has gangs of {listed} {variant} nodes, {num_nodes} are asked for")
    return _yes(f"{place} has gangs of {num_nodes} {variant} nodes")


def _of_nodes(
    place: str, backend: BackendFacts, variant: str, gpus_per_node: int, num_nodes: int
) -> Placeability:
    # Which model a node has is told in the vendor's words, so nodes are counted only where all are alike.
    alike = set(backend.gpu_variants) == {variant}
    fitting = sum(node.gpus >= gpus_per_node for node in backend.nodes)
    have = f"{place} has {fitting} nodes with {gpus_per_node} or more {variant} GPUs"
    if not alike:
        return _unknown(f"{place} has GPUs of several models and does not tell which node has which")
    if fitting >= num_nodes:
        return _yes(have)
    if fitting + backend.nodes_to_come >= num_nodes:
        return _unknown(f"{have} and may add {backend.nodes_to_come} nodes, {num_nodes} are asked for")
    return _no(f"{have} and can add {backend.nodes_to_come}, {num_nodes} are asked for")


def _yes(found: str) -> Placeability:
    return Placeability(verdict="yes", found=found)


def _no(found: str) -> Placeability:
    return Placeability(verdict="no", found=found)


def _unknown(found: str) -> Placeability:
    return Placeability(verdict="unknown", found=found)

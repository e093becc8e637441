"""The nodes the embedded cluster pretends to have.

Iris places a gang only in a scale group whose slices have exactly as many nodes as the gang has
tasks, so there is a group for each variant and gang size. A group costs nothing until a job asks for
it: the autoscaler makes its workers on demand and drops them when idle.
"""

from dataclasses import dataclass

from tools.launcher.iris.local.state import LocalClusterError

GANG_SIZES = (*range(1, 17), 20, 24, 32)
"""Nodes a gang may have."""

GIB = 1024**3


@dataclass(frozen=True)
class NodeKind:
    """One kind of node; sizes are what may be asked of one node."""

    gpu_variant: str
    gpus: int
    cpu: int
    memory_bytes: int
    disk_bytes: int


# Sizes of cw-us-east-02a (H100) and cw-us-east-08a (GB200) as the cluster cards give them, so that a
# real plan's request is placed, or refused, here as there. H200 nodes are counted as H100 nodes: no
# cluster with them is on record. Nothing of it is real; Iris only counts.
NODE_KINDS = (
    NodeKind("H100", 8, 128, 2014 * GIB, 27 * 1024 * GIB),
    NodeKind("H200", 8, 128, 2014 * GIB, 27 * 1024 * GIB),
    NodeKind("GB200", 4, 144, 955 * GIB, 13 * 1024 * GIB),
)

CPU_NODE = NodeKind("", 0, 192, 1536 * GIB, 13 * 1024 * GIB)
"""Node of the CPU pool, where coordinators run."""

CPU_NODES_MAX = 4
SLICES_MAX = 4
"""Gangs of one variant and size at a time."""


@dataclass(frozen=True)
class GangShape:
    """A gang: `num_nodes` tasks with `gpus_per_node` GPUs of `gpu_variant` each."""

    gpu_variant: str
    gpus_per_node: int
    num_nodes: int


class ShapeNotOffered(LocalClusterError):
    """No such gang fits the embedded cluster."""

    def __init__(self, shape: GangShape) -> None:
        self.shape = shape
        kinds = ", ".join(f"{kind.gpus} x {kind.gpu_variant}" for kind in NODE_KINDS)
        sizes = f"1 to {GANG_SIZES[15]}, " + ", ".join(str(size) for size in GANG_SIZES[16:])
        super().__init__(
            f"the embedded cluster has no gang of {shape.num_nodes} nodes with {shape.gpus_per_node} x "
            f"{shape.gpu_variant} each; it has nodes with up to {kinds}, in gangs of {sizes} nodes. "
            "Rehearse a smaller plan, or launch on a real cluster"
        )


def check_offered(shape: GangShape) -> None:
    """Raise ShapeNotOffered unless a gang of this shape can be placed."""
    for kind in NODE_KINDS:
        if (
            kind.gpu_variant == shape.gpu_variant
            and 0 < shape.gpus_per_node <= kind.gpus
            and shape.num_nodes in GANG_SIZES
        ):
            return
    raise ShapeNotOffered(shape)

"""Which rank stands on which GPU: a pure function of a plan's sizes.

The launch document pins sizes, not an order of ranks. The order here is the one in which the runtime's
libraries number ranks by default; `ORDERS` names it and its source. Nodes are positions in the plan:
which machine takes which position is decided when the job starts.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid")

ORDERS: dict[str, str] = {
    "megatron": (
        "Megatron Core's default order tp-cp-ep-dp-pp: tensor-parallel ranks are neighbours, pipeline stages "
        "are farthest apart (megatron/core/parallel_state.py, initialize_model_parallel)"
    ),
    "fsdp": (
        "a device mesh of data parallel x sequence parallel: ranks that share a sequence are neighbours "
        "(SkyRL skyrl_train/workers/worker.py)"
    ),
    "engines": (
        "engine after engine; within one, data-parallel ranks follow each other, each with pipeline stages "
        "of neighbouring tensor-parallel ranks (MarinSkyRL marinskyrl/inference_placement.py@0a87e8d2)"
    ),
    "roles": (
        "policy, reference, engines, teachers, draft training: the order in which the launcher claims nodes "
        "(MarinSkyRL cloud/iris/role_plan.py@00ee4e42)"
    ),
}
"""What -> the order in which it is drawn, and where that is from. No launch document pins any of it."""


class TrainerLayout(BaseModel):
    """Policy or reference: sizes of its parallel groups. Sizes that a strategy does not have are 1."""

    model_config = _FROZEN

    strategy: str
    first_node: int
    nodes: int
    gpus_per_node: int
    tensor: int
    pipeline: int
    context: int
    sequence: int
    """Ulysses sequence parallelism (FSDP)."""
    expert: int
    expert_tensor: int

    @property
    def world(self) -> int:
        """Ranks."""
        return self.nodes * self.gpus_per_node

    @property
    def data(self) -> int:
        """Data-parallel size: copies of the model."""
        return self.world // (self.tensor * self.pipeline * self.context * self.sequence)


class EngineLayout(BaseModel):
    """The rollout engines that run inside the job."""

    model_config = _FROZEN

    first_node: int
    gpus_per_node: int
    count: int
    tensor: int
    pipeline: int
    data: int
    expert: int
    unit: int
    """GPUs of the part that stays on one node: the whole engine, or one TP*PP slice of it."""

    @property
    def gpus(self) -> int:
        """GPUs of one engine."""
        return self.tensor * self.pipeline * self.data

    @property
    def nodes(self) -> int:
        """Nodes that the engines reach over."""
        return -(-self.count * (self.gpus // self.unit) // (self.gpus_per_node // self.unit))


class OtherNodes(BaseModel):
    """Nodes of a role whose ranks the plan does not describe."""

    model_config = _FROZEN

    role: str
    first_node: int
    nodes: int


class ClusterLayout(BaseModel):
    """The allocation and the roles on it."""

    model_config = _FROZEN

    nodes: int
    gpus_per_node: int
    policy: TrainerLayout
    reference: TrainerLayout | None
    """None where no KL term needs one."""
    engines: EngineLayout | None
    """None where they run elsewhere."""
    others: tuple[OtherNodes, ...]


class Rank(NamedTuple):
    """One process of a role on one GPU."""

    number: int
    """In its role; of an engine, in that engine."""
    group: int
    """Which copy of the model: the data-parallel rank, or the engine's number."""
    coordinates: tuple[tuple[str, int], ...]
    """(dimension, index) of every dimension larger than one; data parallelism of a trainer always."""


class Gpu(NamedTuple):
    """One GPU and who is on it."""

    node: int
    slot: int
    policy: Rank | None
    reference: Rank | None
    engine: Rank | None


class Group(NamedTuple):
    """GPUs that communicate along one dimension."""

    role: str
    dimension: str
    members: tuple[tuple[int, int], ...]
    """(node, slot), in order of rank."""


def gpus_of(layout: ClusterLayout) -> tuple[Gpu, ...]:
    """Return every GPU of the allocation, node by node."""
    return tuple(
        Gpu(
            node=node,
            slot=slot,
            policy=trainer_rank(layout.policy, node, slot),
            reference=trainer_rank(layout.reference, node, slot) if layout.reference else None,
            engine=engine_rank(layout.engines, node, slot) if layout.engines else None,
        )
        for node in range(layout.nodes)
        for slot in range(layout.gpus_per_node)
    )


def trainer_rank(layout: TrainerLayout, node: int, slot: int) -> Rank | None:
    """Return the rank of a trained role on a GPU, None where it has none."""
    position = node - layout.first_node
    if not 0 <= position < layout.nodes or slot >= layout.gpus_per_node:
        return None
    number = position * layout.gpus_per_node + slot
    inner = layout.tensor * layout.context * layout.sequence
    stage, within = divmod(number, inner * layout.data)
    data = within // inner
    if stage >= layout.pipeline:
        return None  # FSDP leaves over what its sequence parallelism does not divide
    coordinates = (
        ("DP", data),
        *_beyond_one("TP", layout.tensor, within % layout.tensor),
        *_beyond_one("CP", layout.context, within // layout.tensor % layout.context),
        *_beyond_one("SP", layout.sequence, within % layout.sequence),
        *_beyond_one("PP", layout.pipeline, stage),
        *_beyond_one("EP", layout.expert, within // layout.expert_tensor % layout.expert),
    )
    return Rank(number, data, coordinates)


def engine_rank(layout: EngineLayout, node: int, slot: int) -> Rank | None:
    """Return the rank of a rollout engine on a GPU, None where it has none."""
    per_node = layout.gpus_per_node // layout.unit
    position = node - layout.first_node
    if position < 0 or slot >= per_node * layout.unit:
        return None
    engine, number = divmod((position * per_node * layout.unit) + slot, layout.gpus)
    if engine >= layout.count:
        return None
    data, within = divmod(number, layout.tensor * layout.pipeline)
    stage, tensor = divmod(within, layout.tensor)
    coordinates = (
        *_beyond_one("TP", layout.tensor, tensor),
        *_beyond_one("PP", layout.pipeline, stage),
        *_beyond_one("DP", layout.data, data),
        *_beyond_one("EP", layout.expert, data * layout.tensor + tensor),
    )
    return Rank(number, engine, coordinates)


def groups_of(layout: ClusterLayout) -> tuple[Group, ...]:
    """Return the communication groups of every role, by role, dimension and rank.

    A trainer's group of one dimension shares all its other coordinates; an expert group lies within a
    pipeline stage; an engine's groups lie within the engine.
    """
    gpus = gpus_of(layout)
    groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[int, int]]] = {}
    for role in ("policy", "reference", "engine"):
        sizes = _engine_sizes(layout.engines) if role == "engine" else _trainer_sizes(getattr(layout, role))
        for dimension in sizes:
            for gpu in gpus:
                rank: Rank | None = getattr(gpu, role)
                if rank is not None:
                    key = _rest(layout, role, dimension, rank)
                    groups.setdefault((role, dimension, key), []).append((gpu.node, gpu.slot))
    return tuple(Group(role, dimension, tuple(members)) for (role, dimension, _), members in groups.items())


def dimensions_of(layout: ClusterLayout) -> dict[str, dict[str, int]]:
    """Return role -> dimension -> size, without dimensions of size one."""
    return {
        "policy": _trainer_sizes(layout.policy),
        "reference": _trainer_sizes(layout.reference),
        "engine": _engine_sizes(layout.engines),
    }


def _beyond_one(name: str, size: int, index: int) -> Iterator[tuple[str, int]]:
    if size > 1:
        yield name, index


def _trainer_sizes(layout: TrainerLayout | None) -> dict[str, int]:
    if layout is None:
        return {}
    sizes = {
        "DP": layout.data,
        "TP": layout.tensor,
        "CP": layout.context,
        "SP": layout.sequence,
        "PP": layout.pipeline,
        "EP": layout.expert,
    }
    return {name: size for name, size in sizes.items() if size > 1}


def _engine_sizes(layout: EngineLayout | None) -> dict[str, int]:
    if layout is None:
        return {}
    sizes = {"TP": layout.tensor, "PP": layout.pipeline, "DP": layout.data, "EP": layout.expert}
    return {name: size for name, size in sizes.items() if size > 1}


def _rest(layout: ClusterLayout, role: str, dimension: str, rank: Rank) -> tuple[int, ...]:
    """What the members of a group have in common."""
    if role == "engine":
        assert layout.engines is not None
        if dimension == "EP":
            return rank.group, rank.number // layout.engines.tensor % layout.engines.pipeline
        return rank.group, *_others(rank, dimension)
    trainer: TrainerLayout = getattr(layout, role)
    if dimension == "EP":
        per_stage = trainer.world // trainer.pipeline
        stage, within = divmod(rank.number, per_stage)
        tensor, block = within % trainer.expert_tensor, within // (trainer.expert_tensor * trainer.expert)
        return stage, tensor, block
    return _others(rank, dimension)


def _others(rank: Rank, dimension: str) -> tuple[int, ...]:
    return tuple(index for name, index in rank.coordinates if name not in (dimension, "EP"))

"""What a search may not change: recipe, model, data and cluster."""

from typing import Any, NamedTuple, Self

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.checks.geometry.nodes import NVL72_SCHEDULABLE_RACK_NODES
from tools.launcher.preflight.geometry import Geometry, node_width_of
from tools.launcher.preflight.prompts import kept_rows
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue, is_count
from tools.launcher.preflight.teachers import placement, teacher_nodes, teachers

_TRAINER = "skyrl.trainer."
_GENERATOR = "skyrl.generator."
_OFFLOADED = _TRAINER + "offload_optimizer_during_rollouts"


class RoleFacts(NamedTuple):
    """The training-side sizes of one role. Formulas: contract, typed-spec.md §4."""

    model_parallel: int
    """tp*pp*cp under Megatron, the Ulysses size under FSDP."""
    expert_parallel: int
    """ep: divides dp (BKD-07)."""
    world_divisor: int
    """etp*ep*pp: divides W (BKD-08)."""
    world: int | None
    """The only W that a written fsdp_size allows (BKD-18)."""

    def data_parallel(self, gpus: int) -> int | None:
        """Return dp of a world of `gpus`, None where it is not whole (BKD-06, GEO-26)."""
        return None if gpus % self.model_parallel else gpus // self.model_parallel

    def faults(self, gpus: int) -> int:
        """How many further rules of the recipe's sizes a world of `gpus` breaks."""
        return (
            (gpus // self.model_parallel % self.expert_parallel > 0)
            + (gpus % self.world_divisor > 0)
            + (self.world not in (None, gpus))
        )


class Facts(NamedTuple):
    """Everything that candidates are made from besides the settings themselves."""

    export_mode: bool
    engines_local: bool
    multiprocess: bool
    sglang: bool
    """SGLang runs local engines of one GPU only (BKD-04), and may spread experts over a part of one (GEO-07)."""
    reference_active: bool
    policy: RoleFacts
    reference: RoleFacts
    extra_nodes: int
    """Nodes of draft training and teachers."""
    widths: tuple[int, ...]
    """GPUs per node that cluster, GPU variant and teachers speak for."""
    most_width: int | None
    """GPUs of a node, where the cluster card or the GPU variant knows them."""
    rack: int | None
    """Schedulable nodes of an NVL72 rack; None on other machines."""
    most_nodes: int | None
    heads: tuple[int, ...]
    """Numbers that TP must divide."""
    kv_heads: int | None
    experts: int | None
    """0 for a dense model, None where nobody says."""
    context_shards: int
    """Decode context parallel size, which divides TP (CTX-10)."""
    one_mini_batch: bool
    """fully_async: T == M (BAT-07)."""
    apart: bool
    """fully_async: the engines have GPUs of their own (OBJ-14)."""
    stays_apart: bool
    """Roles that are not colocated must stay so: `apart`, or the optimizer is offloaded in rollouts (BKD-16)."""
    megatron: bool
    best_of_n: bool
    least_samples: int
    """What estimator, group_advantage_min_size and dynamic sampling ask of n (BAT-12, BAT-20)."""
    most_prompts: int | None
    """Rows that survive the prompt filter (BAT-09, BAT-16)."""
    validation_rows: int | None
    """A multiple of T, where the runtime asks for it (BAT-11)."""

    @classmethod
    def of(cls, subject: PreflightSubject) -> Self:
        """Read the facts.

        Raises:
            UnreadableValue: the document has no usable value for one of them.
            MissingFact: it is left out, and there is no runtime manifest to ask.
        """
        geometry = Geometry.of(subject)
        megatron = geometry.strategy == "megatron"
        card = subject.model
        declared = subject.get("skyrl.model_num_attention_heads")
        heads = (card.num_attention_heads if card is not None else None, declared)
        shards = subject.get(_GENERATOR + "inference_engine_decode_context_parallel_size")
        return cls(
            export_mode=geometry.export_mode,
            engines_local=geometry.engines_local,
            multiprocess=geometry.multiprocess_engines,
            sglang=subject.get(_GENERATOR + "backend") == "sglang",
            reference_active=geometry.reference_active,
            policy=_role(subject, geometry, "policy", megatron),
            reference=_role(subject, geometry, "ref", megatron)
            if geometry.reference_active
            else RoleFacts(1, 1, 1, None),
            extra_nodes=0 if geometry.export_mode else geometry.draft_training_nodes + teacher_nodes(subject),
            widths=_widths(subject),
            most_width=node_width_of(subject.get("iris.allocation.gpu_variant")) or _cluster_width(subject),
            rack=_rack(subject),
            most_nodes=subject.cluster.max_nodes if subject.cluster is not None else None,
            heads=tuple(int(count) for count in heads if count is not None and is_count(count)),
            kv_heads=card.num_key_value_heads if card is not None else None,
            experts=_experts(subject),
            context_shards=shards if is_count(shards) else 1,
            one_mini_batch=subject.entrypoint == "fully_async",
            apart=subject.entrypoint == "fully_async",
            stays_apart=subject.entrypoint == "fully_async" or subject.get(_OFFLOADED) is True,
            megatron=megatron,
            best_of_n=geometry.best_of_n,
            least_samples=_least_samples(subject),
            most_prompts=_most_prompts(subject),
            validation_rows=_validation_rows(subject),
        )

    def moves(self, name: str) -> bool:
        """Whether a search may change the setting `name` of a `Plan`."""
        return {"forward": self.megatron, "workers": self.one_mini_batch}.get(name, True)

    def fits_model(self, *, tp: int, ep: int) -> bool:
        """Whether TP cuts the heads and EP the experts of the model (CTX-08 to -10, BKD-28)."""
        if any(heads % tp for heads in self.heads) or tp % self.context_shards:
            return False
        if self.kv_heads is not None and self.kv_heads % tp and tp % self.kv_heads:
            return False
        return ep == 1 or self.experts is None or (self.experts > 0 and self.experts % ep == 0)


def _role(subject: PreflightSubject, geometry: Geometry, role: str, megatron: bool) -> RoleFacts:
    size = geometry.model_parallel(role)
    if not megatron:
        world = subject.get(f"{_TRAINER}{role}.fsdp_config.fsdp_size")
        return RoleFacts(size, 1, 1, world if is_count(world) else None)
    base = f"{_TRAINER}{role}.megatron_config."
    tp, pp, ep = (
        _count_or_1(subject, f"{base}{name}_model_parallel_size") for name in ("tensor", "pipeline", "expert")
    )
    etp_path = f"{base}expert_tensor_parallel_size"
    etp = _count_or_1(subject, etp_path) if subject.has(etp_path) else tp
    return RoleFacts(size, ep if etp == tp else 1, etp * ep * pp, None)


def _count_or_1(subject: PreflightSubject, path: str) -> int:
    """A size that only narrows the candidates, so that 1 stands for what cannot be read."""
    try:
        return subject.positive(path)
    except (MissingFact, UnreadableValue):
        return 1


def _widths(subject: PreflightSubject) -> tuple[int, ...]:
    found: list[Any] = [_cluster_width(subject), node_width_of(subject.get("iris.allocation.gpu_variant"))]
    for _, settings in teachers(subject):
        resources = settings.get("resources")
        if placement(settings) in ("pinned", "rotating") and isinstance(resources, dict):
            found.append(resources.get("gpus_per_node"))
    return tuple(dict.fromkeys(width for width in found if is_count(width)))


def _cluster_width(subject: PreflightSubject) -> int | None:
    return subject.cluster.gpus_per_node if subject.cluster is not None else None


def _rack(subject: PreflightSubject) -> int | None:
    if node_width_of(subject.get("iris.allocation.gpu_variant")) is None:
        return None
    rack = subject.cluster.schedulable_rack_nodes if subject.cluster is not None else None
    return rack if rack is not None else NVL72_SCHEDULABLE_RACK_NODES


def _experts(subject: PreflightSubject) -> int | None:
    card = subject.model
    if card is None or "num_experts" not in card.model_fields_set:
        return None
    return card.num_experts or 0


def _least_samples(subject: PreflightSubject) -> int:
    algorithm = _TRAINER + "algorithm."
    groups = subject.runtime.group_relative_estimators if subject.runtime is not None else ()
    compared = _text_or_none(subject, algorithm + "advantage_estimator")
    filtered = subject.get(algorithm + "dynamic_sampling.type")
    needs_group = compared in groups or filtered in ("filter", "replace")
    least = subject.get(algorithm + "group_advantage_min_size")
    return max(2 if needs_group else 1, least if is_count(least) else 1)


def _text_or_none(subject: PreflightSubject, path: str) -> str | None:
    try:
        return subject.text(path)
    except (MissingFact, UnreadableValue):
        return None


def _most_prompts(subject: PreflightSubject) -> int | None:
    try:
        return kept_rows(subject).at_most
    except (MissingFact, UnreadableValue):
        return subject.train_dataset.rows if subject.train_dataset is not None else None


def _validation_rows(subject: PreflightSubject) -> int | None:
    asked = subject.runtime is not None and subject.runtime.validation_rows_multiple_of_batch
    return (
        subject.validation_dataset.validation_rows
        if asked and subject.validation_dataset is not None
        else None
    )

"""Repairs of nodes and widths, together with what has to follow them: roles, engines, batches."""

from collections.abc import Callable, Iterator, Mapping

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.checks.batches.legal import FORWARD, batch_changes, near_trains
from tools.launcher.preflight.engine_sizes import DP, ENGINES, engine_changes
from tools.launcher.preflight.geometry import Geometry, divisors, nearest, node_width_of
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue, is_count
from tools.launcher.preflight.wording import also, set_to

NODES = "iris.allocation.num_nodes"
WIDTH = "iris.allocation.gpus_per_node"
VARIANT = "iris.allocation.gpu_variant"
POLICY_NODES = "skyrl.trainer.placement.policy_num_nodes"
POLICY_WIDTH = "skyrl.trainer.placement.policy_num_gpus_per_node"
REFERENCE_NODES = "skyrl.trainer.placement.ref_num_nodes"
REFERENCE_WIDTH = "skyrl.trainer.placement.ref_num_gpus_per_node"

Changes = dict[str, int]


def placement_repair(subject: PreflightSubject, values: Mapping[str, int]) -> str:
    """Return the repair which sets `values`, and what no longer fits then: colocated engines, the batch."""
    return also(*(set_to(path, value) for path, value in placement_changes(subject, values).items()))


def placement_changes(subject: PreflightSubject, values: Mapping[str, int]) -> Changes:
    """Return the changes of `placement_repair`; what cannot be read stays, since other checks name it."""
    changes = {path: value for path, value in values.items() if not _is(subject.get(path), value)}
    for follow in (_engines, _batch):
        try:
            changes |= follow(subject.with_values(changes))
        except (MissingFact, UnreadableValue):
            continue
    return changes


def _is(value: object, count: int) -> bool:
    return type(value) is int and value == count


def _engines(subject: PreflightSubject) -> Changes:
    geometry = Geometry.of(subject)
    if not geometry.colocate_all or not geometry.engines_local:
        return {}
    return {} if _engines_fit(geometry) else colocated_changes(subject)


def _engines_fit(geometry: Geometry) -> bool:
    """Whether colocated engines obey GEO-03 and GEO-08."""
    tiled = geometry.policy_gpus_per_node % geometry.engine_slice == 0
    return tiled and geometry.policy_world == geometry.rollout_gpus


def _batch(subject: PreflightSubject) -> Changes:
    return batch_changes(subject, near_trains) or {}


def colocated_changes(subject: PreflightSubject) -> Changes:
    """Return the nearest TP whose slices tile a node and whose engines use the policy's GPUs exactly.

    PP and DP are given up only if no TP fits them. Raises like `Geometry`.
    """
    geometry = Geometry.of(subject)
    width, world, ranks = geometry.policy_gpus_per_node, geometry.policy_world, subject.get(DP)
    kept = (geometry.engine_pp, ranks if is_count(ranks) else 1)
    for pp, dp in (kept, (geometry.engine_pp, 1), (1, 1)):
        fitting = [tp for tp in divisors(width) if width % (tp * pp) == 0 and world % (tp * pp * dp) == 0]
        if fitting:
            break
    tp = nearest(fitting, geometry.engine_tp)
    return engine_changes(subject, tp=tp, pp=pp, dp=dp, engines=world // (tp * pp * dp))


def engines_of_allocation(subject: PreflightSubject, nodes: int | None = None) -> int | None:
    """Return how many engines of their own nodes fill what other roles leave of the allocation, None for none.

    Args:
        nodes: of the allocation; what the document says if None.

    Raises like `Geometry`.
    """
    geometry = Geometry.of(subject)
    others = geometry.derived_nodes - geometry.rollout_nodes
    units = ((geometry.num_nodes if nodes is None else nodes) - others) * geometry.engines_per_node
    engines = units // (geometry.engine_dp if geometry.multiprocess_engines else 1)
    return engines if engines > 0 else None


def same_width(subject: PreflightSubject, width: int) -> Changes:
    """Return the values which give nodes, policy and reference `width` GPUs each."""
    geometry = Geometry.of(subject.with_values({WIDTH: width}))
    roles: dict[str, Callable[[], int]] = {
        POLICY_WIDTH: lambda: geometry.policy_gpus_per_node,
        REFERENCE_WIDTH: lambda: geometry.reference_gpus_per_node,
    }
    return {WIDTH: width} | {path: width for path, read in roles.items() if _unlike(read, width)}


def _unlike(read: Callable[[], int], width: int) -> bool:
    try:
        return read() != width
    except (MissingFact, UnreadableValue):
        return True


def agreed_width(subject: PreflightSubject) -> int:
    """Return what all nodes should have: the card's width, else the GPU variant's, else the wider of the two."""
    card = subject.cluster.gpus_per_node if subject.cluster is not None else None
    geometry = Geometry.of(subject)
    wider = max(geometry.policy_gpus_per_node, geometry.gpus_per_node)
    return card or node_width_of(subject.get(VARIANT)) or wider


def widths_differ(subject: PreflightSubject) -> bool:
    """Whether GEO-02 or GEO-11 reports policy and allocation, so that other findings of a width would repeat it."""
    geometry = Geometry.of(subject)
    try:
        policy, node = geometry.policy_gpus_per_node, geometry.gpus_per_node
    except (MissingFact, UnreadableValue):
        return False
    return policy > node or (policy < node and not geometry.export_mode)


def resized(subject: PreflightSubject, nodes: int) -> Changes:
    """Return the values which let a plan that fills its allocation fill one of `nodes`.

    Colocated roles shrink or grow, else engines do. Only the allocation changes where the plan does not fill
    it, or where the other roles leave nothing of `nodes`.
    """
    geometry = Geometry.of(subject)
    try:
        spare = nodes - geometry.derived_nodes
        if geometry.derived_nodes != geometry.num_nodes:
            return {NODES: nodes}
        if geometry.rollout_nodes and not geometry.export_mode:
            engines = engines_of_allocation(subject, nodes)
            return {NODES: nodes} | ({} if engines is None else {ENGINES: engines})
        policy = geometry.policy_nodes + spare
        together = geometry.export_mode or not geometry.reference_separate
        if policy < 1 or not together:
            return {NODES: nodes}
    except (MissingFact, UnreadableValue):
        return {NODES: nodes}
    roles = {path: policy for path in (POLICY_NODES, REFERENCE_NODES) if subject.has(path)}
    return {NODES: nodes} | roles


_COUNTED = (
    "skyrl.generator.n_samples_per_prompt",
    "skyrl.trainer.train_batch_size",
    "skyrl.trainer.policy_mini_batch_size",
)
_SMALL_COUNTS = 64
_LEAST_GROUP = 2
"""Answers that most estimators compare (BAT-12)."""


def fitting_count(subject: PreflightSubject, path: str) -> int:
    """Return the smallest count for `path` with which most rules of the plan hold; its own digits if they do."""
    value = subject.get(path)
    own = abs(value) if type(value) is int else 0

    def rank(count: int) -> tuple[int, bool, int]:
        return -sum(_holding(subject.with_values({path: count}))), count != own, count

    return min(_candidates(subject, own), key=rank)


def _candidates(subject: PreflightSubject, own: int) -> set[int]:
    geometry = Geometry.of(subject)
    written = (subject.get(path) for path in (*_COUNTED, NODES, WIDTH))
    found = {*range(1, _SMALL_COUNTS + 1), own, *filter(is_count, written)}
    readings: tuple[Callable[[], int], ...] = (
        lambda: geometry.derived_nodes,
        lambda: geometry.policy_world // geometry.engine_gpus,
        lambda: engines_of_allocation(subject.with_values({ENGINES: 1})) or 1,
        lambda: geometry.dispatch_multiple,
    )
    for read in readings:
        try:
            found.add(read())
        except (MissingFact, UnreadableValue):
            continue
    return {count for count in found if is_count(count)}


def _holding(subject: PreflightSubject) -> Iterator[bool]:
    """Whether each rule of the plan that one count decides holds; one that cannot be read does not."""
    geometry = Geometry.of(subject)
    rules: tuple[Callable[[], bool], ...] = (
        lambda: geometry.derived_nodes == geometry.num_nodes,
        lambda: geometry.policy_gpus_per_node == geometry.gpus_per_node,
        lambda: geometry.reference_gpus_per_node == geometry.policy_gpus_per_node,
        lambda: geometry.policy_nodes == geometry.reference_nodes or geometry.reference_separate,
        lambda: not (geometry.colocate_all and geometry.engines_local) or _engines_fit(geometry),
        lambda: geometry.engine_ep in (1, geometry.expert_group),
        lambda: geometry.train_batch % geometry.dispatch_multiple == 0,
        lambda: geometry.train_batch % geometry.mini_batch == 0,
        lambda: geometry.train_batch == geometry.mini_batch or subject.entrypoint != "fully_async",
        lambda: geometry.mini_batch * geometry.samples % geometry.policy_dp == 0,
        lambda: geometry.mini_batch % geometry.micro_batch == 0,
        lambda: geometry.rows_per_rank % geometry.micro_batch == 0,
        lambda: geometry.strategy != "megatron" or subject.positive(FORWARD) == geometry.micro_batch,
        lambda: geometry.declared_samples >= max(_LEAST_GROUP, _least_group(subject)),
    )
    for holds in rules:
        try:
            yield holds()
        except (MissingFact, UnreadableValue):
            yield False


def _least_group(subject: PreflightSubject) -> int:
    least = subject.get("skyrl.trainer.algorithm.group_advantage_min_size")
    return least if is_count(least) else 1

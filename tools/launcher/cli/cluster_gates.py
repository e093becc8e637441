"""What the cluster itself says: the gates reachable and placeable."""

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.iris.capacity import Placeability, placeability
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError, LoginNeeded
from tools.launcher.iris.local.shapes import GangShape, ShapeNotOffered, check_offered
from tools.launcher.iris.remote import ClusterNotOpened
from tools.launcher.submit.gates.gate import Gate
from tools.launcher.submit.gates.placeable import Placement, placeable
from tools.launcher.submit.gates.reachable import Reach, reachable

DRY_RUN = "dry run: the cluster is not asked"

_REACH_IT = (
    "bring the controller within reach, then launch again; with a way of your own to it: "
    "--controller=http://127.0.0.1:PORT"
)
_LOG_IN = "iris --cluster=NAME login, then launch again"


def cluster_gates(
    card: ClusterCard, place: LaunchPlace, gang: GangShape, gateway: IrisGateway | IrisError | None
) -> tuple[Gate, Gate]:
    """Return the gates reachable and placeable.

    Args:
        card: the cluster's.
        place: where the launch goes.
        gang: what is asked for.
        gateway: to the controller; the error if it could not be opened; None in a dry run.
    """
    if gateway is None:
        return (
            Gate(id="reachable", state="not_asked", found=DRY_RUN),
            Gate(id="placeable", state="not_asked", found=DRY_RUN),
        )
    if place.is_local:
        return reachable(Reach(where="the local Iris")), placeable(_offered(gang))
    reach, placement = _asked(card, place, gang, gateway)
    return reachable(reach), placeable(placement)


def _asked(
    card: ClusterCard, place: LaunchPlace, gang: GangShape, gateway: IrisGateway | IrisError
) -> tuple[Reach, Placement]:
    """Ask the controller who we are, and whether it can ever place the gang."""
    where = place.route.controller or f"the controller of {place.route.config}"
    try:
        if isinstance(gateway, IrisError):
            raise gateway
        user = gateway.check_in()
        answer = placeability(
            gateway,
            gpu_variant=gang.gpu_variant,
            gpus_per_node=gang.gpus_per_node,
            num_nodes=gang.num_nodes,
            target_cluster=place.route.target_cluster,
        )
    except IrisError as error:
        unknown = Placement(
            fits=None, found="the cluster was not asked", fix="make it reachable, then launch again"
        )
        return _not_reached(where, error), unknown
    return Reach(where=where, user=user), _placement(card, gang, answer)


def _not_reached(where: str, error: IrisError) -> Reach:
    if isinstance(error, ClusterNotOpened):
        return Reach(where=where, problem=error.problem, fix=error.fix)
    return Reach(
        where=where, problem=str(error), fix=_LOG_IN if isinstance(error, LoginNeeded) else _REACH_IT
    )


def _placement(card: ClusterCard, gang: GangShape, answer: Placeability) -> Placement:
    """What the controller says; where it does not tell enough, the cluster's card."""
    smaller = f"ask for nodes that {card.name} has: its card and `:plan` show both"
    if answer.verdict != "unknown":
        fits = answer.verdict == "yes"
        return Placement(fits=fits, found=answer.found, fix="" if fits else smaller)
    known = (card.gpu_variant, card.gpus_per_node, card.max_nodes)
    if None in known:
        return Placement(fits=None, found=f"{answer.found}, and neither does the cluster card", fix=smaller)
    fits = (
        card.gpu_variant == gang.gpu_variant
        and gang.gpus_per_node <= (card.gpus_per_node or 0)
        and gang.num_nodes <= (card.max_nodes or 0)
    )
    has = f"{card.max_nodes} nodes x {card.gpus_per_node} {card.gpu_variant}"
    found = f"{answer.found}; by its card, {card.name} has {has}, asked for: {_gang(gang)}"
    return Placement(fits=fits, found=found, fix="" if fits else smaller)


def _offered(gang: GangShape) -> Placement:
    try:
        check_offered(gang)
    except ShapeNotOffered as error:
        return Placement(fits=False, found=str(error), fix="rehearse a smaller plan")
    return Placement(fits=True, found=f"{_gang(gang)} are offered")


def _gang(gang: GangShape) -> str:
    nodes = "1 node" if gang.num_nodes == 1 else f"{gang.num_nodes} nodes"
    return f"{nodes} x {gang.gpus_per_node} {gang.gpu_variant}"

"""Repairs that give rollout engines other sizes, and keep what depends on them whole."""

from collections.abc import Sequence

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.geometry import Geometry, nearest
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue, is_count
from tools.launcher.preflight.wording import also, set_to

_ENGINE = "skyrl.generator.inference_engine_"
TP = f"{_ENGINE}tensor_parallel_size"
PP = f"{_ENGINE}pipeline_parallel_size"
DP = f"{_ENGINE}data_parallel_size"
EP = f"{_ENGINE}expert_parallel_size"
ENGINES = "skyrl.generator.num_inference_engines"


def engine_settings(subject: PreflightSubject, **wanted: int) -> str:
    """Return the repair which makes `engine_changes`."""
    return also(*(set_to(path, size) for path, size in engine_changes(subject, **wanted).items()))


def engine_changes(subject: PreflightSubject, **wanted: int) -> dict[str, int]:
    """Return what changes to give engines the sizes `wanted` and keep experts spread as before.

    Reads leniently, so that another bad value does not hide the finding which is repaired.

    Args:
        wanted: sizes under the names engines, tp, pp, dp and ep.
    """
    paths = {"engines": ENGINES, "tp": TP, "pp": PP, "dp": DP, "ep": EP}
    sizes = {name: subject.get(path) for name, path in paths.items()} | wanted
    if is_count(sizes["ep"]) and sizes["ep"] != 1 and is_count(sizes["tp"]) and is_count(sizes["dp"]):
        sizes["ep"] = sizes["tp"] * sizes["dp"]
    return {path: sizes[name] for name, path in paths.items() if sizes[name] != subject.get(path)}


def tensor_repair(subject: PreflightSubject, valid: Sequence[int]) -> str:
    """Return the repair with the nearest TP of `valid` that fits the nodes, and the engines that go with it.

    Colocated engines then use the policy's GPUs exactly (GEO-03, GEO-08); others keep the GPUs they
    had, where whole engines fill them. Where the plan cannot be read, or no TP fits it, only TP changes.
    """
    geometry = Geometry.of(subject)
    try:
        width, present = geometry.policy_gpus_per_node, geometry.engine_tp
        rest = geometry.engine_pp * geometry.engine_dp
        exact = geometry.colocate_all and geometry.engines_local
        gpus = geometry.policy_world if exact else geometry.rollout_gpus
        slices = {size: size * (geometry.engine_pp if exact else rest) for size in valid}
    except (MissingFact, UnreadableValue):
        return set_to(TP, nearest(valid, Geometry.of(subject).engine_tp))
    fitting = [size for size in valid if width % slices[size] == 0 and gpus % (size * rest) == 0]
    if not fitting:
        return engine_settings(subject, tp=nearest(valid, present))
    chosen = nearest(fitting, present)
    return engine_settings(subject, tp=chosen, engines=gpus // (chosen * rest))

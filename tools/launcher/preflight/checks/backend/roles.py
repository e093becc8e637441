"""The trained roles and how Megatron splits them. Source of the formulas: contract, README.md and typed-spec.md §4."""

import re
from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple

from tools.launcher.preflight.geometry import Geometry, nearest
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import shown


class MegatronRole(NamedTuple):
    """Sizes of one role under Megatron."""

    name: str
    """`policy` or `ref`, as the recipe calls it."""
    world: int
    """W: GPUs."""
    tp: int
    pp: int
    cp: int
    ep: int
    etp: int
    """Expert tensor parallelism; null in the recipe counts as tp."""
    etp_is_tp: bool
    """Whether it is null."""

    @property
    def model_parallel(self) -> int:
        """tp*pp*cp."""
        return self.tp * self.pp * self.cp

    @property
    def expert_parallel(self) -> int:
        """etp*ep*pp."""
        return self.etp * self.ep * self.pp

    @property
    def whole(self) -> bool:
        """Whether the data-parallel size is an integer (BKD-06)."""
        return self.world % self.model_parallel == 0

    @property
    def legal(self) -> bool:
        """Whether ranks and expert groups fill the role (BKD-06, -07 and -08)."""
        if not self.whole or self.world % self.expert_parallel:
            return False
        return self.etp != self.tp or self.world // self.model_parallel % self.ep == 0

    def having(self, size: str, count: int) -> "MegatronRole":
        """Return the role with another `tp`, `pp`, `cp`, `ep` or `etp`."""
        sizes: dict[str, Any] = {size: count}
        other = self._replace(**sizes)
        return other._replace(etp=count) if size == "tp" and self.etp_is_tp else other

    def nearest_size(self, size: str, valid: Sequence[int]) -> int:
        """Return the size of `valid` nearest to the present one: of those that keep the role legal, else whole."""
        others = {count: self.having(size, count) for count in valid}
        legal = [count for count, role in others.items() if role.legal]
        whole = [count for count, role in others.items() if role.whole]
        return nearest(legal or whole or valid, getattr(self, size))

    def path(self, size: str) -> str:
        """Return the path of the size `tp`, `pp`, `cp`, `ep` or `etp`."""
        return f"{megatron_config(self.name)}.{_NAMES[size]}"


_NAMES = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
}

TRAINED_ROLES = ("policy", "ref")
"""The trainer's own validation reads both, whether a reference is active or not (utils.py@004e15f9)."""

VALIDATED_ROLES = (*TRAINED_ROLES, "critic")
"""Roles whose FSDP settings the trainer validates; a critic's as well, although none is placed (GEO-15)."""


_WORD = re.compile(r"[\w.-]{1,40}")


def word(text: str) -> str:
    """Return a setting's value for a message: bare where it is one plain word, else quoted on one line."""
    return text if _WORD.fullmatch(text) else shown(text)


def megatron_config(role: str) -> str:
    """Return the path of a role's Megatron settings."""
    return f"skyrl.trainer.{role}.megatron_config"


def fsdp_config(role: str) -> str:
    """Return the path of a role's FSDP settings."""
    return f"skyrl.trainer.{role}.fsdp_config"


def active_roles(geometry: Geometry) -> list[tuple[str, int]]:
    """Return (name, GPUs) of the policy, and of the reference if there is one. Raises like `Geometry`."""
    roles = [("policy", geometry.policy_world)]
    return [*roles, ("ref", geometry.reference_world)] if geometry.reference_active else roles


def megatron_roles(subject: PreflightSubject) -> list[MegatronRole]:
    """Return the active roles, none under another strategy. Raises like `PreflightSubject.value`."""
    geometry = Geometry.of(subject)
    if geometry.strategy != "megatron":
        return []
    return [_megatron_role(subject, name, world) for name, world in active_roles(geometry)]


def _megatron_role(subject: PreflightSubject, name: str, world: int) -> MegatronRole:
    config = megatron_config(name)
    tp, pp, cp, ep = (subject.positive(f"{config}.{_NAMES[size]}") for size in ("tp", "pp", "cp", "ep"))
    expert_tensor = f"{config}.{_NAMES['etp']}"
    declared = subject.value(expert_tensor, int, NoneType)
    etp = tp if declared is None else subject.positive(expert_tensor)
    return MegatronRole(name, world, tp, pp, cp, ep, etp, declared is None)

"""A small checkout for tests, written in our own words: the shapes that the importer reads, nothing more."""

import functools
from pathlib import Path
from typing import Any

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.documents.yaml_writer import dump_yaml

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PINNED_FILE = Path(__file__).parents[3] / "third_party/marinskyrl/81ae0ef7.yaml"

BASE = "skyrl-train/skyrl_train/config/ppo_base_config.yaml"
TRANSLATION = "cloud/iris/rl_config_translation.py"
REGISTRY = "skyrl-train/skyrl_train/utils/algorithm_registry.py"
ESTIMATORS = "skyrl-train/skyrl_train/utils/advantage_estimators.py"
REDUCTION = "skyrl-train/skyrl_train/utils/loss_reduction.py"
ENVIRONMENTS = "skyrl-gym/skyrl_gym/envs/__init__.py"

_SHARED_MODULE = "marinskyrl/speculative_decoding.py"


@functools.cache
def pinned() -> RuntimeManifest:
    """Return the project's manifest."""
    return load_runtime_manifest(PINNED_FILE.read_bytes(), source=PINNED_FILE.name)


def base_tree(manifest: RuntimeManifest) -> dict[str, Any]:
    """Return the tree that says what the manifest says; what the launcher fills is 4."""
    tree: dict[str, Any] = {}
    for path, key in manifest.recipe_keys.items():
        *sections, name = path.split(".")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})
        value = key.default if "default" in key.model_fields_set else 4
        node[name] = list(value) if isinstance(value, tuple) else value
    return tree


def write(root: Path, path: str, text: str | bytes) -> None:
    """Write one file of a checkout."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def write_checkout(root: Path, manifest: RuntimeManifest) -> Path:
    """Write a checkout that says what the manifest says, with groups and with every registry.

    The sections of DeepSpeed and of the environments lie in group files, as a real checkout has them.
    """
    tree = base_tree(manifest)
    groups = {
        "deepspeed_config/train.yaml": tree["deepspeed_config"].pop("train"),
        "deepspeed_config/eval.yaml": tree["deepspeed_config"].pop("eval"),
        "skyrl_gym_config/default.yaml": tree["environment"].pop("skyrl_gym"),
    }
    del tree["deepspeed_config"]
    defaults = [
        "_self_",
        {"deepspeed_config@deepspeed_config.train": "train"},
        {"deepspeed_config@deepspeed_config.eval": "eval"},
        {"skyrl_gym_config": "default"},
    ]
    write(root, BASE, dump_yaml({"defaults": defaults, **tree}))
    for name, content in groups.items():
        header = b"# @package environment.skyrl_gym\n" if "gym" in name else b""
        write(root, f"skyrl-train/skyrl_train/config/{name}", header + dump_yaml(content))
    write(root, TRANSLATION, _translation(manifest))
    write(root, _SHARED_MODULE, f'FIRST = "{manifest.entrypoints["standard"].module}"\n')
    write(root, REGISTRY, _registry(manifest))
    write(root, ESTIMATORS, _estimators(manifest))
    write(root, REDUCTION, _reduction(manifest))
    write(
        root,
        ENVIRONMENTS,
        "".join(f'register(id="{name}", entry_point="x:Y")\n' for name in manifest.env_classes),
    )
    return root


def _enumeration(name: str, values: tuple[str, ...]) -> str:
    members = "".join(f'    {_member(value)} = "{value}"\n' for value in values)
    return f"class {name}(StrEnum):\n{members}\n\n"


def _member(value: str) -> str:
    return value.upper().replace("+", "P")


def _translation(manifest: RuntimeManifest) -> str:
    entries = "".join(
        f"    Entry.{_member(name)}: " + ("FIRST" if name == "standard" else f'"{entry.module}"') + ",\n"
        for name, entry in manifest.entrypoints.items()
    )
    return (
        "from types import MappingProxyType\n"
        "from marinskyrl.speculative_decoding import FIRST\n\n"
        + _enumeration("Entry", tuple(manifest.entrypoints))
        + f"RL_ENTRYPOINTS = MappingProxyType({{\n{entries}}})\n"
        + f"SKYRL_INTERNAL_ENGINE_KWARGS = frozenset({set(manifest.engine_init_kwargs_forbidden)!r})\n"
        + f"_OPEN_CONFIG_ROOTS = frozenset({set(manifest.open_roots or ())!r})\n"
        + "def read(raw, parsed):\n    return raw.get('trainer'), parsed.raw.get('teachers'), raw.get(1)\n"
        + f"_OPTIONAL_HYDRA_PATTERNS: set[str] = {set(manifest.open_path_patterns or ())!r}\n"
    )


def _registry(manifest: RuntimeManifest) -> str:
    estimators = tuple(name for name in manifest.advantage_estimators if name != "rloo_n_pbs")
    return _enumeration("AdvantageEstimator", estimators) + _enumeration(
        "PolicyLossType", manifest.policy_losses
    )


def _estimators(manifest: RuntimeManifest) -> str:
    return (
        "from skyrl_train.utils.algorithm_registry import AdvantageEstimator\n\n\n"
        "@register_advantage_estimator(AdvantageEstimator.GRPO)\ndef one(): ...\n\n\n"
        '@register_advantage_estimator("rloo_n_pbs")\ndef two(): ...\n'
    )


def _reduction(manifest: RuntimeManifest) -> str:
    names = [f"NAME_{place}" for place in range(len(manifest.loss_reductions))]
    constants = "".join(
        f'{name} = "{value}"\n' for name, value in zip(names, manifest.loss_reductions, strict=True)
    )
    return f"{constants}SUPPORTED_LOSS_REDUCTIONS: tuple[str, ...] = ({', '.join(names)},)\n"

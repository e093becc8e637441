"""What one pinned MarinSkyRL commit accepts.

Values come from contract/runtime-facts.yaml; the manifest's YAML repeats the confidence and
the source of each. Checks never carry such lists themselves: another commit has others.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_MANIFEST = ConfigDict(frozen=True, strict=True, extra="forbid")


class Entrypoint(BaseModel):
    """A registered training program."""

    model_config = _MANIFEST

    module: str
    training_type: Literal["sync", "async"] | None
    """None for generation only."""
    async_unless_colocated: bool = False
    """The type is `async` exactly when `colocate_all` is false."""


KeyType = Literal["bool", "int", "float", "str", "list", "map", "str|list"]
KeyOwner = Literal[
    "recipe",
    "role-plan",
    "context-budget",
    "launcher",
    "launcher-if-unset",
    "computed",
    "dropped",
    "refused-by-marin",
]


class RecipeKey(BaseModel):
    """A key below `skyrl` that the runtime's base configuration has."""

    model_config = _MANIFEST

    type: KeyType
    nullable: bool = False
    default: Any = None
    """Value of the base configuration; `${...}` is an interpolation. Left out where the launcher fills it."""
    open: bool = False
    """Keys below this mapping are accepted although they are not listed."""
    owner: KeyOwner = "recipe"
    """`recipe`: the author; `role-plan`, `context-budget`: rendered from the typed spec; `launcher`: always
    overwritten; `computed`: rewritten by the trainer; `dropped`: never read from a recipe."""
    inferred: bool = False
    """Whether the type was taken from use, not from the default."""


class RuntimeManifest(BaseModel):
    """Registries, enumerations and defaults of one runtime commit."""

    model_config = _MANIFEST

    kind: Literal["runtime_manifest"]
    name: str
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    marin_core: str
    schema_version: int
    """Of the launch document; it does not tell dialects apart."""

    entrypoints: dict[str, Entrypoint]
    default_entrypoint: str
    strategies: tuple[str, ...]
    default_strategy: str
    strategy_of_profile: dict[str, str]
    generator_backends: tuple[str, ...]
    env_classes: tuple[str, ...]
    advantage_estimators: tuple[str, ...]
    group_relative_estimators: tuple[str, ...]
    policy_losses: tuple[str, ...]
    loss_reductions: tuple[str, ...]
    fully_async_dynamic_sampling: tuple[str, ...] | None = None
    """Values of `dynamic_sampling.type` that fully_async allows; left out when not known."""
    validation_rows_multiple_of_batch: bool | None = None
    """Whether evaluation asserts whole batches (descendants of SkyRL 0.2.0); None: not known."""
    pads_step_wise_rows: bool | None = None
    """Whether step-wise rows are padded or trimmed to the data-parallel size; None: not known."""
    teacher_sources: tuple[str, ...] | None = None
    """Sources of distillation teachers that have a scoring adapter; None: not known."""
    node_local_inference: str | None = None
    """Path below `skyrl` that switches node-local inference on; null: there is none; left out: not known."""

    recipe_top_level: tuple[str, ...]
    """Top-level recipe keys that the launcher reads; every other key is dropped silently."""
    engine_init_kwargs_forbidden: tuple[str, ...]
    launcher_owned: dict[str, str]
    """Path below `skyrl` -> where the launcher takes the value from."""
    recipe_keys: dict[str, RecipeKey]
    """Path below `skyrl` -> what the base configuration says of it."""
    resume_checkpoint_count: tuple[int, int]
    """Smallest and largest number of kept checkpoints."""
    sources: tuple[str, ...] = ()

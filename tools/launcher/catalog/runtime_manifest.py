"""What one pinned MarinSkyRL commit accepts.

Values come from contract/runtime-facts.yaml; the manifest's YAML repeats the confidence and
the source of each. Checks never carry such lists themselves: another commit has others.
"""

from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

_MANIFEST = ConfigDict(frozen=True, strict=True, extra="forbid")


class Entrypoint(BaseModel):
    """A registered training program."""

    model_config = _MANIFEST

    module: str
    training_type: Literal["sync", "async"] | None
    """None for generation only."""
    async_unless_colocated: bool = False
    """The type is `async` exactly when `colocate_all` is false."""


KeyType = Literal["bool", "int", "float", "str", "list", "map", "str|list", "bool|int", "any"]
"""`any`: not known."""
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


class TaskImage(BaseModel):
    """What one image of the training tasks holds. A field left out is not known."""

    model_config = _MANIFEST

    profile: str | None = None
    """Profile that the image serves; None: every profile."""
    arch: str
    """Processor, such as `x86_64`."""
    wheel_sm: tuple[str, ...] | None = None
    """Compute capabilities for which its kernels are built, such as "9.0"; "9.0a" runs on 9.0 only."""
    compilable_sm: tuple[str, ...] | None = None
    """Compute capabilities for which its CUDA compiler can build."""
    cuda: str | None = None
    cuda_compiler: bool | None = None
    """Whether the image has a CUDA compiler."""
    compiles_at_run_time: tuple[str, ...] | None = None
    """Libraries that build kernels when they are used; empty: none."""
    modules: tuple[str, ...] | None = None
    """Every Python module, by its full dotted name, that the image was seen to import."""


class GpuHardware(BaseModel):
    """General knowledge of one GPU variant, for where no cluster card says more."""

    model_config = _MANIFEST

    arch: str | None = None
    sm: str | None = None
    hbm_gb: float | None = Field(default=None, gt=0)


class NodeVersions(BaseModel):
    """Versions that Ray compares between nodes."""

    model_config = _MANIFEST

    python: str
    ray: str


class BackendFix(BaseModel):
    """A repair of the back end that experiments may rely on (`SkyRLSpec.required_fixes`)."""

    model_config = _MANIFEST

    id: str
    commit: str = Field(pattern=r"^[0-9a-f]{7,40}$")
    """Where the fix came in."""
    what: str


RuntimeFeature = Literal[
    "colocated_tensor_parallel",
    "decode_context_parallel",
    "engine_pipeline_parallel",
    "lora",
    "router_replay",
    "single_engine_data_parallel",
    "speculative_decoding",
]
"""Features that a runtime may be known to lack."""


class DocumentField(BaseModel):
    """A field of the launch document outside `skyrl`, as the launcher's structured schema has it."""

    model_config = _MANIFEST

    type: Literal["int", "float", "str", "bool", "text_map", "records", "open"]
    """`text_map`: text to text; `records`: a list of tagged records; `open`: a mapping with a schema of its own."""
    required: bool = False
    nullable: bool = False
    not_empty: bool = False
    """Whether the schema takes an empty text that cannot work."""


class ReservedVariables(BaseModel):
    """Environment variables that a recipe must leave alone."""

    model_config = _MANIFEST

    refused_prefixes: tuple[str, ...]
    """The launcher refuses these names when it launches."""
    pod_credential_prefixes: tuple[str, ...]
    """The pod has these itself, and a recipe would overwrite them."""
    differs_by_node: tuple[str, ...]
    """Need another value on each node."""
    set_by_launcher: tuple[str, ...]
    """Always overwritten by the launcher."""


class ControllerIngress(BaseModel):
    """What the launcher asks of `ingress.mode: controller`."""

    model_config = _MANIFEST

    federated_cluster_prefix: str
    """Clusters of such a name are reached through their hub only."""
    host: str
    """The only `ingress.host` on those clusters, besides none."""


class RuntimeManifest(BaseModel):
    """Registries, enumerations and defaults of one runtime commit."""

    model_config = ConfigDict(**_MANIFEST, ignored_types=(cached_property,))

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
    env_classes_complete: bool = True
    """Whether `env_classes` is the list of this commit; false: gathered from its neighbours."""
    export_entrypoint: str | None = None
    """Module of a document whose `run.mode` is checkpoint_export."""
    advantage_estimators: tuple[str, ...]
    group_relative_estimators: tuple[str, ...]
    ragged_group_estimators: tuple[str, ...] | None = None
    """Those that compare groups with left-out answers, down to `group_advantage_min_size`."""
    policy_losses: tuple[str, ...]
    loss_reductions: tuple[str, ...]
    sequence_mean_losses: tuple[str, ...] = ()
    """Policy losses that demand the reduction sequence_mean."""
    critic_estimators: tuple[str, ...] = ()
    """Advantage estimators that need a critic, which this generation cannot place (GEO-15)."""
    loggers: tuple[str, ...] = ()
    """Words of `trainer.logger` that are known; none: not known."""
    sequence_mean_preferred: tuple[str, ...] = ()
    """Policy losses that were designed for the reduction sequence_mean."""
    tis_losses: tuple[str, ...] = ()
    """Policy losses that `use_tis` corrects."""
    rollout_logprob_losses: tuple[str, ...] = ()
    """Policy losses that read the log-probabilities of the rollout, as `use_tis` does."""
    neutral_sampling: dict[str, float] = {}
    """Sampling parameter -> value that leaves the whole distribution, as those losses need it."""
    processed_logprob_options: dict[str, str] = {}
    """Option of engine_init_kwargs -> value that those losses force."""
    inexact_entrypoints: tuple[str, ...] | None = None
    """Entry points whose runner returns no exact completions; None: not known."""
    exact_completion_switches: dict[str, str] = {}
    """Entry point -> path below `skyrl` that must be true for exact completions."""
    fully_async_dynamic_sampling: tuple[str, ...] | None = None
    """Values of `dynamic_sampling.type` that fully_async allows; left out when not known."""
    validation_rows_multiple_of_batch: bool | None = None
    """Whether evaluation asserts whole batches (descendants of SkyRL 0.2.0); None: not known."""
    pads_step_wise_rows: bool | None = None
    """Whether step-wise rows are padded or trimmed to the data-parallel size; None: not known."""
    teacher_sources: tuple[str, ...] | None = None
    """Sources of distillation teachers that have a scoring adapter; None: not known."""
    distillation_fields: dict[str, tuple[str, ...]] | None = None
    """Mapping of a distillation (`plan`, `residency`, `teacher`, `model`, `resources`, `endpoint`, `routing`,
    `route`) -> its fields; None: not known."""
    distillation_objectives: dict[str, str] | None = None
    """Objective of a distillation -> evidence that its teachers give; None: not known."""
    distillation_reward_modes: tuple[str, ...] | None = None
    """Values of `reward_mode` that the runtime supports; None: not known."""
    chat_templates: tuple[str, ...] | None = None
    """Names of the chat templates that the runtime holds; None: not known."""
    chat_templates_complete: bool = True
    """Whether `chat_templates` is the list of this commit; false: gathered from its neighbours."""
    latent_attention_architectures: tuple[str, ...] = ()
    """Words in the name of an architecture with one latent instead of KV heads, in lower case."""
    speculative_fields: dict[str, tuple[str, ...]] | None = None
    """Mapping of `generator.speculative_decoding` ("" is the block itself) -> its fields; None: not known."""
    token_cap_per_gpu: str | int | None = None
    """Tokens that a micro batch may have: a number, or the path below `skyrl` that holds it; null: there is no
    such cap; left out: not known."""
    pads_sequences: bool | None = None
    """Whether Megatron workers pad sequences to what tensor and context parallelism divide; None: not known."""
    in_flight_weight_update: dict[str, tuple[str, ...]] | None = None
    """Back end -> GPU variants on which weights change while requests run; None: not known."""
    harbor_keys: tuple[str, ...] | None = None
    """Keys of `terminal_bench.harbor` that the runtime maps; None: not known."""
    node_local_inference: str | None = None
    """Path below `skyrl` that switches node-local inference on; null: there is none; left out: not known."""

    images: tuple[TaskImage, ...] | None = None
    """Images of the training tasks; None: not known."""
    profile_imports: dict[str, tuple[str, ...]] | None = None
    """Profile -> modules that the bootstrap imports before it starts; None: not known."""
    training_imports: tuple[str, ...] = ()
    """Modules that the bootstrap imports in every profile that trains."""
    gpu_hardware: dict[str, GpuHardware] = {}
    """GPU variant -> what is generally known of it."""
    node_versions: dict[str, NodeVersions] | None = None
    """Kind of node (`head`, `worker`) -> its versions; None: not known."""
    torch: str | None = None
    torch_required_by_vllm: str | None = None
    engine_start_seconds: int | None = None
    """Longest known start of the rollout engines; None: not known."""
    architectures: tuple[str, ...] | None = None
    """Class names of the models that the runtime can train and roll out; None: not known."""
    weight_sync_architectures: tuple[str, ...] | None = None
    """Those whose weights it can send to engines; None: not known."""
    context_parallel_architectures: tuple[str, ...] | None = None
    """Those that it can train with context parallelism; None: not known."""
    no_sequence_parallel: tuple[str, ...] | None = None
    """Those that it cannot train with sequence parallelism; None: not known."""
    unsupported: tuple[RuntimeFeature, ...] | None = None
    """Features known to be missing or broken; None: not known."""
    deepspeed_zero_stage: int | None = None
    """The only ZeRO stage that the policy may have; None: not known."""
    deepspeed_needs_offload_after_step: bool | None = None
    """Whether DeepSpeed refuses `offload_after_step: false`; None: not known."""
    megatron_replicates_kv_heads: bool | None = None
    """Whether KV heads may be fewer than the tensor-parallel size; None: not known."""
    megatron_sequence_parallel_with_tp: bool | None = None
    """Whether Megatron's sequence parallelism is on by itself when tp > 1; None: not known."""
    engine_lora_ranks: tuple[int, ...] | None = None
    """LoRA ranks that the engine can be built for; None: not known."""
    fixes: tuple[BackendFix, ...] | None = None
    """Fixes that this commit contains; None: nobody listed them."""

    document_fields: dict[str, DocumentField] | None = None
    """Path -> field of the launch document. The schema is the launcher's of this commit: other generations have
    other fields under the same schema_version. None: not known."""
    recipe_top_level: tuple[str, ...]
    """Top-level recipe keys that the launcher reads; every other key is dropped silently."""
    engine_init_kwargs_forbidden: tuple[str, ...]
    launcher_owned: dict[str, str]
    """Path below `skyrl` -> where the launcher takes the value from."""
    recipe_keys: dict[str, RecipeKey]
    """Path below `skyrl` -> what the base configuration says of it."""
    recipe_enums: dict[str, tuple[str | None, ...]] = {}
    """Path below `skyrl` -> every value that the runtime accepts there; a path left out is not known."""
    open_roots: tuple[str, ...] | None = None
    """Sections below `skyrl` that accept every key; None: not known."""
    open_path_patterns: tuple[str, ...] | None = None
    """A path below `skyrl` that contains one of these, written with a leading dot, accepts every key; None: not known."""
    resume_checkpoint_count: tuple[int, int]
    """Smallest and largest number of kept checkpoints."""
    document_enums: dict[str, tuple[str, ...]] = {}
    """Path of the launch document outside `skyrl` -> its values; a path left out is not known."""
    priority_bands: dict[str, Literal["users", "administrators", "internal"]] | None = None
    """Band -> who may ask for it, highest first; None: not known."""
    reserved_variables: ReservedVariables | None = None
    """None: not known."""
    controller_ingress: ControllerIngress | None = None
    """None: not known."""
    federation: dict[str, tuple[str, ...]] | None = None
    """Configuration path of a hub -> the clusters that it passes jobs on to; None: not known."""
    wandb_entity_fallback: str | None = None
    """Entity of runs whose document names none; None: not known."""
    sandbox_credentials: tuple[str, ...] | None = None
    """Names of which agentic recipes need one to reach their sandboxes; None: not known."""
    sandbox_snapshot_quota: int | None = None
    """Snapshots that the sandbox service keeps at a time; None: not known."""
    sources: tuple[str, ...] = ()

    @cached_property
    def placeable_estimators(self) -> tuple[str, ...]:
        """The advantage estimators that need no critic."""
        return tuple(name for name in self.advantage_estimators if name not in self.critic_estimators)

    @cached_property
    def document_mappings(self) -> dict[str, list[str]]:
        """Path of a mapping of the launch document ("" for the whole) -> the keys that `document_fields` gives it."""
        keys: dict[str, list[str]] = {}
        for path in self.document_fields or ():
            parts = path.split(".")
            for depth, part in enumerate(parts):
                known = keys.setdefault(".".join(parts[:depth]), [])
                if part not in known:
                    known.append(part)
        return keys

    @cached_property
    def recipe_tree(self) -> dict[str, Any]:
        """The keys of `recipe_keys` as nested mappings whose leaves are RecipeKey."""
        tree: dict[str, Any] = {}
        for path, key in self.recipe_keys.items():
            *sections, name = path.split(".")
            node = tree
            for section in sections:
                node = node.setdefault(section, {})
            node[name] = key
        return tree

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What was computed from this manifest once for all documents, under the name of who computes it."""
        return {}

    @cached_property
    def recipe_paths_of(self) -> dict[str, tuple[str, ...]]:
        """Owner -> its paths in `recipe_keys`."""
        owners = dict.fromkeys(key.owner for key in self.recipe_keys.values())
        return {
            owner: tuple(path for path, key in self.recipe_keys.items() if key.owner == owner)
            for owner in owners
        }

    @field_validator("recipe_keys")
    @classmethod
    def _check_sections(cls, keys: dict[str, RecipeKey]) -> dict[str, RecipeKey]:
        for path in keys:
            section = path.rpartition(".")[0]
            while section:
                if section in keys:
                    raise ValueError(f"{section} is a key, and a section because of {path}")
                section = section.rpartition(".")[0]
        return keys

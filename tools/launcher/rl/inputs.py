"""What BUILD.bazel declares for an experiment, as its `main` sees it."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, ModelCard
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.rl.runtime import SkyRLRuntime
from tools.launcher.rl.topology import SPEC


class UndeclaredInput(LookupError):
    """The experiment asks for a card that its target does not list."""


class BuildInputs(BaseModel):
    """The version, runtime, cluster and cards of one rl_experiment target.

    A parameter of `main` with this annotation gets the object; it is no option.
    """

    model_config = SPEC

    version: str
    """`version` of the target."""
    runtime: RuntimeManifest
    cluster: ClusterCard
    models: dict[str, ModelCard]
    """Card name -> card."""
    datasets: dict[str, DatasetCard]

    def model(self, name: str) -> ModelCard:
        """Return the model card `name`. Raises UndeclaredInput if `models` does not list it."""
        return _declared(self.models, name, "models")

    def dataset(self, name: str) -> DatasetCard:
        """Return the dataset card `name`. Raises UndeclaredInput if `datasets` does not list it."""
        return _declared(self.datasets, name, "datasets")

    def skyrl_runtime(self, profile: Literal["fsdp", "megatron"]) -> SkyRLRuntime:
        """Return the pinned runtime with the dependency set `profile`."""
        return SkyRLRuntime(profile=profile, commit=self.runtime.commit)


def _declared[Card: (ModelCard, DatasetCard)](cards: Mapping[str, Card], name: str, attribute: str) -> Card:
    if name not in cards:
        raise UndeclaredInput(
            f"no card named '{name}' is declared; `{attribute}` of the target has: "
            f"{', '.join(sorted(cards)) or 'none'}. Add the card's label to `{attribute}`{', or ask for one that is there' if cards else ''}"
        )
    return cards[name]

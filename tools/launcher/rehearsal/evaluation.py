"""The `evaluate` step: the exported model answers fresh validation prompts."""

from tools.launcher.documents.canonical import canonical_json
from tools.launcher.documents.files import write_atomically
from tools.launcher.rehearsal.artifact_record import file_digests
from tools.launcher.rehearsal.environments import environment_for, make_rows
from tools.launcher.rehearsal.staging import StagingError, weights_of
from tools.launcher.rehearsal.standin import MARK, WEIGHTS_FILE
from tools.launcher.rehearsal.training import evaluate
from tools.launcher.store.artifact_record import ArtifactRecord, write_artifact_record
from tools.launcher.store.locations import ObjectRoot


def run_evaluation(
    object_root: ObjectRoot,
    *,
    name: str,
    version: str,
    fingerprint: str,
    output_uri: str,
    export_uri: str,
    env_class: str,
    episodes: int,
    seed: int,
) -> float:
    """Evaluate an export and finish the step's artifact.

    Args:
        name, version, fingerprint, output_uri: the step.
        export_uri: the exported model's directory.
        env_class, episodes, seed: which prompts, how many, drawn from what.

    Returns:
        The mean reward, 0 to 1.

    Raises:
        StagingError: the export is missing or is not a stand-in's.
    """
    try:
        data = (object_root.path(export_uri) / WEIGHTS_FILE).read_bytes()
    except OSError as error:
        raise StagingError(
            f"the export {export_uri} cannot be read: {error.strerror}. Train with run.export_hf: true first"
        ) from None
    weights = weights_of(data, f"{export_uri}/{WEIGHTS_FILE}")
    environment = environment_for(env_class)
    reward = evaluate(weights, make_rows(environment, "validation", episodes, seed), environment)
    result = {
        MARK: True,
        "export": export_uri,
        "env_class": env_class,
        "stand_in": environment.stand_in,
        "episodes": episodes,
        "seed": seed,
        "reward_mean": reward,
    }
    folder = object_root.path(output_uri)
    write_atomically(folder / "result.json", canonical_json(result) + b"\n")
    write_artifact_record(
        folder,
        ArtifactRecord(
            name=name,
            version=version,
            kind="evaluate",
            fingerprint=fingerprint,
            rehearsal=True,
            files=file_digests(folder),
        ),
    )
    return reward

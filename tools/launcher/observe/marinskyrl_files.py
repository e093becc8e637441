"""What the MarinSkyRL runtime leaves of a run, in the forms its sources write (commits are MarinSkyRL's).

- terminal manifest and `<attempts_root>/<attempt id>.json`: {"config": the document, "result": {run_id,
  attempt_id, state, iris_job_id, iris_job_state, launcher_commit, runtime_profile, model, failure}};
  `model` has policy_export_uri and global_step, and is null without an export
  (cloud/iris/launch.py@334c4fa5, `_manifest`).
- resolved document: JSON, whatever its name says: {"config": the resolved document, "train_data_sources",
  "val_data_sources"}. The driver of task 0 writes it when every node has joined, and then trains
  (cloud/iris/training_driver.py, `run`; cloud/iris/task_runtime.py@006eddce, `run_head`).
- rendezvous of a gang of several tasks: `ray_head.json` {gang_epoch, num_tasks, …} and, once the driver has
  succeeded, `ray_head.done` {gang_epoch, outcome: "succeeded"} (task_runtime.py, `write_head_result`).
- checkpoint `<checkpoint_root>/global_step_<n>/`, then `latest_ckpt_global_step.txt` beside it, written last;
  the exported policy is `<export_root>/global_step_<n>/policy/` (marinskyrl/checkpoint_paths.py@18c335db).
"""

import json
from typing import Any, Final

from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.observe.evidence import Unreadable
from tools.launcher.observe.run_files import RunFiles
from tools.launcher.store.object_store import StoreError, StoreUnavailable
from tools.launcher.store.objects import ObjectReader

LATEST_FILE: Final = "latest_ckpt_global_step.txt"

_SHOWN_CHARACTERS: Final = 40


class Unknown(Exception):
    """Whether an object is there, or what is in it, cannot be told from here. The text says why."""


class Reader:
    """Reads small objects. A place that did not answer once is not asked again: each time costs seconds."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._away: dict[str, str] = {}

    def exists(self, uri: str) -> bool:
        """Tell whether there is an object.

        Raises:
            Unknown: it cannot be told.
        """
        self._refuse_if_away(uri)
        try:
            return self._objects.exists(uri)
        except StoreError as error:
            raise self._unknown(uri, error) from None

    def data(self, uri: str) -> bytes:
        """Return an object's content.

        Raises:
            Unreadable: there is none.
            Unknown: it cannot be told.
        """
        self._refuse_if_away(uri)
        try:
            found = self._objects.read(uri)
        except StoreError as error:
            raise self._unknown(uri, error) from None
        if found is None:
            raise Unreadable(f"{_name(uri)} is missing")
        return found

    def mapping(self, uri: str) -> dict[str, Any]:
        """Return the JSON object, or YAML mapping, at `uri`.

        Raises:
            Unreadable: it is missing, cut short, or something else.
            Unknown: it cannot be told.
        """
        data = self.data(uri)
        try:
            value = json.loads(data)
        except ValueError:
            try:
                value = load_yaml_mapping(data, source=_name(uri))
            except DocumentError as error:
                raise Unreadable(f"{_name(uri)} is torn: {error.problem}") from None
        if not isinstance(value, dict):
            raise Unreadable(f"{_name(uri)} is a JSON {type(value).__name__}, not an object")
        return value

    def _refuse_if_away(self, uri: str) -> None:
        away = self._away.get(_bucket(uri))
        if away is not None:
            raise Unknown(away)

    def _unknown(self, uri: str, error: StoreError) -> Unknown:
        reason = f"{_bucket(uri)} cannot be read from here: {getattr(error, 'reason', error)}"
        if isinstance(error, StoreUnavailable):
            self._away[_bucket(uri)] = reason
        return Unknown(reason)


def latest_step(files: RunFiles, reader: Reader) -> int:
    """Return the step of the newest checkpoint that is whole, by the runtime's own mark.

    Raises:
        Unreadable: there is no such mark, or it holds no number.
        Unknown: it cannot be told.
    """
    text = reader.data(f"{files.checkpoint_root}/{LATEST_FILE}").decode("utf-8", "replace").strip()
    if not (text.isascii() and text.isdigit()):
        raise Unreadable(f"{LATEST_FILE} says {text[:_SHOWN_CHARACTERS]!r}, which is no step")
    return int(text)


def result_at(uri: str, reader: Reader) -> dict[str, Any]:
    """Return the `result` of a terminal manifest or attempt record.

    Raises:
        Unreadable: there is none.
        Unknown: it cannot be told.
    """
    result = reader.mapping(uri).get("result")
    if not isinstance(result, dict):
        raise Unreadable(f"{_name(uri)} has no `result`, which the runtime writes")
    return result


def resolved_document(files: RunFiles, reader: Reader) -> dict[str, Any]:
    """Return the launch document as the driver ran it.

    Raises:
        Unreadable: there is none.
        Unknown: it cannot be told.
    """
    value = reader.mapping(files.resolved_config_uri)
    config = value.get("config", value)
    if not isinstance(config, dict):
        raise Unreadable(f"{_name(files.resolved_config_uri)} has no `config`, which the runtime writes")
    return config


def exported_policy(result: dict[str, Any]) -> tuple[int | None, str | None]:
    """Return step and URI of the exported policy that a result names; None for what it does not."""
    model = result.get("model")
    if not isinstance(model, dict):
        return None, None
    step, uri = model.get("global_step"), model.get("policy_export_uri")
    return step if type(step) is int else None, uri if isinstance(uri, str) else None


def _name(uri: str) -> str:
    return uri.rsplit("/", 1)[-1]


def _bucket(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"

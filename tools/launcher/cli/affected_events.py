"""Reading a build's events: which target has which outputs, and why another has none.

Source: Bazel's build event protocol, as `--build_event_json_file` writes it.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tools.launcher.cli.first_sentence import first_sentence


class BuildEvents:
    """The events of one build.

    Attributes:
        finished: whether Bazel wrote them to the end.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        """Read the events; see the module."""
        self.finished = False
        self._root = Path()
        self._files: dict[str, list[Any]] = {}
        self._sets: dict[str, list[str]] = {}
        self._groups: dict[str, dict[str, list[str]]] = {}
        self._failed_actions: dict[str, Any] = {}
        self._needs: dict[str, list[str]] = {}
        for line in lines:
            event = json.loads(line)
            for kind, identifier in event["id"].items():
                self._read(kind, identifier, event)

    def built(self, label: str) -> bool:
        """Return whether a target was built; also one that has none of the output groups asked for."""
        return label in self._groups

    def outputs(self, label: str) -> dict[str, Path]:
        """Return the first file of each output group of a target; {} of one that was not built."""
        found = {}
        for group, sets in self._groups.get(label, {}).items():
            files = self._all_files(sets)
            if files:
                found[group] = self._place(files[0])
        return found

    def why_not(self, label: str) -> str:
        """Return the first sentence of why a target was not built."""
        action = self._failed_actions.get(label)
        if action is not None:
            return first_sentence(self._said(action), label)
        needs = ", ".join(self._needs.get(label, ()))
        cause = f"it needs {needs}, which cannot be loaded" if needs else "Bazel cannot analyze it"
        return f"{cause}; `tools/bazel build {label}` tells more"

    def _read(self, kind: str, identifier: dict[str, Any], event: dict[str, Any]) -> None:
        if kind == "namedSet":
            content = event["namedSetOfFiles"]
            self._files[identifier["id"]] = content.get("files", [])
            self._sets[identifier["id"]] = [each["id"] for each in content.get("fileSets", [])]
        elif kind == "targetCompleted" and event.get("completed", {}).get("success"):
            self._groups[identifier["label"]] = {
                group["name"]: [each["id"] for each in group.get("fileSets", [])]
                for group in event["completed"].get("outputGroup", [])
            }
        elif kind == "actionCompleted" and not event["action"].get("success"):
            self._failed_actions.setdefault(identifier["label"], event["action"])
        elif "aborted" in event and "label" in identifier:
            children = [each.get("unconfiguredLabel", {}).get("label") for each in event.get("children", [])]
            self._needs.setdefault(identifier["label"], []).extend(filter(None, children))
        elif kind == "workspace":
            self._root = Path(event["workspaceInfo"]["localExecRoot"])
        elif kind == "buildFinished":
            self.finished = True

    def _all_files(self, sets: Iterable[str]) -> list[Any]:
        files: list[Any] = []
        for name in sets:
            files += self._files.get(name, [])
            files += self._all_files(self._sets.get(name, ()))
        return files

    def _place(self, file: Any) -> Path:
        """Where a file is: its address is that of a remote cache where there is one."""
        return self._root.joinpath(*file.get("pathPrefix", []), file["name"])

    def _said(self, action: Any) -> str:
        for stream in ("stderr", "stdout"):
            address = urlsplit(action.get(stream, {}).get("uri", ""))
            if address.scheme == "file":
                try:
                    return Path(unquote(address.path)).read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
        return str(action.get("failureDetail", {}).get("message", ""))

"""Names of artifacts and of jobs.

Source: contract, typed-spec.md §2 (artifact names, sanitiser) and runtime-facts.md §14 (Iris).
"""

import re

_OUTSIDE_JOB_NAME = re.compile(r"[^a-z0-9_.-]+")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")

POD_NAME_LIMIT = 63
"""Characters after which Iris cuts a name and appends a hash."""


def artifact_name_problem(name: str) -> str | None:
    """Say what is wrong with an artifact name such as `team/experiment`, or return None."""
    if not name:
        return "is empty"
    if _SCHEME.match(name):
        return "contains a URL scheme"
    if name.startswith("/") or name.endswith("/"):
        return "has a slash at an end"
    components = name.split("/")
    if ".." in components or "." in components:
        return f"contains '{'..' if '..' in components else '.'}'"
    if "" in components:
        return "contains '//'"
    if any(character.isspace() or not character.isprintable() for character in name):
        return "contains white space or a control character"
    return None


def sanitised_job_name(text: str) -> str:
    """Return the job name which Marin derives from `text`.

    Lower case; each run of characters outside `[a-z0-9_.-]` becomes one `-`; `-` and `.` are
    removed at both ends; an empty result becomes `remote_job`.
    """
    return _OUTSIDE_JOB_NAME.sub("-", text.lower()).strip("-.") or "remote_job"


def last_component(name: str) -> str:
    """Return the part of an artifact name which its staging folder is called after."""
    return name.rsplit("/", 1)[-1]

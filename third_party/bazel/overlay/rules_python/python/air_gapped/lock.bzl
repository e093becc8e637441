"""Reads a hash-locked requirements file."""

def label_name(name):
    """The Bazel name of a distribution: `ruamel.yaml-clib` is `ruamel_yaml_clib`."""
    return name.lower().replace("-", "_").replace(".", "_")

def _logical_lines(text):
    lines = []
    pending = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("#"):
            continue
        pending += line.removesuffix("\\")
        if line.endswith("\\"):
            pending += " "
        else:
            lines.append(pending.strip())
            pending = ""
    if pending.strip():
        lines.append(pending.strip())
    return [line for line in lines if line and not line.startswith("-")]

def parse_lock(text, origin):
    """Parses what `uv pip compile --generate-hashes` or pip-compile write.

    Args:
        text: the content of the file.
        origin: its name, for error texts.

    Returns:
        {label name: struct(requirement, extras, hashes)}; `requirement` is the
        text in front of the hashes. Fails where a requirement has no version or
        no hash, or stands there twice.
    """
    locked = {}
    for line in _logical_lines(text):
        requirement, _, rest = line.partition(" --hash=")
        requirement = requirement.partition(" #")[0].strip()
        hashes = [h.strip().partition(" ")[0] for h in rest.split(" --hash=") if h.strip()]
        distribution = requirement.partition("==")[0].strip()
        if distribution == requirement:
            fail("{}: '{}' has no exact version. Write the lock anew.".format(origin, requirement))
        if not hashes:
            fail("{}: '{}' has no hash. Write the lock anew with hashes.".format(origin, requirement))
        name, _, extras = distribution.partition("[")
        label = label_name(name.strip())
        if label in locked:
            fail("{}: '{}' is locked twice.".format(origin, name))
        locked[label] = struct(
            extras = [e.strip() for e in extras.removesuffix("]").split(",") if e.strip()],
            hashes = hashes,
            requirement = requirement,
        )
    return locked

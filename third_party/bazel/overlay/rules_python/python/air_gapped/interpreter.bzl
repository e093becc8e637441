"""Finds a Python interpreter that is already on the machine."""

def find_python(ctx, version, variable = "SLIPWAY_PYTHON"):
    """Finds the interpreter of a Python version.

    Args:
        ctx: a repository_ctx or module_ctx.
        version: "3.12" or "3.12.1"; only major and minor count.
        variable: start of the name of the environment variable that has its
            path; SLIPWAY_PIP_PYTHON for the one that has pip.

    Returns:
        Its path. Fails where there is none.
    """
    minor = ".".join(version.split(".")[:2])
    variable += "_" + minor.replace(".", "_")
    found = ctx.getenv(variable) or ctx.which("python" + minor)
    if not found:
        fail("No Python {0} on this machine. Install one and pass --repo_env={1}=/path/to/python{0}".format(minor, variable))
    path = ctx.path(str(found))
    if not path.exists:
        fail("{}={} does not exist. Name an existing Python {}.".format(variable, found, minor))
    return path

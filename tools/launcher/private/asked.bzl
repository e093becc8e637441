"""asked_experiments: a repository that has the list of experiments which somebody asks about as a whole."""

_LIST = "SLIPWAY_ASKED_EXPERIMENTS"

def _asked_experiments_impl(repository_ctx):
    file = repository_ctx.getenv(_LIST, "")

    # Not watched: another list is another file.
    labels = repository_ctx.read(file, watch = "no").splitlines() if file else []
    repository_ctx.file("BUILD.bazel", "")
    repository_ctx.file("experiments.bzl", "EXPERIMENTS = {}\n".format(json.encode_indent(labels)))

asked_experiments = repository_rule(
    implementation = _asked_experiments_impl,
    doc = """The labels that are the lines of the file $SLIPWAY_ASKED_EXPERIMENTS; none without that variable.

No pattern such as `//experiments/...` can stand in a BUILD file. `launcher affected` writes down what a query says of
it, and sets the variable by --repo_env for the build of //tools/launcher/asked:digests.""",
    environ = [_LIST],
)

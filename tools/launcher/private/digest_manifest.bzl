"""digest_manifest: the digests of many experiments as one file."""

load(":preflight.bzl", "PREFLIGHT_PROGRAM", "preflight_arguments", "run_preflight")
load(":providers.bzl", "RlExperimentInfo", "RlPreflightRequestInfo", "RlSweepInfo")

# Experiments of one action, at most on average: few enough to be planned in the time that Bazel takes to find out what
# changed, and so many that a process and its start are little beside them.
_SHARE = 32

def _requests_of(target):
    return target[RlSweepInfo].requests if RlSweepInfo in target else [target[RlPreflightRequestInfo]]

def _shares(requests):
    """Parts requests so that one more or less does not move others: by their labels, into 1, 2, 4, ... shares."""
    count = 1
    for _ in range(32):
        if len(requests) <= count * _SHARE:
            break
        count *= 2
    shares = {}
    for label in sorted(requests):
        # The lowest bits of a text's hash are alike where only some of its characters differ.
        number = hash(label) // 65599 % count
        shares.setdefault(number, []).append(requests[label])
    return [shares[number] for number in sorted(shares)]

def _digests(ctx, output, arguments, inputs):
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(output, format = "--digests_out=%s")
    arguments(args)
    run_preflight(
        ctx,
        args,
        inputs = inputs,
        outputs = [output],
        mnemonic = "RlDigests",
        progress_message = "Digests of %{label}",
    )

def _digest_manifest_impl(ctx):
    requests = {}
    for target in ctx.attr.experiments:
        for info in _requests_of(target):
            requests[info.request.label] = info
    parts = []
    for number, share in enumerate(_shares(requests)):
        part = ctx.actions.declare_file("{}.parts/{}.json".format(ctx.label.name, number))
        _digests(
            ctx,
            part,
            lambda args: args.add_all([info.request for info in share], map_each = preflight_arguments),
            depset([file for info in share for file in info.inputs]),
        )
        parts.append(part)
    manifest = ctx.actions.declare_file(ctx.label.name + ".json")
    _digests(ctx, manifest, lambda args: args.add_all(parts, format_each = "--part=%s"), parts)
    return DefaultInfo(files = depset([manifest]))

digest_manifest = rule(
    implementation = _digest_manifest_impl,
    doc = """Writes `<name>.json`: label -> version, recipe and launch digest of each experiment.

An experiment that is refused stands there with the first sentence of why. `launcher affected --base=FILE.json` compares
the file with the sources as they are (docs/comparing.md).""",
    attrs = {
        "experiments": attr.label_list(
            doc = "rl_experiment and rl_sweep targets.",
            mandatory = True,
            providers = [
                [RlExperimentInfo, RlPreflightRequestInfo],
                [RlSweepInfo],
            ],
        ),
        "_preflight": PREFLIGHT_PROGRAM,
    },
)

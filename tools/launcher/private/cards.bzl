"""Rules that make a YAML card or manifest a target."""

load(":providers.bzl", "CardInfo", "RuntimeManifestInfo")

_SRC = attr.label(
    doc = "The YAML file. Its field names are those of the models in tools/launcher/catalog.",
    allow_single_file = [".yaml"],
    mandatory = True,
)

def _card_rule(kind):
    def _impl(ctx):
        return [
            DefaultInfo(files = depset([ctx.file.src])),
            CardInfo(card = ctx.file.src, kind = kind),
        ]

    return _impl

model_card = rule(
    implementation = _card_rule("model"),
    doc = "Geometry and pinned revision of a model.",
    attrs = {"src": _SRC},
    provides = [CardInfo],
)

dataset_card = rule(
    implementation = _card_rule("dataset"),
    doc = "Size and place of a dataset.",
    attrs = {"src": _SRC},
    provides = [CardInfo],
)

cluster_card = rule(
    implementation = _card_rule("cluster"),
    doc = "Node shape, routing and storage of an Iris cluster.",
    attrs = {"src": _SRC},
    provides = [CardInfo],
)

def _runtime_manifest_impl(ctx):
    return [
        DefaultInfo(files = depset([ctx.file.src])),
        RuntimeManifestInfo(manifest = ctx.file.src),
    ]

runtime_manifest = rule(
    implementation = _runtime_manifest_impl,
    doc = "What one pinned MarinSkyRL commit accepts: registries, enumerations, defaults.",
    attrs = {"src": _SRC},
    provides = [RuntimeManifestInfo],
)

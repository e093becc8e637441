"""Providers of the launcher. They carry files, never values computed from their content."""

CardInfo = provider(
    doc = "One card: dated facts about a model, a dataset or a cluster.",
    fields = {
        "card": "File: the YAML source, read by tools/launcher/catalog.",
        "kind": "string: `model`, `dataset` or `cluster`.",
    },
)

RuntimeManifestInfo = provider(
    doc = "What one pinned MarinSkyRL commit accepts.",
    fields = {"manifest": "File: the YAML source."},
)

RlExperimentInfo = provider(
    doc = "The outputs of one experiment's preflight.",
    fields = {
        "digest": "File: recipe and launch digest, two lines.",
        "graph": "File: artifact steps with identities and paths, JSON.",
        "launch": "File: the pinned SkyRLLaunchConfig, YAML.",
        "plan": "File: what `:plan` prints, JSON.",
        "report": "File: the plan as a self-contained HTML page.",
    },
)

RlPreflightRequestInfo = provider(
    doc = "What preflight is asked about one experiment, for actions that ask about many.",
    fields = {
        "inputs": "list of File: all that the request names.",
        "request": "struct: the target's texts and files, which preflight_arguments() writes as arguments.",
    },
)

RlSweepInfo = provider(
    doc = "The points of one sweep.",
    fields = {
        "points": "list of RlExperimentInfo, in the order of the sweep.",
        "requests": "list of RlPreflightRequestInfo, in the same order.",
    },
)

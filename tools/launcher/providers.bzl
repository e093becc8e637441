"""Public providers of the launcher."""

load("//tools/launcher/private:providers.bzl", _CardInfo = "CardInfo", _RlExperimentInfo = "RlExperimentInfo", _RuntimeManifestInfo = "RuntimeManifestInfo")

CardInfo = _CardInfo
RlExperimentInfo = _RlExperimentInfo
RuntimeManifestInfo = _RuntimeManifestInfo

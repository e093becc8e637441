"""Public providers of the launcher."""

load("//tools/launcher/private:providers.bzl", _CardInfo = "CardInfo", _RlExperimentInfo = "RlExperimentInfo", _RlSweepInfo = "RlSweepInfo", _RuntimeManifestInfo = "RuntimeManifestInfo")

CardInfo = _CardInfo
RlExperimentInfo = _RlExperimentInfo
RlSweepInfo = _RlSweepInfo
RuntimeManifestInfo = _RuntimeManifestInfo

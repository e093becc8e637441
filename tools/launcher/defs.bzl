"""Public rules and macros of the launcher."""

load("//tools/launcher/private:cards.bzl", _cluster_card = "cluster_card", _dataset_card = "dataset_card", _model_card = "model_card", _runtime_manifest = "runtime_manifest")
load("//tools/launcher/private:digest_manifest.bzl", _digest_manifest = "digest_manifest")
load("//tools/launcher/private:experiment.bzl", _rl_experiment = "rl_experiment")
load("//tools/launcher/private:preflight.bzl", _rl_preflight = "rl_preflight")
load("//tools/launcher/private:sweep.bzl", _rl_sweep = "rl_sweep")

cluster_card = _cluster_card
dataset_card = _dataset_card
digest_manifest = _digest_manifest
model_card = _model_card
rl_experiment = _rl_experiment
rl_preflight = _rl_preflight
rl_sweep = _rl_sweep
runtime_manifest = _runtime_manifest

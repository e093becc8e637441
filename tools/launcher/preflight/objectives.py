"""What the objective of a run reads."""

from tools.launcher.preflight.subject import PreflightSubject

_ALGORITHM = "skyrl.trainer.algorithm."
_DCP_WITH_ROUTES = "VLLM_ALLOW_ROUTED_EXPERTS_DCP"
"""Environment variable with which vLLM and the trainer take router capture together with DCP (utils.py@004e15f9)."""


def reads_rollout_logprobs(subject: PreflightSubject) -> bool:
    """Whether the loss needs log-probabilities of the rollout. Raises like `PreflightSubject.value`."""
    if subject.flag(_ALGORITHM + "use_tis"):
        return True
    return subject.text(_ALGORITHM + "policy_loss_type") in subject.manifest().rollout_logprob_losses


def penalises_divergence(subject: PreflightSubject) -> bool:
    """Whether a KL term is on, which loads a reference. Raises like `PreflightSubject.value`."""
    return subject.flag(_ALGORITHM + "use_kl_loss") or subject.flag(_ALGORITHM + "use_kl_in_reward")


def takes_routes_with_dcp(subject: PreflightSubject) -> bool:
    """Whether the document lifts the rule that decode context parallelism excludes router capture."""
    places = ("runtime.task_env", "skyrl.extra_env")
    values = [subject.get(f"{place}.{_DCP_WITH_ROUTES}") for place in places]
    return any(type(value) in (str, int) and value in ("1", 1) for value in values)

"""What the objective of a run reads."""

from tools.launcher.preflight.subject import PreflightSubject

_ALGORITHM = "skyrl.trainer.algorithm."


def reads_rollout_logprobs(subject: PreflightSubject) -> bool:
    """Whether the loss needs log-probabilities of the rollout. Raises like `PreflightSubject.value`."""
    if subject.flag(_ALGORITHM + "use_tis"):
        return True
    return subject.text(_ALGORITHM + "policy_loss_type") in subject.manifest().rollout_logprob_losses


def penalises_divergence(subject: PreflightSubject) -> bool:
    """Whether a KL term is on, which loads a reference. Raises like `PreflightSubject.value`."""
    return subject.flag(_ALGORITHM + "use_kl_loss") or subject.flag(_ALGORITHM + "use_kl_in_reward")

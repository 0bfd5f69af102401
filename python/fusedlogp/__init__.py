"""Log-probabilities of tokens under a language-model head, the losses made of them, and their gradients, without storing the logits."""

from ._library import info
from ._shards import VocabParallel
from .functional import linear_cross_entropy, linear_logp, logits_logp, policy_loss, weighted_sum
from .modules import LinearCrossEntropyLoss
from .token_loss import TokenLoss

__version__ = info()["version"]
__all__ = [
    "LinearCrossEntropyLoss",
    "TokenLoss",
    "VocabParallel",
    "info",
    "linear_cross_entropy",
    "linear_logp",
    "logits_logp",
    "policy_loss",
    "weighted_sum",
]

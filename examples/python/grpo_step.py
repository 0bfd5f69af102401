"""A step of GRPO as TRL's trainer makes it: old and reference log-probabilities, clipping, a KL term, a bonus for entropy, a temperature.

usage: grpo_step.py [--device cpu]

The log-probabilities of the rollout come from fusedlogp.linear_logp, loss and gradient of the step from fusedlogp.policy_loss with a token loss of one
expression. Both are compared with the same in eager torch, which stores the logits.
"""

import argparse

import torch

import fusedlogp

TEMPERATURE, CLIP, KL_SCALE, ENTROPY_SCALE = 0.7, 0.2, 0.04, 0.01

GRPO = fusedlogp.TokenLoss(
    """
    local ratio = exp(logp - old_logp)
    local surrogate = min(ratio * advantages, clamp(ratio, 1 - clip, 1 + clip) * advantages)
    local toward = reference_logp - logp
    return -surrogate + kl_scale * (exp(toward) - toward - 1) - entropy_scale * entropy
    """,
    inputs=("advantages", "old_logp", "reference_logp"),
    parameters={"clip": CLIP, "kl_scale": KL_SCALE, "entropy_scale": ENTROPY_SCALE},
)


def advantages_of(rewards):
    """How far the reward of each completion [prompts, completions] is from its group's mean, in standard deviations."""
    return (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)


def fused_step(hidden, head, tokens, mask, advantages, old_logp, reference_logp):
    inputs = {"advantages": advantages[:, None].expand_as(old_logp), "old_logp": old_logp, "reference_logp": reference_logp}
    return fusedlogp.policy_loss(hidden, head, tokens, inputs, loss=GRPO, token_weight=mask, temperature=TEMPERATURE)


def eager_step(hidden, head, tokens, mask, advantages, old_logp, reference_logp):
    log_softmax = torch.log_softmax((hidden @ head.t()).float() / TEMPERATURE, -1)
    logp = log_softmax.gather(-1, tokens[..., None]).squeeze(-1)
    entropy = -(log_softmax.exp() * log_softmax).sum(-1)
    ratio = torch.exp(logp - old_logp)
    advantage = advantages[:, None]
    surrogate = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    toward = reference_logp - logp
    loss = -surrogate + KL_SCALE * (torch.exp(toward) - toward - 1) - ENTROPY_SCALE * entropy
    return (loss * mask).sum() / mask.sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.manual_seed(0)
    prompts, completions, length, width, vocab = 2, 4, 20, 64, 1500
    sequences = prompts * completions
    hidden = torch.randn(sequences, length, width, device=device)
    head = torch.randn(vocab, width, device=device) / 8
    tokens = torch.randint(0, vocab, (sequences, length), device=device)
    lengths = torch.randint(5, length + 1, (sequences, 1), device=device)
    mask = (torch.arange(length, device=device) < lengths).float()
    advantages = advantages_of(torch.rand(prompts, completions, device=device)).flatten()
    # The rollout's model, and the reference: the head a few steps ago.
    old_logp = fusedlogp.linear_logp(hidden, head + 0.01 * torch.randn_like(head), tokens, temperature=TEMPERATURE)
    reference_logp = fusedlogp.linear_logp(hidden, head + 0.02 * torch.randn_like(head), tokens, temperature=TEMPERATURE)
    results = []
    for step in (eager_step, fused_step):
        leaves = [value.clone().requires_grad_() for value in (hidden, head)]
        loss = step(*leaves, tokens, mask, advantages, old_logp, reference_logp)
        loss.backward()
        results.append((loss.detach(), *(leaf.grad for leaf in leaves)))
    for name, eager, fused in zip(("loss", "gradient of hidden", "gradient of the head"), *results):
        difference = float((eager - fused).norm() / eager.norm())
        print(f"{name}: relative difference {difference:.1e}")
        if not difference < 1e-5:  # sums of 64 and 1500 terms in fp32, some 100 roundings of 6e-8
            raise SystemExit(f"{name} differs from eager torch's")


if __name__ == "__main__":
    main()

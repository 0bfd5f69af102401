"""verl's fused head: linear_cross_entropy(hidden, weight, labels, temperature, reduction, group) that returns log-probabilities and entropies.

usage: verl_linear_cross_entropy.py [--device cpu]

The function replaces verl.utils.kernel.linear_cross_entropy. Its results are compared with eager torch's, gradients included.
"""

import argparse

import torch

import fusedlogp


def linear_cross_entropy(hidden, weight, labels, temperature=1.0, reduction="none", group=None):
    """(log-probabilities of labels, entropies): [...] each with "none", their sum or mean otherwise. group: of a sharded vocabulary; None or one process."""
    if group is not None and torch.distributed.get_world_size(group) > 1:
        raise NotImplementedError("group: got one of several processes, wanted None: the head is whole on each device")
    results = fusedlogp.linear_logp(hidden, weight, labels, outputs=("logp", "entropy"), temperature=temperature)
    if reduction == "none":
        return results
    return tuple(getattr(value, reduction)() for value in results)


def eager(hidden, weight, labels, temperature):
    log_softmax = torch.log_softmax((hidden @ weight.t()).float() / temperature, -1)
    return log_softmax.gather(-1, labels[..., None]).squeeze(-1), -(log_softmax.exp() * log_softmax).sum(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.manual_seed(0)
    hidden, weight = torch.randn(2, 30, 48, device=device), torch.randn(1000, 48, device=device) / 7
    labels = torch.randint(0, 1000, (2, 30), device=device)
    upstream = torch.randn(2, 2, 30, device=device)
    results = []
    for function in (eager, linear_cross_entropy):
        leaves = [value.clone().requires_grad_() for value in (hidden, weight)]
        logp, entropy = function(*leaves, labels, 0.8)
        (upstream[0] * logp + upstream[1] * entropy).sum().backward()
        results.append((logp.detach(), entropy.detach(), *(leaf.grad for leaf in leaves)))
    for name, wanted, got in zip(("logp", "entropy", "gradient of hidden", "gradient of weight"), *results):
        difference = float((wanted - got).norm() / wanted.norm())
        print(f"{name}: relative difference {difference:.1e}")
        if not difference < 1e-5:  # sums of 48 and 1000 terms in fp32
            raise SystemExit(f"{name} differs from eager torch's")
    mean, _ = linear_cross_entropy(hidden, weight, labels, 0.8, "mean")
    torch.testing.assert_close(mean, results[0][0].mean(), rtol=1e-5, atol=0)


if __name__ == "__main__":
    main()

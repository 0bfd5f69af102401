"""Accumulates gradients as Megatron does: micro-batches add the head's gradient to an fp32 main_grad in place, and its .grad stays None.

usage: main_grad.py [--device cpu]

main_grad is compared with the sum of the micro-batches' gradients in fp64, and so is .grad in bf16.
"""

import argparse

import torch

import fusedlogp


def step(micro_batches, weight, scale):
    """What a training step does for the head: each micro-batch adds to weight.main_grad."""
    total = 0.0
    for hidden, labels in micro_batches:
        loss = fusedlogp.linear_cross_entropy(hidden, weight, labels, accumulate_into=weight.main_grad) * scale
        loss.backward()
        total += float(loss.detach())
    return total


def exact_gradient(micro_batches, weight, scale):
    head = weight.detach().double().requires_grad_()
    for hidden, labels in micro_batches:
        (torch.nn.functional.cross_entropy(hidden.detach().double() @ head.t(), labels) * scale).backward()
    return head.grad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.manual_seed(0)
    count, rows, width, vocab = 8, 64, 96, 700
    weight = torch.nn.Parameter((torch.randn(vocab, width, device=device) / 10).bfloat16())
    weight.main_grad = torch.zeros(vocab, width, dtype=torch.float32, device=device)
    micro_batches = []
    for _ in range(count):
        hidden = torch.randn(rows, width, device=device).bfloat16().requires_grad_()
        micro_batches.append((hidden, torch.randint(0, vocab, (rows,), device=device)))
    total = step(micro_batches, weight, 1 / count)
    exact = exact_gradient(micro_batches, weight, 1 / count)
    if weight.grad is not None or any(hidden.grad is None for hidden, _ in micro_batches):
        raise SystemExit("wanted hidden's gradients, and none in weight.grad")
    into = float((weight.main_grad.double() - exact).norm() / exact.norm())
    for hidden, labels in micro_batches:
        (fusedlogp.linear_cross_entropy(hidden, weight, labels) / count).backward()
    own = float((weight.grad.double() - exact).norm() / exact.norm())
    print(f"loss {total:.4f}; error of main_grad in fp32 {into:.1e}, of .grad in bf16 {own:.1e}")
    # The bound is half a unit in the last place of bf16, by which each derivative by a logit is rounded.
    if not into < 2.0**-9 or not into < own:
        raise SystemExit("main_grad is off")


if __name__ == "__main__":
    main()

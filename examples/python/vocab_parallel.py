"""A head sharded over the vocabulary, trained as Megatron and torchtitan do it and by fusedlogp: torchrun --nproc-per-node 2 vocab_parallel.py

usage: torchrun --nproc-per-node N vocab_parallel.py [--device cpu]

Each process has its entries of the head. The loss and its gradients are computed in three ways and compared:
- Megatron's formula: the ranks' largest logit, sum of exponentials and target's logit are reduced one after another, from logits that each rank stores;
- torchtitan's: a head of torch.distributed.tensor, whose logits are a DTensor sharded on the vocabulary, and loss_parallel;
- fusedlogp.linear_cross_entropy in place of either, without logits: one exchange of 32 bytes a row.
"""

import argparse
import os
import sys

import torch
import torch.distributed as distributed
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module

import fusedlogp

ROWS, WIDTH, VOCAB = 96, 64, 1000


class Summed(torch.autograd.Function):
    """The sum of the parts that the ranks have; the gradient of a part is that of the sum."""

    @staticmethod
    def forward(ctx, part):
        whole = part.clone()
        distributed.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Copied(torch.autograd.Function):
    """A value that is the same on all ranks, and that each uses: its gradient is the sum of the ranks' gradients."""

    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        whole = gradient.clone()
        distributed.all_reduce(whole)
        return whole


def megatrons(hidden, weight, target, first):
    """-log softmax of the target over all ranks' logits, the mean over the rows; first: the id of this rank's first entry."""
    logits = (Copied.apply(hidden) @ weight.t()).float()
    largest = logits.detach().amax(-1)
    distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
    logits = logits - largest[:, None]
    mine = (target >= first) & (target < first + weight.shape[0])
    chosen = logits.gather(1, (target - first).clamp(0, weight.shape[0] - 1)[:, None])[:, 0]
    return (Summed.apply(logits.exp().sum(-1)).log() - Summed.apply(torch.where(mine, chosen, 0.0))).mean()


def check(name, got, wanted, bound):
    off = float((got.detach().double() - wanted.detach().double()).abs().max())
    if not off <= bound:
        raise SystemExit(f"{name}: off by {off:.3g}, wanted at most {bound:.3g}")
    return off


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: a GPU for each process")
    device = parser.parse_args().device
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    hidden = torch.randn(ROWS, WIDTH, device=device)
    target = torch.randint(0, VOCAB, (ROWS,), device=device)
    linear = torch.nn.Linear(WIDTH, VOCAB, bias=False, device=device)

    # The entries are divided as DTensor divides them: the last rank may have fewer.
    each = -(-VOCAB // ranks)
    first = min(rank * each, VOCAB)
    part = linear.weight.detach()[first : first + each]

    x, w = hidden.clone().requires_grad_(), part.clone().requires_grad_()
    by_formula = megatrons(x, w, target, first)
    by_formula.backward()

    # One line, in place of the formula.
    x_ours, w_ours = hidden.clone().requires_grad_(), part.clone().requires_grad_()
    ours = fusedlogp.linear_cross_entropy(x_ours, w_ours, target, process_group=distributed.group.WORLD)
    ours.backward()

    mesh = init_device_mesh(device, (ranks,))
    head = parallelize_module(linear, mesh, ColwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1), use_local_output=False))
    x_titan = hidden.clone().requires_grad_()
    with loss_parallel():
        by_titan = F.cross_entropy(head(x_titan), target)
        by_titan.backward()
    by_titan = by_titan.full_tensor() if hasattr(by_titan, "full_tensor") else by_titan
    w_titan = head.weight.grad.to_local()
    head.weight.grad = None

    # One line, in place of the head's call, its logits and loss_parallel: the DTensor brings its group.
    x_head = hidden.clone().requires_grad_()
    by_head = fusedlogp.linear_cross_entropy(x_head, head.weight, target)
    by_head.backward()

    # All are in fp32 (on a GPU, ours computes a product as three tf32 products): a few units in the last place of sums of 64 and 1000 terms.
    bound = 64 * 2.0**-24
    off = [check("the loss beside Megatron's", ours, by_formula, 8 * bound), check("the loss beside torchtitan's", by_head, by_titan, 8 * bound)]
    off.append(check("the gradient of input beside Megatron's", x_ours.grad, x.grad, bound))
    off.append(check("the gradient of weight beside Megatron's", w_ours.grad, w.grad, bound))
    off.append(check("the gradient of input beside torchtitan's", x_head.grad, x_titan.grad, bound))
    off.append(check("the gradient of weight beside torchtitan's", head.weight.grad.to_local(), w_titan, bound))
    if rank == 0:
        print(f"ranks {ranks}, loss {ours.item():.6f}, beside Megatron's and torchtitan's off by at most {max(off):.1e}")
    distributed.barrier()  # a rank that left early would close connections that the others still use
    distributed.destroy_process_group()
    # torch's DTensors keep their group and its threads beyond this; a thread that is at work while the interpreter ends aborts the process.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

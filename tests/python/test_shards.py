"""A vocabulary in shards on 1, 2, 4 and 8 ranks: values and gradients beside one process', bits, uneven and empty shards, padding, DTensors, and what goes
wrong on a rank."""

import math
import os
import time
import unittest

import ranks
import torch
import torch.distributed as distributed
from support import DEVICE, EVERYTHING, FP32_UNIT, Bounds, Case, some

import fusedlogp

OUTPUTS = ("logp", "lse", "entropy", "argmax")
VOCAB = 96
# What logp and lse of merged rows are off: a shard's sums, offset and target are rounded to fp32, and up to eight parts added, some 16 roundings of logits
# of up to 16.
MERGED = 16 * 16 * FP32_UNIT
# Where shards begin and end, in sixteenths of the vocabulary.
CUTS = {
    "1": (0, 16), "2": (0, 8, 16), "4": (0, 4, 8, 12, 16), "uneven": (0, 3, 7, 12, 16), "empty": (0, 0, 9, 9, 16),
    "8": (0, 2, 4, 6, 8, 10, 12, 14, 16),
}  # fmt: skip
OPTIONS = (
    {}, {"softcap": 3.0, "temperature": 0.6}, {"temperature": "rows", "logit_scale": 0.5}, {"weight_layout": "dv"}, {"shift": True},
)  # fmt: skip
LOSSES = (
    {}, {"reduction": "sum", "z_loss": 0.1}, {"reduction": "none", "z_loss": 0.01, "token_weight": "rows"}, {"token_weight": "rows", "shift": True},
    {"token_weight": "results", "temperature": "results", "shift": True},
    {"label_smoothing": 0.2, "softcap": 5.0}, {"label_smoothing": 0.1, "weight": "classes", "token_weight": "rows"}, {"weight": "classes", "reduction": "sum"},
    {"accumulate_into": "ones", "label_smoothing": 0.1}, {"accumulate_into": "ones", "weight_layout": "dv", "reduction": "none"},
)  # fmt: skip
OWN = fusedlogp.TokenLoss(
    "local r = exp(logp - old_logp)\nreturn where(less(r, 2), -r * advantages, 1) + scale * (entropy + 0.01 * lse^2) + max(-detach(logp) / 9, abs(logp))",
    ("advantages", "old_logp"), {"scale": 0.3},
)  # fmt: skip
OF_ALL = fusedlogp.TokenLoss(
    "-- a comment\nlocal z = uniform - 0.1 * class_weight * logp * advantages\nreturn z + 0.01 * lse^2 + 0 * old_logp -- and one behind",
    ("advantages", "old_logp"),
)  # fmt: skip
POLICIES = (
    {"loss": "reinforce"}, {"loss": "ppo", "reduction": "sum"}, {"loss": "dapo", "reduction": "none", "token_weight": "rows"}, {"loss": "grpo_kl"},
    {"loss": "gspo_token", "shift": True}, {"loss": OWN, "parameters": {"scale": 0.1}, "outputs": ("entropy", "lse")}, {"loss": "grpo", "outputs": ("logp",)},
    {"loss": OF_ALL, "reduction": "sum"},
)  # fmt: skip
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class Problem:
    """One process' inputs, the same in each, and a rank's own part of them."""

    def __init__(self, number, dtype, options, bias, cuts=None, rank=0, device="cpu"):
        torch.manual_seed(number)
        self.options = dict(options)
        hidden, weight = torch.randn(3, 7, 24).to(dtype), (torch.randn(VOCAB, 24) / 2).to(dtype)
        self.target = torch.randint(0, VOCAB, (3, 7))
        self.target[:, 2] = -100
        offset = torch.randn(VOCAB).to(dtype) if bias else None
        self.tokens = {name: torch.randn(3, 7) - 2 * (name != "advantages") for name in ("advantages", "old_logp", "reference_logp", "sequence_log_ratio")}
        self.g = [torch.randn(3, 7) for _ in range(3)]
        for name in ("temperature", "token_weight"):
            if self.options.get(name) == "rows":
                self.options[name] = torch.rand(3, 7) + 0.5
            elif self.options.get(name) == "results":  # with shift
                self.options[name] = torch.rand(3, 6) + 0.5
        if self.options.get("token_weight") is not None:
            self.options["token_weight"][0, 1] = 0
        if self.options.get("weight") == "classes":
            self.options["weight"] = torch.rand(VOCAB) + 0.5
        low, high = (0, VOCAB) if cuts is None else (VOCAB * cuts[rank] // 16, VOCAB * cuts[rank + 1] // 16)
        if cuts is not None:
            weight, offset = weight[low:high], None if offset is None else offset[low:high]
        if self.options.get("weight_layout") == "dv":
            weight = weight.t().contiguous()
        if self.options.get("accumulate_into") == "ones":
            self.options["accumulate_into"] = torch.ones(weight.shape)
        self.options = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in self.options.items()}
        self.tokens = {name: value.to(device) for name, value in self.tokens.items()}
        self.target, self.g = self.target.to(device), [value.to(device) for value in self.g]
        self.hidden, self.weight, self.bias = (None if value is None else value.to(device, copy=True).requires_grad_() for value in (hidden, weight, offset))

    def gradients(self):
        grads = tuple(None if value is None else value.grad for value in (self.hidden, self.weight, self.bias))
        return grads if grads[1] is not None else (grads[0], self.options["accumulate_into"] - 1, grads[2])

    def rows(self, group=None):
        results = fusedlogp.linear_logp(self.hidden, self.weight, self.target, linear_bias=self.bias, outputs=OUTPUTS, process_group=group, **self.options)
        g = [value[..., : results[0].shape[-1]] for value in self.g]
        torch.autograd.backward(results[:3], g)
        return tuple(value.detach() for value in results), self.gradients()

    def loss(self, group=None):
        loss, lse = fusedlogp.linear_cross_entropy(
            self.hidden, self.weight, self.target, linear_bias=self.bias, return_lse=True, process_group=group, **self.options
        )
        (loss * (self.g[0][..., : loss.shape[-1]] if loss.dim() > 0 else 0.7)).sum().backward()
        return (loss.detach(), lse), self.gradients()

    def policy(self, group=None):
        name = self.options.pop("loss")
        loss = "grpo" if name == "grpo_kl" else name
        names = {"reinforce": ("advantages",), "gspo_token": ("advantages", "sequence_log_ratio"), "grpo_kl": ("advantages", "old_logp", "reference_logp")}
        inputs = {name: self.tokens[name] for name in names.get(name, ("advantages", "old_logp"))}
        found = fusedlogp.policy_loss(self.hidden, self.weight, self.target, inputs, loss=loss, linear_bias=self.bias, process_group=group, **self.options)
        found = found if isinstance(found, tuple) else (found,)
        (found[0] * (self.g[0][..., : found[0].shape[-1]] if found[0].dim() > 0 else 0.7)).sum().backward()
        return tuple(value.detach() for value in found), self.gradients()


def cases():
    number = 0
    for kind, every in (("rows", OPTIONS), ("loss", LOSSES), ("policy", POLICIES)):
        for options in every:
            for dtype in DTYPES:
                number += 1
                yield number, kind, dtype, options, number % 2 == 0


def of_a_rank(cuts, chosen, repeats):
    group, rank = distributed.group.WORLD, distributed.get_rank()
    return [[getattr(Problem(number, dtype, options, bias, cuts, rank), kind)(group) for _ in range(repeats)] for number, kind, dtype, options, bias in chosen]


def of_a_gpu(cuts, chosen):
    """Of each case in turn: summed behind the backward, and beside it with 0 and 8 multiprocessors; on the CPU."""
    rank = distributed.get_rank()
    groups = [fusedlogp.VocabParallel(distributed.group.WORLD, multiprocessors_for_exchange=left) for left in (None, 0, 8)]
    results = []
    for number, kind, dtype, options, bias in chosen:
        make = lambda: Problem(number, dtype, options, bias, cuts, rank, torch.device("cuda", rank))  # noqa: B023
        found = [getattr(make(), kind)(group) for group in groups]
        results.append([tuple(tuple(None if value is None else value.cpu() for value in part) for part in result) for result in found])
    return results


def call(rows=5, columns=8, entries=6, dtype=torch.float32, target_dtype=torch.int64, group=None, loss=None, policy=None, **others):
    torch.manual_seed(1)
    hidden, weight = torch.randn(rows, columns).to(dtype), torch.randn(entries, columns).to(dtype)
    target = torch.arange(rows).to(target_dtype)
    if loss is not None:
        return fusedlogp.linear_cross_entropy(hidden, weight, target, process_group=distributed.group.WORLD, **loss)
    if policy is not None:
        inputs = {name: torch.ones(rows) for name in ("advantages", "old_logp")}
        return fusedlogp.policy_loss(hidden, weight, target, inputs, process_group=distributed.group.WORLD, **policy)
    return fusedlogp.linear_logp(hidden, weight, target, process_group=group or distributed.group.WORLD, **others)


# What one rank of three, number 1, is given wrongly, of linear_logp or another function, and what it says: before the ranks wait for each other.
REFUSALS = (
    (None, {"temperature": -1.0}, ("ValueError", "temperature: got -1.0, wanted a number from 2^-60 to 2^60, or a tensor of one for each row or for all")),
    (None, {"exact": "no"}, ("TypeError", "exact: got str, wanted a bool")),
    (None, {"shift": 2}, ("TypeError", "shift: got int, wanted a bool")),
    (None, {"outputs": 3}, ("TypeError", "outputs: got int, wanted a name or several names of 'logp', 'lse', 'entropy', 'argmax'")),
    (None, {"memory_budget": 1.0}, ("TypeError", f"memory_budget: got float, wanted an int of 0 to {2**63 - 1}, bytes of the workspace; 0 is the default")),
    ("loss", {"reduction": "median"}, ("ValueError", "reduction: got 'median', wanted 'mean', 'sum' or 'none'")),
    ("loss", {"return_lse": None}, ("TypeError", "return_lse: got NoneType, wanted a bool")),
    ("loss", {"options": "fast"}, ("TypeError", "options: got str, wanted a torch.nn.LinearCrossEntropyOptions or None")),
    ("loss", {"token_weight": [1.0]}, ("TypeError", "token_weight: got list, wanted a torch.Tensor")),
    ("loss", {"ignore_index": "-100"}, ("TypeError", "ignore_index: got str, wanted an int or None")),
    ("policy", {"parameters": [0.2]}, ("TypeError", "parameters: got list, wanted a mapping from names to numbers, or None")),
    ("policy", {"parameters": {"clip_low": "0.2"}}, ("TypeError", "parameters['clip_low']: got str, wanted a number that is finite")),
    ("policy", {"outputs": 3}, ("TypeError", "outputs: got int, wanted a sequence of names of 'logp', 'lse' and 'entropy'")),
    ("policy", {"loss": 3}, ("TypeError", "loss: got int, wanted a name or a fusedlogp.TokenLoss")),
)
# What one rank of three, number 1, does otherwise, and what every rank says.
DISAGREEMENTS = (
    ({"rows": 4}, "on rank 1 of it rows is 4, wanted 5 as on rank 0"),
    ({"columns": 16}, "hidden size is 16, wanted 8"),
    ({"dtype": torch.bfloat16}, "input's dtype is torch.bfloat16, wanted torch.float32"),
    ({"target_dtype": torch.int32}, "target's dtype is torch.int32, wanted torch.int64"),
    ({"outputs": ("logp", "entropy")}, "outputs is 1, wanted 0"),
    ({"temperature": 0.5}, "on rank 1 of it temperature is 0.5, wanted 1.0 as on rank 0"),
    ({"softcap": 2.0}, "softcap is 2.0, wanted 0.0"),
    ({"loss": {"z_loss": 0.1}}, "z_loss is 0.1, wanted 0.0"),
    ({"loss": {"label_smoothing": 0.1}}, "label_smoothing is 0.1, wanted 0.0"),
    ({"loss": {"weight": torch.ones(18)}}, "weight's dtype or shape is another than on rank 0"),
    ({"loss": {"reduction": "sum"}}, "reduction is another than on rank 0"),
    ({"policy": {"parameters": {"clip_low": 0.1}}}, "parameters is another than on rank 0"),
)


def one_disagrees():
    errors = []
    for changed, _ in DISAGREEMENTS:
        others = {name: {} for name in ("loss", "policy") if name in changed}
        errors.append(ranks.error_of(call, **(changed if distributed.get_rank() == 1 else others)))
    for function, refused, _ in REFUSALS:
        others = {} if function is None else {function: {}}
        errors.append(ranks.error_of(call, **((refused if function is None else {function: refused}) if distributed.get_rank() == 1 else others)))
    return errors, call()  # and the group works on


def disagree_and_agree(device):
    """As ranks do that keep what they agreed on, as those of GPUs."""
    fusedlogp._shards._keeps_headers = lambda group: True
    rank = distributed.get_rank()
    device = torch.device(device, rank) if device == "cuda" else torch.device(device)
    x, w, t = torch.ones(5, 8, device=device), torch.ones(6, 8, device=device), torch.zeros(5, dtype=torch.int64, device=device)
    group = distributed.group.WORLD
    few = 4 if rank == 1 else 5
    errors = [
        ranks.error_of(fusedlogp.linear_logp, x[:few], w, t[:few], process_group=group),
        ranks.error_of(fusedlogp.linear_logp, x, w, t, temperature=-1.0 if rank == 1 else 1.0, process_group=group),
    ]
    return errors, float(fusedlogp.linear_logp(x, w, t, process_group=group).sum())  # and the group works on


def other_rows(device):
    """Of ranks that pass other rows; as those of a GPU, they compare only at the first call of a shape."""
    rank, group = distributed.get_rank(), distributed.group.WORLD
    torch.manual_seed(7)
    x, w, t = torch.randn(40, 8), torch.randn(12, 8), torch.randint(0, 24, (40,))
    t[3] = -100
    x, w, t = x.to(device), w.to(device), t.to(device)
    logp = lambda x, t, **options: fusedlogp.linear_logp(x, w, t, process_group=group, **options)
    found = {}
    changed = t.clone()
    changed[17] += rank
    found["a target"] = ranks.error_of(logp, x, changed)
    found["the order of targets"] = ranks.error_of(logp, x, t.flip(0) if rank else t)
    found["hidden states"] = ranks.error_of(logp, torch.randn(40, 8).to(device) * (1 + rank) if rank else x, t)
    found["not a number"] = ranks.error_of(logp, x * float("nan") if rank else x, t)
    broken = x.clone()
    broken[3] = float("nan") if rank else 0.0  # of an ignored row
    found["rounding"] = ranks.error_of(logp, broken * (1 + 0.001 * rank), t)
    found["both not numbers"] = ranks.error_of(logp, x * float("nan"), t)
    found["no rows"] = ranks.error_of(logp, x[:0], t[:0])
    found["all alike"] = ranks.error_of(logp, x, t)
    return found


def fully_sharded():
    """A head that FSDP shards, whose mesh is one of data parallelism."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Partial, init_device_mesh

    class Model(torch.nn.Module):
        def __init__(self, fused):
            super().__init__()
            self.embedding, self.body, self.fused = torch.nn.Embedding(50, 16), torch.nn.Linear(16, 16), fused
            self.head = torch.nn.Linear(16, 50, bias=False)

        def forward(self, tokens, labels=None):
            hidden = self.body(self.embedding(tokens))
            if labels is None:
                return hidden
            if self.fused:
                return fusedlogp.linear_cross_entropy(hidden, self.head.weight, labels, shift=True)
            return torch.nn.functional.cross_entropy(self.head(hidden)[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    rank, mesh = distributed.get_rank(), init_device_mesh("cpu", (2,))

    def made(fused, sharded):
        torch.manual_seed(0)
        model = Model(fused)
        if sharded:
            fully_shard(model.body, mesh=mesh)
            fully_shard(model, mesh=mesh)
        return model

    torch.manual_seed(100 + rank)
    tokens = torch.randint(0, 50, (2, 8))
    whole = made(False, False)
    wanted = whole(tokens, tokens)
    wanted.backward()
    distributed.all_reduce(whole.head.weight.grad)
    found = {}
    inside = made(True, True)
    loss = inside(tokens, tokens)
    loss.backward()
    found["inside"] = float((loss - wanted).detach()), float((inside.head.weight.grad.full_tensor() - whole.head.weight.grad / 2).abs().max())
    outside = made(True, True)
    hidden = outside.body(torch.nn.functional.embedding(tokens, whole.embedding.weight.detach()))
    found["refused"] = [
        ranks.error_of(fusedlogp.linear_cross_entropy, hidden, outside.head.weight, tokens, shift=True),
        ranks.error_of(fusedlogp.linear_logp, hidden, outside.head.weight, tokens, shift=True),
    ]
    weight = outside.head.weight.full_tensor(grad_placements=[Partial("avg")])
    loss = fusedlogp.linear_cross_entropy(hidden, weight, tokens, shift=True)
    loss.backward()
    found["full"] = float((loss - wanted).detach()), float((outside.head.weight.grad.full_tensor() - whole.head.weight.grad / 2).abs().max())
    return found


def one_is_gone():
    rank = distributed.get_rank()
    call()
    if rank == 1:
        os._exit(1)
    begun = time.monotonic()
    error = ranks.error_of(call)
    return error, time.monotonic() - begun


def one_is_gone_before_the_backward():
    torch.manual_seed(0)
    hidden = torch.randn(5, 8, requires_grad=True)
    loss = fusedlogp.linear_cross_entropy(hidden, torch.randn(6, 8), torch.arange(5), process_group=distributed.group.WORLD)
    if distributed.get_rank() == 1:
        os._exit(1)
    begun = time.monotonic()
    error = ranks.error_of(loss.backward)
    return error, time.monotonic() - begun


def odds_and_ends():
    """Of two ranks, by name."""
    group, rank = distributed.group.WORLD, distributed.get_rank()
    found = {}
    torch.manual_seed(3)
    hidden, weight, target = torch.randn(11, 16), torch.randn(40, 16), torch.randint(0, 37, (11,))
    part = lambda value: value[rank * 20 : rank * 20 + 20].clone().requires_grad_()
    # 40 rows of weight of which 37 are entries; 40 of which 20 are: rank 1 has padding alone.
    for size in (37, 20):
        x, w = hidden.clone().requires_grad_(), part(weight)
        shards = fusedlogp.VocabParallel(group, vocab_size=size, multiprocessors_for_exchange=4)
        logp = fusedlogp.linear_logp(x, w, target.clamp(max=size - 1), process_group=shards)
        logp.sum().backward()
        found[f"padded {size}"] = logp.detach(), x.grad, w.grad
    x, w = hidden.bfloat16().requires_grad_(), part(weight.bfloat16())
    fusedlogp.linear_logp(x, w, target, process_group=fusedlogp.VocabParallel(group, reduce_grad_input=False)).sum().backward()
    found["parts"] = x.grad
    frozen = fusedlogp.linear_cross_entropy(hidden, part(weight), target, process_group=group)
    frozen.backward()
    found["no rows"] = fusedlogp.linear_logp(hidden[:0], part(weight), target[:0], process_group=group)
    alone = distributed.new_group([0])
    found["not in it"] = ranks.error_of(call, group=alone) if rank == 1 else call(group=alone)
    found["exchange"] = [ranks.error_of(fusedlogp.VocabParallel, group, multiprocessors_for_exchange=value) for value in (-1, 1.5, True)]
    found["too large"] = ranks.error_of(call, group=fusedlogp.VocabParallel(group, vocab_size=13))
    found["bad target"] = ranks.error_of(fusedlogp.linear_logp, hidden, part(weight), torch.full((11,), 40), process_group=group)
    found["no entries"] = ranks.error_of(call, entries=0)
    few = {"weight": torch.ones(39), "process_group": group}
    found["class weights"] = ranks.error_of(fusedlogp.linear_cross_entropy, hidden, part(weight), target, **few)
    warm = {"temperature": torch.ones(11, requires_grad=True), "process_group": group}
    found["temperature"] = ranks.error_of(fusedlogp.linear_cross_entropy, hidden, part(weight), target, **warm)
    found["twice"] = [ranks.error_of(twice, function, hidden, part(weight), target, group) for function in (a_logp, a_loss, a_main_grad)]
    found["func"] = [ranks.error_of(torch.func.grad(lambda x: f(x, weight[:20], target, group)), hidden) for f in (a_logp, a_loss)]  # noqa: B023
    found["exact"] = ranks.error_of(call, dtype=torch.bfloat16, exact=True)
    found["budget"] = ranks.error_of(little, hidden, part(weight), target, group)
    found["megatron"] = megatron(hidden, part(weight).detach(), target, group)
    return found


def a_logp(x, w, target, group):
    return fusedlogp.linear_logp(x, w, target, process_group=group).sum()


def a_loss(x, w, target, group):
    return fusedlogp.linear_cross_entropy(x, w, target, process_group=group)


def a_main_grad(x, w, target, group):
    return fusedlogp.linear_cross_entropy(x, w, target, process_group=group, accumulate_into=torch.zeros_like(w))


def little(hidden, weight, target, group):
    fusedlogp.linear_cross_entropy(hidden, weight, target, process_group=group, memory_budget=1).backward()


def megatron(hidden, weight, target, group):
    """With a hook as that of Megatron's DistributedDataParallel with overlap_grad_reduce."""
    weight = torch.nn.Parameter(weight)
    weight.main_grad, weight.grad_added_to_main_grad, weight.zero_out_wgrad = torch.zeros_like(weight), False, True
    seen = []

    def hook(*_):
        seen.append((weight.grad is not None and not weight.grad.any(), weight.grad_added_to_main_grad))
        weight.grad = None

    node = weight.expand_as(weight).grad_fn.next_functions[0][0]
    node.register_hook(hook)
    shards = fusedlogp.VocabParallel(group, vocab_size=37)
    fusedlogp.linear_cross_entropy(hidden, weight, target, process_group=shards, accumulate_into=weight.main_grad).backward()
    again = weight.detach().clone().requires_grad_()
    fusedlogp.linear_cross_entropy(hidden, again, target, process_group=shards).backward()
    return seen, float((again.grad - weight.main_grad).abs().max())


def twice(function, hidden, weight, target, group):
    """A penalty on the gradient, beside the loss itself."""
    x = hidden.clone().requires_grad_()
    loss = function(x, weight, target, group)
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    (loss + gradient.square().sum()).backward()


def dtensors():
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh

    rank, mesh = distributed.get_rank(), init_device_mesh("cpu", (2,))
    torch.manual_seed(5)
    hidden, weight, bias, target = torch.randn(9, 16), torch.randn(31, 16), torch.randn(31), torch.randint(0, 31, (9,))
    found = {}

    def of(value, placement):
        return torch.nn.Parameter(distribute_tensor(value, mesh, [placement]))

    x, w, b = hidden.clone().requires_grad_(), of(weight, Shard(0)), of(bias, Shard(0))
    logp = fusedlogp.linear_logp(x, w, target, linear_bias=b)
    logp.sum().backward()
    assert isinstance(w.grad, DTensor) and w.grad.placements == (Shard(0),), w.grad
    found["by rows"] = logp.detach(), x.grad, w.grad.full_tensor(), b.grad.full_tensor()
    x, w = DTensor.from_local(hidden.clone(), mesh, [Replicate()]).requires_grad_(), of(weight.t().contiguous(), Shard(1))
    logp = fusedlogp.linear_logp(x, w, DTensor.from_local(target, mesh, [Replicate()]), weight_layout="dv", process_group=mesh.get_group())
    logp.sum().backward()
    found["by columns"] = logp.detach(), x.grad.to_local(), w.grad.full_tensor().t(), None
    copies = lambda value: DTensor.from_local(value, mesh, [Replicate()])
    x, w, scale = hidden.clone().requires_grad_(), of(weight, Shard(0)), torch.linspace(0.5, 1.5, 9)
    main_grad = distribute_tensor(torch.zeros(31, 16), mesh, [Shard(0)])
    named = {"token_weight": copies(scale), "temperature": copies(2 * scale), "weight": copies(torch.linspace(1, 2, 31)), "accumulate_into": main_grad}
    loss = fusedlogp.linear_cross_entropy(x, w, target, **named)
    loss.backward()
    found["all of them"] = loss.detach(), x.grad, main_grad.full_tensor()
    policy = fusedlogp.policy_loss(hidden, w.detach(), target, {"advantages": copies(scale), "old_logp": copies(-3 * scale)}, loss="ppo")
    found["policy"] = policy.detach()
    wrong = lambda *values, **named: ranks.error_of(fusedlogp.linear_logp, *values, **named)
    found["temperature in parts"] = wrong(hidden, of(weight, Shard(0)), target, temperature=distribute_tensor(scale, mesh, [Shard(0)]))
    found["a buffer of another kind"] = ranks.error_of(fusedlogp.linear_cross_entropy, hidden, of(weight, Shard(0)), target, accumulate_into=copies(weight))
    found["logits"] = ranks.error_of(fusedlogp.logits_logp, copies(hidden), target)
    found["x"] = ranks.error_of(fusedlogp.weighted_sum, copies(hidden), weight[0])
    found["replicated"] = wrong(hidden, of(weight, Replicate()), target)
    found["by hidden"] = wrong(hidden, of(weight, Shard(1)), target)
    found["rows of input"] = wrong(DTensor.from_local(hidden, mesh, [Shard(0)]), of(weight, Shard(0)), target)
    found["bias alone"] = wrong(hidden, weight, target, linear_bias=of(bias, Shard(0)))
    square = init_device_mesh("cpu", (2, 1))
    found["two dimensions"] = wrong(hidden, distribute_tensor(weight, square, [Shard(0), Replicate()]), target)
    alone = distributed.new_group([rank], use_local_synchronization=True)
    found["another group"] = wrong(hidden, of(weight, Shard(0)), target, process_group=alone)
    return found


class OfRanks(Case):
    def check_ranks(self, results):
        for result in results:
            self.assertNotIsInstance(result, str, result)
            self.assertIsNotNone(result, "a rank is gone")

    def check_gradient(self, name, got, wanted, dtype):
        """As one, relative to its size: derivatives and results are rounded to the inputs' dtype on both sides, half a unit in the last place each, and a
        probability is off relatively by what lse is; up to four times that, where terms cancel."""
        unit = 0.0 if dtype == torch.float32 else torch.finfo(dtype).eps / 2
        off = float((got.double() - wanted.double()).norm() / wanted.double().norm())
        self.assertLessEqual(off, 4 * (2 * unit + MERGED), name)

    def check_values(self, name, kind, problem, whole, parts):
        """parts: of each rank (values, gradients)."""
        values, (grad_hidden, grad_weight, grad_bias) = whole
        dtype = problem.hidden.dtype
        for rank, (its_values, its_gradients) in enumerate(parts):
            for got, first, wanted in zip(its_values, parts[0][0], values):
                self.assertTrue(torch.equal(got, first), f"{name}: rank {rank}'s values are not rank 0's")
                if got.dtype == torch.int32:
                    self.assertTrue(torch.equal(got, wanted), name)
                else:
                    # A loss is steeper than its logp: by a ratio of up to some 16, or in a sum by its 18 rows.
                    self.assert_close(got, wanted, MERGED * (1 if kind == "rows" else 16), MERGED)
            self.assertTrue(torch.equal(its_gradients[0], parts[0][1][0]), f"{name}: rank {rank}'s gradient of input is not rank 0's")
        dim = 1 if problem.options.get("weight_layout") == "dv" else 0
        self.check_gradient(f"{name}: input", parts[0][1][0], grad_hidden, dtype)
        self.check_gradient(f"{name}: weight", torch.cat([part[1][1] for part in parts], dim), grad_weight, dtype)
        if grad_bias is not None:
            self.check_gradient(f"{name}: bias", torch.cat([part[1][2] for part in parts]), grad_bias, dtype)

    def check_cases(self, name, chosen, results):
        """results: of each rank, of each case, what several calls gave."""
        self.check_ranks(results)
        for i, (number, kind, dtype, options, bias) in enumerate(chosen):
            with self.subTest(cuts=name, kind=kind, dtype=dtype, options=options, bias=bias):
                problem = Problem(number, dtype, options, bias)
                self.check_values(name, kind, problem, getattr(problem, kind)(), [result[i][0] for result in results])
                for result in results:
                    first = result[i][0]
                    for again in result[i][1:]:
                        for a, b in zip(first[0] + first[1], again[0] + again[1]):
                            self.assertTrue(a is b is None or torch.equal(a, b), "another call has other bits")

    def check_disagreements(self, results):
        self.check_ranks(results)
        for rank, (errors, logp) in enumerate(results):
            self.assertEqual(("ValueError", "process_group: on rank 1 of it rows is 4, wanted 5 as on rank 0"), errors[0], rank)
            self.assertEqual("ValueError" if rank == 1 else "RuntimeError", errors[1][0], errors[1])
            self.assertAlmostEqual(-5 * math.log(12), logp, places=4)


@unittest.skipUnless(distributed.is_available() and distributed.is_gloo_available(), "torch has no gloo")
@unittest.skipUnless(DEVICE == "cpu", "ranks of the CPU")
@unittest.skipUnless(EVERYTHING or os.environ.get("FUSEDLOGP_BINDING") != "ctypes", "run with the operators from C")
class Shards(OfRanks):
    def check_cuts(self, name):
        cuts, chosen = CUTS[name], some(cases(), 2)
        self.check_cases(name, chosen, ranks.run(len(cuts) - 1, of_a_rank, cuts, chosen, 2))

    def test_one_rank(self):
        self.check_cuts("1")

    def test_two_ranks(self):
        self.check_cuts("2")

    def test_four_ranks(self):
        self.check_cuts("4")

    def test_eight_ranks(self):
        self.check_cuts("8")

    def test_uneven_shards(self):
        self.check_cuts("uneven")

    def test_empty_shards(self):
        self.check_cuts("empty")

    def test_ranks_that_disagree_all_say_so(self):
        results = ranks.run(3, one_disagrees)
        self.check_ranks(results)
        for rank, (errors, logp) in enumerate(results):
            for (changed, wanted), error in zip(DISAGREEMENTS, errors):
                self.assertIsNotNone(error, f"rank {rank}, {changed}")
                self.assertEqual("ValueError", error[0], error)
                self.assertIn(wanted, error[1])
            self.assertEqual(len(DISAGREEMENTS) + len(REFUSALS), len(errors))
            for (_, refused, said), error in zip(REFUSALS, errors[len(DISAGREEMENTS) :]):
                of_others = ("RuntimeError", "process_group: rank 1 of it refused its own arguments, and says why")
                self.assertEqual(said if rank == 1 else of_others, error, f"rank {rank}, {refused}")
            self.assertTrue(torch.equal(logp, results[0][1]))

    def test_ranks_do_not_wait_for_one_that_is_gone(self):
        for function in (one_is_gone, one_is_gone_before_the_backward):
            with self.subTest(function=function.__name__):
                results = ranks.run(3, function, timeout=20)
                self.assertIsNone(results[1])
                self.check_ranks([results[0], results[2]])
                for error, seconds in (results[0], results[2]):
                    self.assertIsNotNone(error)
                    self.assertLess(seconds, 20 + 15)  # the time-out, and a loaded machine

    def test_padding_parts_and_refusals(self):
        results = ranks.run(2, odds_and_ends)
        self.check_ranks(results)
        torch.manual_seed(3)
        hidden, weight, target = torch.randn(11, 16), torch.randn(40, 16), torch.randint(0, 37, (11,))
        bounds = Bounds(hidden, weight, 4.0)
        for size in (37, 20):
            x, w = hidden.clone().requires_grad_(), weight[:size].clone().requires_grad_()
            logp = fusedlogp.linear_logp(x, w, target.clamp(max=size - 1))
            logp.sum().backward()
            wanted = torch.cat([w.grad, torch.zeros(40 - size, 16)])
            for got_logp, got_hidden, _ in (result[f"padded {size}"] for result in results):
                self.assert_close(got_logp, logp, 2 * bounds.value, 4e-6)
                self.assert_close(got_hidden, x.grad, 2 * bounds.hidden)
            got = torch.cat([result[f"padded {size}"][2] for result in results])
            self.assert_close(got, wanted, 2 * bounds.weight)
            self.assertEqual(0, got[size:].count_nonzero())
        x = hidden.bfloat16().requires_grad_()
        fusedlogp.linear_logp(x, weight.bfloat16(), target).sum().backward()
        parts = [result["parts"] for result in results]
        self.assertFalse(torch.equal(*parts))
        # Each part is rounded to bf16, half a unit in the last place of it, and so is the whole.
        largest = max(float(value.abs().max()) for value in (*parts, x.grad))
        self.assert_close(parts[0].float() + parts[1].float(), x.grad, Bounds(x, weight.bfloat16(), 4.0).hidden + 3 * largest * 2.0**-9)
        for rank, result in enumerate(results):
            self.assertEqual((0,), tuple(result["no rows"].shape))
            for kind, got, error in zip(("ValueError", "TypeError", "TypeError"), ("-1", "float", "bool"), result["exchange"]):
                self.assertEqual((kind, f"multiprocessors_for_exchange: got {got}, wanted an int of 0 to 2147483647 or None"), error)
            self.assertEqual(("ValueError", "vocab_size: got 13, wanted at most the 12 entries of all ranks"), result["too large"])
            self.assertEqual("IndexError", result["bad target"][0], result["bad target"])
            self.assertIn("linear_weight's entries on all ranks: got 0", result["no entries"][1])
            self.assertEqual(("ValueError", "weight's shape: got (39,), wanted (40,)"), result["class weights"])
            self.assertEqual("NotImplementedError", result["temperature"][0])
            for kind, text in result["twice"]:
                self.assertEqual("NotImplementedError", kind)
                self.assertIn("a second time", text)
            self.assertEqual([("NotImplementedError", "process_group: torch.func's transforms of a call over ranks are not implemented")] * 2, result["func"])
            self.assertIn("exact: got True with torch.bfloat16", result["exact"][1])
            self.assertEqual("ValueError", result["budget"][0])
            self.assertIn("memory_budget: got 1", result["budget"][1])
            self.assertEqual([(True, True)], result["megatron"][0])
            self.assertLessEqual(result["megatron"][1], 1e-6)
        self.assertEqual((5,), tuple(results[0]["not in it"].shape))
        self.assertIn("a group that this process is not in", results[1]["not in it"][1])

    def test_dtensors_that_are_sharded_by_vocabulary(self):
        results = ranks.run(2, dtensors)
        self.check_ranks(results)
        torch.manual_seed(5)
        hidden, weight, bias, target = torch.randn(9, 16), torch.randn(31, 16), torch.randn(31), torch.randint(0, 31, (9,))
        bounds = Bounds(hidden, weight, 4.0)
        for name, offset in (("by rows", bias), ("by columns", None)):
            leaves = [value if value is None else value.clone().requires_grad_() for value in (hidden, weight, offset)]
            logp = fusedlogp.linear_logp(leaves[0], leaves[1], target, linear_bias=leaves[2])
            logp.sum().backward()
            for result in results:
                got = result[name]
                self.assert_close(got[0], logp, 2 * bounds.value + 1e-6, 4e-6)
                for leaf, gradient, bound in zip(leaves, got[1:], (bounds.hidden, bounds.weight, bounds.bias)):
                    if leaf is not None:
                        self.assert_close(gradient, leaf.grad, 2 * bound)
        scale, classes, main_grad = torch.linspace(0.5, 1.5, 9), torch.linspace(1, 2, 31), torch.zeros(31, 16)
        leaf = hidden.clone().requires_grad_()
        loss = fusedlogp.linear_cross_entropy(
            leaf, weight.clone().requires_grad_(), target, token_weight=scale, temperature=2 * scale, weight=classes, accumulate_into=main_grad
        )
        loss.backward()
        policy = fusedlogp.policy_loss(hidden, weight, target, {"advantages": scale, "old_logp": -3 * scale}, loss="ppo")
        for result in results:
            for got, expected in zip((*result["all of them"], result["policy"]), (loss, leaf.grad, main_grad, policy)):
                self.assert_close(got, expected, 2 * bounds.value + 1e-6, 4e-6)
        wanted = {
            "temperature in parts": "temperature.redistribute(placements=[Replicate()])", "a buffer of another kind": "accumulate_into's placements",
            "replicated": "wanted (Shard(dim=0),)", "by hidden": "linear_weight.redistribute(placements=[Shard(dim=0)])",
            "rows of input": "input.redistribute(placements=[Replicate()])", "bias alone": "linear_bias's device mesh",
            "two dimensions": "one, whose ranks have the shards of the vocabulary", "another group": "another group than that of linear_weight's device mesh",
        }  # fmt: skip
        for result in results:
            for name in ("logits", "x"):
                self.assertEqual("TypeError", result[name][0], name)
                self.assertIn(f"{name}: got a DTensor with placements (Replicate(),), wanted a torch.Tensor: {name}.to_local()", result[name][1])
            for name, text in wanted.items():
                self.assertEqual("ValueError", result[name][0], name)
                self.assertIn(text, result[name][1])

    def check_other_rows(self, results):
        self.check_ranks(results)
        for result in results:
            for name, what in (("a target", "targets"), ("the order of targets", "targets"), ("hidden states",) * 2, ("not a number", "hidden states")):
                wanted = f"process_group: on rank 1 of it {what} are others than on rank 0, wanted the same rows on every rank"
                self.assertEqual(("ValueError", wanted), result.pop(name))
            self.assertEqual({None}, set(result.values()), result)

    def test_ranks_with_other_rows_all_say_so(self):
        self.check_other_rows(ranks.run(2, other_rows, "cpu"))

    def test_a_head_that_fsdp_shards_is_no_shard_of_the_vocabulary(self):
        results = ranks.run(2, fully_sharded)
        self.check_ranks(results)
        for result in results:
            for kind, text in result["refused"]:
                self.assertEqual("ValueError", kind)
                self.assertIn("targets are others than on rank 0", text)
                self.assertIn("If FSDP shards it, call a module that FSDP has wrapped", text)
            for name in ("inside", "full"):
                for off in result[name]:
                    self.assertLessEqual(abs(off), 1e-6, name)

    def test_what_ranks_did_not_agree_on_is_not_kept(self):
        self.check_disagreements(ranks.run(2, disagree_and_agree, "cpu"))

    def test_a_group_that_is_none_is_refused(self):
        x, w, t = torch.randn(2, 8), torch.randn(5, 8), torch.tensor([0, 1])
        with self.assertRaisesRegex(TypeError, "process_group: got str, wanted a torch.distributed.ProcessGroup or a fusedlogp.VocabParallel"):
            fusedlogp.linear_logp(x, w, t, process_group="tp")


# What runs over nccl, beside one process without a GPU.
ON_GPUS = (
    ("rows", torch.bfloat16, {}), ("rows", torch.float32, {"softcap": 3.0, "temperature": 0.6}), ("loss", torch.bfloat16, {}),
    ("loss", torch.float16, {"accumulate_into": "ones", "label_smoothing": 0.1}), ("policy", torch.bfloat16, {"loss": "grpo_kl"}),
    ("policy", torch.float32, {"loss": OWN, "parameters": {"scale": 0.1}, "outputs": ("entropy", "lse")}),
)  # fmt: skip


@unittest.skipUnless(distributed.is_available() and distributed.is_nccl_available(), "torch has no nccl")
@unittest.skipUnless(torch.cuda.device_count() >= 2, f"wanted two GPUs, there are {torch.cuda.device_count()}")
class OverNccl(OfRanks):
    def check_cuts(self, *names):
        chosen = [(number, *case, number % 2 == 0) for number, case in enumerate(ON_GPUS)]
        for name in names:
            cuts = CUTS[name]
            if len(cuts) - 1 <= torch.cuda.device_count():
                self.check_cases(name, chosen, ranks.run(len(cuts) - 1, of_a_gpu, cuts, chosen, backend="nccl"))

    def test_values_and_bits(self):
        self.check_cuts("2", "4", "8")

    @unittest.skipUnless(torch.cuda.device_count() >= 4, f"wanted four GPUs, there are {torch.cuda.device_count()}")
    def test_uneven_and_empty_shards(self):
        self.check_cuts("uneven", "empty")

    def test_ranks_that_disagree_all_say_so(self):
        self.check_disagreements(ranks.run(2, disagree_and_agree, "cuda", backend="nccl"))

    def test_ranks_with_other_rows_all_say_so(self):
        self.check_other_rows(ranks.run(2, other_rows, "cuda", backend="nccl"))


if __name__ == "__main__":
    unittest.main()

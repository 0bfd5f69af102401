"""A vocabulary sharded over the ranks of a process group: what the ranks agree on, and the rows' statistics that they exchange and merge."""

from __future__ import annotations

import math
import struct
import weakref
import zlib
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

import torch
import torch.distributed as distributed
from torch import Tensor
from torch._compile import _disable_dynamo  # torch.compiler.disable, which loads torch._dynamo at the first call instead of here

from . import _arguments as arguments
from . import _operators

_ops = torch.ops.fusedlogp


def _check_group(name: str, group: Any, wanted: str) -> None:
    if group is distributed.GroupMember.NON_GROUP_MEMBER:
        raise arguments.wrong(ValueError, name, "a group that this process is not in", "one that it is in")
    if not isinstance(group, distributed.ProcessGroup):
        raise arguments.wrong(TypeError, name, arguments.type_name(group), wanted)


def _shards_of(process_group: Any) -> Optional[VocabParallel]:
    if process_group is None or isinstance(process_group, VocabParallel):
        return process_group
    _check_group("process_group", process_group, "a torch.distributed.ProcessGroup or a fusedlogp.VocabParallel")
    return VocabParallel(process_group)


class VocabParallel:
    """How a weight is sharded over its vocabulary entries; `process_group=` takes this, or a group alone for the defaults.

    Args:
        group: a torch.distributed process group; the entries of rank r follow those of rank r - 1.
        vocab_size: V of all shards together, without padding at the end; None: the sum of the shards' entries. Rows of the shards beyond it do not count,
            and their gradients are 0.
        reduce_grad_input: True: the gradient of input is summed over the ranks. False: each rank gets its part of the sum, rounded to input's dtype, for
            callers that reduce and scatter it themselves (sequence parallelism).
        multiprocessors_for_exchange: when nccl sums the gradient of input over the ranks. None: after the gradient of linear_weight. A number: during the
            last part of that gradient, which leaves so many of the GPU's multiprocessors to nccl (0: none, and nccl waits until some are free). The results'
            bits do not depend on it, and the ranks may use different numbers.

    Raises:
        TypeError, ValueError: an argument is not as above.
    """

    def __init__(self, group: Any, *, vocab_size: Optional[int] = None, reduce_grad_input: bool = True, multiprocessors_for_exchange: Optional[int] = None):
        _check_group("group", group, "a torch.distributed.ProcessGroup")
        if vocab_size is not None:
            vocab_size = arguments.check_count("vocab_size", vocab_size, 1, 2**31 - 1, " or None")
        if multiprocessors_for_exchange is not None:
            multiprocessors_for_exchange = arguments.check_count("multiprocessors_for_exchange", multiprocessors_for_exchange, 0, 2**31 - 1, " or None")
        self.group, self.vocab_size = group, vocab_size
        self.reduce_grad_input = arguments.check_flag("reduce_grad_input", reduce_grad_input)
        self.multiprocessors_for_exchange = multiprocessors_for_exchange

    def __repr__(self) -> str:
        shown = [f"group of {self.group.size()}"]
        if self.vocab_size is not None:
            shown.append(f"vocab_size={self.vocab_size}")
        if not self.reduce_grad_input:
            shown.append("reduce_grad_input=False")
        if self.multiprocessors_for_exchange is not None:
            shown.append(f"multiprocessors_for_exchange={self.multiprocessors_for_exchange}")
        return f"VocabParallel({', '.join(shown)})"


class Call(NamedTuple):
    """The arguments that a sharded call begins with, as local tensors, also where the caller's are DTensors."""

    shards: VocabParallel
    input: Any
    linear_weight: Any
    target: Any
    linear_bias: Any
    by_mesh: bool = False  # the weight is a DTensor, whose mesh alone names the group


# ---- DTensors


def _local(name: str, value: Any, mesh: Any, wanted: Any) -> Any:
    if not arguments.is_dtensor(value):
        return value
    if mesh is None or value.device_mesh != mesh:
        raise arguments.wrong(ValueError, f"{name}'s device mesh", value.device_mesh, "linear_weight's, as a DTensor")
    if tuple(value.placements) != (wanted,):
        raise arguments.wrong(ValueError, f"{name}'s placements", tuple(value.placements), f"({wanted!r},): {name}.redistribute(placements=[{wanted!r}])")
    return value.to_local()


def call_of(process_group: Any, input: Any, linear_weight: Any, target: Any, linear_bias: Any, weight_layout: Any) -> Optional[Call]:
    """The sharded call that these arguments make; None: the call is not sharded."""
    shards = _shards_of(process_group)
    if not any(map(arguments.is_dtensor, (input, linear_weight, target, linear_bias))):
        return None if shards is None else Call(shards, input, linear_weight, target, linear_bias)
    from torch.distributed.tensor import Replicate, Shard

    mesh = linear_weight.device_mesh if arguments.is_dtensor(linear_weight) else None
    if mesh is not None:
        if mesh.ndim != 1:
            raise arguments.wrong(ValueError, "linear_weight's device mesh", f"{mesh.ndim} dimensions", "one, whose ranks have the shards of the vocabulary")
        group = mesh.get_group()
        if shards is not None and shards.group != group:
            raise arguments.wrong(ValueError, "process_group", "another group than that of linear_weight's device mesh", "that one, or None")
        shards = shards or VocabParallel(group)
    by_vocab = Shard(1 if weight_layout == "dv" else 0)
    return Call(
        shards,  # type: ignore[arg-type]
        _local("input", input, mesh, Replicate()),
        _local("linear_weight", linear_weight, mesh, by_vocab),
        _local("target", target, mesh, Replicate()),
        _local("linear_bias", linear_bias, mesh, Shard(0)),
        process_group is None,
    )


# ---- what the ranks agree on


class _Header(NamedTuple):
    """What each rank tells the others before anything is exchanged whose size depends on the call. All but entries must be the same on all ranks."""

    refused: int = 1  # its own arguments raised an error
    entries: int = 0
    rows: int = 0
    hidden: int = 0
    dtype: int = 0
    target_dtype: int = 0
    bias_dtype: int = 0
    outputs: int = 0
    grad_input: int = 0
    vocab_size: int = 0
    # Of options, numbers as the bits of a double, and of all others a digest.
    temperature: int = 0
    softcap: int = 0
    label_smoothing: int = 0
    z_loss: int = 0
    row_temperature: int = 0
    ignore_index: int = 0
    exact: int = 0
    reduce_grad_input: int = 0
    reduction: int = 0
    token_weight: int = 0
    weight: int = 0
    loss: int = 0
    parameters: int = 0
    loss_outputs: int = 0


_NAMES = {
    "rows": "rows", "hidden": "hidden size", "dtype": "input's dtype", "target_dtype": "target's dtype", "bias_dtype": "linear_bias' dtype",
    "outputs": "outputs", "grad_input": "requires_grad of input", "vocab_size": "vocab_size",
}  # fmt: skip
_NUMBERS = ("temperature", "softcap", "label_smoothing", "z_loss")
_DIGESTS = {
    "row_temperature": "whether temperature is a tensor", "ignore_index": "ignore_index", "exact": "exact", "reduce_grad_input": "reduce_grad_input",
    "reduction": "reduction", "token_weight": "whether there is a token_weight", "weight": "weight's dtype or shape", "loss": "loss",
    "parameters": "parameters", "loss_outputs": "outputs",
}  # fmt: skip
_DTYPES: tuple = (None, torch.bfloat16, torch.float16, torch.float32, torch.int32, torch.int64)
# The headers with which a group's ranks have agreed, keyed by this rank's own header.
_known: "weakref.WeakKeyDictionary[Any, dict[_Header, list[_Header]]]" = weakref.WeakKeyDictionary()


# How many elements of input the ranks compare, and by how much these may differ, relative to the largest: kernels that sum in another order round otherwise.
_SAMPLES, _TOLERANCE = 16, 2.0**-4


def _glance(rows: arguments.Rows, ignore_index: Optional[int]) -> list[int]:
    """What the ranks compare of their targets and hidden states: a digest of all targets, and the bits of some elements of the hidden states, 0 in ignored
    rows. On a GPU this waits for it."""
    hidden, target = rows.hidden.detach(), rows.target.to(torch.int64)
    count, columns = hidden.shape
    if count == 0:
        return [0] * (1 + _SAMPLES)
    # Odd factors, modulo 2^64: another target in one row, or other places of the same targets, give another sum.
    places = 2 * torch.arange(count, device=target.device) + 1
    digest = ((target * 2 + 1) * places * 0x1E3779B97F4A7C15).sum()
    at = [(2 * i + 1) * count * columns // (2 * _SAMPLES) for i in range(_SAMPLES)]
    row, column = torch.tensor([[i // columns for i in at], [i % columns for i in at]]).to(hidden.device)
    samples = hidden[row, column].to(torch.float64)
    if ignore_index is not None:
        samples = torch.where(target[row] == ignore_index, 0.0, samples)
    return torch.cat([digest.reshape(1), samples.view(torch.int64)]).tolist()


def _differ(a: float, b: float, scale: float) -> bool:
    return not (a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= _TOLERANCE * scale)


def _check_glances(glances: list[list[int]], by_mesh: bool) -> None:
    given = [(rank, glance) for rank, glance in enumerate(glances) if any(glance)]
    for rank, glance in given:
        first, wanted = given[0]
        samples = [struct.unpack(f"{_SAMPLES}d", struct.pack(f"{_SAMPLES}q", *each[1:])) for each in (glance, wanted)]
        scale = max((abs(value) for each in samples for value in each if math.isfinite(value)), default=0.0)
        what = "targets" if glance[0] != wanted[0] else "hidden states" if any(_differ(a, b, scale) for a, b in zip(*samples)) else None
        if what is not None:
            mesh = (
                "; linear_weight is a DTensor, whose mesh was taken for the ranks that share a vocabulary. If FSDP shards it, call a module that FSDP has "
                "wrapped, or pass linear_weight.full_tensor(grad_placements=[Partial('avg')])"
            )
            raise ValueError(
                f"process_group: on rank {rank} of it {what} are others than on rank {first}, wanted the same rows on every rank{mesh if by_mesh else ''}"
            )


def _said(name: str, value: int) -> str:
    if name in _NUMBERS:
        return repr(struct.unpack("d", struct.pack("q", value))[0])
    return str(_DTYPES[value]) if name.endswith("dtype") else str(value)


def _told(name: str, value: Any) -> int:
    """An option as a header has it."""
    if name in _NUMBERS:
        return struct.unpack("q", struct.pack("d", float(value) + 0.0))[0]  # 0 has one form
    return zlib.crc32(repr(value).encode())


def _gather(output: Tensor, own: Tensor, group: Any) -> None:
    """Gathers own of all ranks in output, concatenated in the order of ranks."""
    # The first is its name since torch 2.13.
    gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    gather(output, own, group=group)


def _is_on_gpu(group: Any) -> bool:
    return "nccl" in distributed.get_backend(group) and "gloo" not in distributed.get_backend(group)


def _keeps_headers(group: Any) -> bool:
    """Whether ranks that have agreed once do not exchange headers again, because reading the headers would wait for the GPU."""
    return _is_on_gpu(group)


def _exchange(group: Any, own: _Header, glance: list[int]) -> tuple[list[_Header], list[list[int]]]:
    """Every rank's header and glance in the order of ranks."""
    device = torch.device("cuda", torch.cuda.current_device()) if _is_on_gpu(group) else torch.device("cpu")
    given = [*own, *glance]
    everyones = torch.empty(distributed.get_world_size(group) * len(given), dtype=torch.int64, device=device)
    _gather(everyones, torch.tensor(given, dtype=torch.int64, device=device), group)
    lines = everyones.view(-1, len(given)).tolist()
    return [_Header(*line[: len(own)]) for line in lines], [line[len(own) :] for line in lines]


def _agree_on(group: Any, own: _Header, error: Optional[Exception], look: Callable[[], list[int]], by_mesh: bool, waits: bool) -> list[_Header]:
    """Every rank's header. Raises error or, on ranks that have none, what another rank's header says. Headers that do not agree are not kept: with kept ones,
    this rank would not wait for a rank that exchanges them again. look: gives this rank's glance. waits: looking waits for a GPU, which only the first call
    with a header does."""
    known = _known.setdefault(group, {})
    if _keeps_headers(group) and own in known:
        return known[own]
    glance = [0] * (1 + _SAMPLES) if error is not None or (waits and own in known) else look()
    headers, glances = _exchange(group, own, glance)
    if error is not None:
        raise error
    _check_agreement(headers)
    _check_glances(glances, by_mesh)
    if _keeps_headers(group) or waits:
        known[own] = headers
    return headers


def _check_agreement(headers: list[_Header]) -> None:
    for rank, header in enumerate(headers):
        if header.refused:
            raise RuntimeError(f"process_group: rank {rank} of it refused its own arguments, and says why")
    for rank, header in enumerate(headers):
        for name, what in {**_NAMES, **{name: name for name in _NUMBERS}}.items():
            got, wanted = getattr(header, name), getattr(headers[0], name)
            if got != wanted:
                raise ValueError(f"process_group: on rank {rank} of it {what} is {_said(name, got)}, wanted {_said(name, wanted)} as on rank 0")
        for name, what in _DIGESTS.items():
            if getattr(header, name) != getattr(headers[0], name):
                raise ValueError(f"process_group: on rank {rank} of it {what} is another than on rank 0, wanted the same on every rank")


class Place(NamedTuple):
    """A rank's shard: the id of its first entry, how many of its entries count, and how many entries all shards have."""

    first: int
    count: int
    total: int


def _place(headers: list[_Header], rank: int, vocab_size: Optional[int]) -> Place:
    entries = [header.entries for header in headers]
    first, everything = sum(entries[:rank]), sum(entries)
    if everything == 0:
        raise arguments.wrong(ValueError, "linear_weight's entries on all ranks", 0, "at least 1")
    total = everything if vocab_size is None else vocab_size
    if total > everything:
        raise arguments.wrong(ValueError, "vocab_size", total, f"at most the {everything} entries of all ranks")
    # A shard of padding alone begins at the vocabulary's end.
    return Place(min(first, total), max(0, min(total - first, entries[rank])), total)


# ---- the statistics


class Statistics(NamedTuple):
    logp: Tensor
    lse: Tensor
    entropy: Tensor
    argmax: Tensor


def _gathered(partials: Tensor, group: Any) -> Tensor:
    everyones = partials.new_empty((distributed.get_world_size(group) * partials.shape[0], partials.shape[1]))
    if partials.numel() > 0:
        _gather(everyones, partials, group)
    return everyones


class _Beside(NamedTuple):
    """For summing the gradient of input while that of the weight is computed: the sum runs on the stream, after the event, which the operator records."""

    event: Any
    stream: Any


# The stream and the event of each device, made once: torch's allocator keeps the memory of each stream apart, and a new event has no handle before it is
# recorded.
_beside: dict[int, _Beside] = {}


def _exchange_beside(shards: VocabParallel, hidden: Tensor, wanted: bool) -> Optional[_Beside]:
    if shards.multiprocessors_for_exchange is None or not (wanted and shards.reduce_grad_input and hidden.is_cuda and _is_on_gpu(shards.group)):
        return None
    if hidden.device.index not in _beside:
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(hidden.device))
        _beside[hidden.device.index] = _Beside(event, torch.cuda.Stream(hidden.device, priority=-1))
    return _beside[hidden.device.index]


def _handed_over(beside: Optional[_Beside], shards: VocabParallel) -> tuple[int, int]:
    """The operators' inputs grad_hidden_event and multiprocessors_left."""
    return (0, 0) if beside is None else (beside.event.cuda_event, shards.multiprocessors_for_exchange or 0)


def _summed(grad_hidden: Tensor, dtype: torch.dtype, shards: VocabParallel, beside: Optional[_Beside]) -> Tensor:
    if shards.reduce_grad_input and grad_hidden.numel() > 0:
        if beside is None:
            distributed.all_reduce(grad_hidden, group=shards.group)
        else:
            # grad_hidden's memory belongs to the current stream, which waits for the sum, so that the memory is not reused before it.
            current = torch.cuda.current_stream(grad_hidden.device)
            beside.stream.wait_event(beside.event)
            try:
                with torch.cuda.stream(beside.stream):
                    distributed.all_reduce(grad_hidden, group=shards.group)
            finally:
                current.wait_stream(beside.stream)
    return grad_hidden.to(dtype)


class _Merged(torch.autograd.Function):
    """The merged statistics of the rows. They are the same on every rank, and so must be the upstream gradients by them."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Optional[Tensor], inputs: tuple, wanted: tuple, shards: VocabParallel, place: Place,
                budget: int, filter_eps: float) -> tuple:  # fmt: skip
        linear = (hidden, weight, bias, *inputs)
        shard = (*wanted, place.first, place.total)
        gathered = _gathered(_ops.linear_logp_partials(*linear, *shard), shards.group)
        merged = _ops.linear_logp_merge(*linear, *shard, gathered)
        target, row_temperature = inputs[:2]
        ctx.save_for_backward(hidden, weight, bias, target, row_temperature, *merged[:3])
        ctx.options, ctx.shards, ctx.place, ctx.with_entropy, ctx.budget, ctx.filter_eps = inputs[2:], shards, place, wanted[0], budget, filter_eps
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(merged[3])
        return merged

    @staticmethod
    def backward(ctx: Any, g_logp: Any, g_lse: Any, g_entropy: Any, g_argmax: Any) -> tuple:
        arguments.refuse_tangents((g_logp, g_lse, g_entropy))
        hidden, weight, bias, target, row_temperature, logp, lse, entropy = ctx.saved_tensors
        wanted = [ctx.needs_input_grad[i] for i in range(3)]
        nothing = (None,) * 6
        if not any(wanted) or (g_logp is None and g_lse is None and g_entropy is None):
            return (None,) * 3 + nothing
        if not ctx.with_entropy:
            g_entropy = None
        beside = _exchange_beside(ctx.shards, hidden, wanted[0])
        with torch.no_grad(), _operators.AsTorch():
            given = [None if g is None else g.contiguous() for g in (torch.zeros_like(logp) if g_logp is None else g_logp, g_lse, g_entropy)]
            grads = list(_ops.linear_logp_backward_partial(
                hidden, weight, bias, target, row_temperature, *ctx.options, logp, lse, entropy if g_entropy is not None else None, *given, *wanted,
                ctx.budget, ctx.filter_eps, ctx.place.first, ctx.place.total, *_handed_over(beside, ctx.shards),
            ))  # fmt: skip
            if wanted[0]:
                grads[0] = _summed(grads[0], hidden.dtype, ctx.shards, beside)
        kept = [gradient if want else None for gradient, want in zip(grads, wanted)]
        return (*_operators._once(kept, (hidden, weight, bias, g_logp, g_lse, g_entropy)), *nothing)


class _Losses(torch.autograd.Function):
    """The loss of the merged rows, the same on every rank. given: linear_cross_entropy's inputs after bias. owner: of main_grad, as
    _operators.CrossEntropyInto takes it. Gradients are computed in the backward, with the upstream gradient, because the logits are recomputed there in any
    case."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Optional[Tensor], main_grad: Optional[Tensor], given: list, shards: VocabParallel,
                place: Place, owner: tuple) -> tuple:  # fmt: skip
        linear, shard = (hidden, weight, bias), (place.first, place.total)
        gathered = _gathered(_ops.linear_cross_entropy_partials(*linear, *given, *shard), shards.group)
        loss, logp, lse, entropy = _ops.linear_cross_entropy_merge(*linear, *given, *shard, gathered, *_handed_over(None, shards))[:4]
        ctx.given = [None if isinstance(value, Tensor) else value for value in given]
        ctx.places = [i for i, value in enumerate(given) if isinstance(value, Tensor)]
        ctx.save_for_backward(*linear, gathered, *(given[i] for i in ctx.places))
        ctx.shards, ctx.shard, ctx.main_grad, ctx.owner = shards, shard, main_grad, owner
        ctx.mark_non_differentiable(logp, lse, entropy)
        return loss, logp, lse, entropy

    @staticmethod
    def backward(ctx: Any, g_loss: Tensor, *_: Any) -> tuple:
        arguments.refuse_tangents((g_loss,))
        hidden, weight, bias, gathered, *tensors = ctx.saved_tensors
        given, wanted = list(ctx.given), [ctx.needs_input_grad[i] for i in range(3)]
        for i, tensor in zip(ctx.places, tensors):
            given[i] = tensor
        with torch.no_grad(), _operators.AsTorch():
            _operators.of_upstream(given, g_loss, wanted)
            beside = _exchange_beside(ctx.shards, hidden, wanted[0])
            inputs = (hidden, weight, bias, *given, *ctx.shard, gathered, *_handed_over(beside, ctx.shards))
            if ctx.main_grad is None:
                grads = list(_ops.linear_cross_entropy_merge(*inputs)[4:])
            else:
                grads = list(_ops.linear_cross_entropy_merge_accumulate(*inputs, ctx.main_grad)[4:])
                grads[1] = _operators.tell_owner(ctx.owner[0], weight) if wanted[1] else None
            if wanted[0]:
                grads[0] = _summed(grads[0], hidden.dtype, ctx.shards, beside)
        kept = [gradient if want else None for gradient, want in zip(grads, wanted)]
        return (*_operators._once(kept, (hidden, weight, bias, g_loss)), None, None, None, None, None)


class Agreed(NamedTuple):
    """What the ranks have agreed to compute."""

    shards: VocabParallel
    rows: arguments.Rows
    weight: Tensor
    bias: Optional[Tensor]
    inputs: tuple
    place: Place
    checked: Any


@_disable_dynamo
def agree(
    call: Call, weight_layout: Any, shift: Any, ignore_index: Optional[int], temperature: Any, softcap: Any, logit_scale: Any, exact: Any,
    check: Callable[[arguments.Rows], Any], others: Callable[[Any], Mapping[str, Any]] = lambda checked: {}, outputs: tuple = (False, False),
) -> Agreed:  # fmt: skip
    """Checks the arguments, and that the ranks agree on them. An error of the arguments, or of check, on one rank raises an error on every rank. others: gives
    further options that must be the same on all ranks, by their names in _Header, from what check returned."""
    shards = call.shards
    error: Optional[Exception] = None
    own = _Header()
    rows: Any = None
    try:
        if torch._C._are_functorch_transforms_active():
            raise NotImplementedError("process_group: torch.func's transforms of a call over ranks are not implemented")
        ignore_index = arguments.check_ignore_index(ignore_index)
        rows = arguments.check_rows(call.input, call.linear_weight, call.target, call.linear_bias, weight_layout, shift, ignore_index, empty=True)
        scaling = arguments.check_scaling(rows.temperatures(temperature), softcap, logit_scale, rows.values)
        checked = check(rows)
        arguments.check_exact(exact, rows)
        options = {
            "temperature": scaling.temperature, "softcap": scaling.softcap, "row_temperature": scaling.row_temperature is not None,
            "ignore_index": ignore_index, "exact": bool(exact), "reduce_grad_input": shards.reduce_grad_input, **others(checked),
        }  # fmt: skip
        own = _Header(
            0, rows.weight.shape[0], *rows.hidden.shape, _DTYPES.index(rows.hidden.dtype), _DTYPES.index(rows.target.dtype),
            0 if rows.bias is None else _DTYPES.index(rows.bias.dtype), 2 * outputs[1] + outputs[0],
            int(torch.is_grad_enabled() and rows.hidden.requires_grad), shards.vocab_size or 0,
            **{name: _told(name, value) for name, value in options.items()},
        )  # fmt: skip
    except Exception as raised:
        error = raised
    waits = rows is not None and rows.hidden.is_cuda
    headers = _agree_on(shards.group, own, error, lambda: _glance(rows, ignore_index), call.by_mesh, waits)
    place = _place(headers, distributed.get_rank(shards.group), shards.vocab_size)
    weight, bias = rows.weight, rows.bias
    if place.count < weight.shape[0]:
        weight, bias = weight[: place.count], None if bias is None else bias[: place.count]
    inputs = (rows.target, scaling.row_temperature, scaling.temperature, scaling.softcap, ignore_index, exact)
    return Agreed(shards, rows, weight, bias, inputs, place, checked)


@_disable_dynamo
def statistics(agreed: Agreed, wanted: tuple, memory_budget: Any) -> Statistics:
    """The rows' statistics. wanted: (entropy, argmax), whether each of these is requested."""
    merged = _Merged.apply(agreed.rows.hidden, agreed.weight, agreed.bias, agreed.inputs, wanted, agreed.shards, agreed.place, memory_budget, 0.0)
    return Statistics(*merged)


@_disable_dynamo
def losses(agreed: Agreed, others: Sequence, main_grad: Optional[Tensor] = None, owner: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(loss, logp, lse, entropy), the last three without derivatives. others: linear_cross_entropy's inputs from class_weight on. owner: what
    _operators.main_grad_owner gave."""
    if main_grad is not None:
        main_grad = main_grad[: agreed.place.count]
    given = [*agreed.inputs, *others]
    return _Losses.apply(agreed.rows.hidden, agreed.weight, agreed.bias, main_grad, given, agreed.shards, agreed.place, (owner,))

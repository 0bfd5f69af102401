"""What torch needs of an operator besides its kernels: shapes without data (fake kernels), derivatives, vmap."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor, library

from . import _library  # noqa: F401  registers the operators
from . import _flops
from ._arguments import order_of, refuse_tangents

_REDUCE_NONE = 2
_PARTIAL_FLOATS = 8  # KEEP IN STEP: FLP_PARTIAL_FLOATS in runtime/fusedlogp.h
_ops = torch.ops.fusedlogp
_scale_op = _ops.scale_.default


# ---- the places of operators' arguments, by the names that their schemas give them


def _place(operator: str, name: str) -> int:
    return [argument.name for argument in getattr(_ops, operator).default._schema.arguments].index(name)


def _at(operator: str, *names: str) -> tuple[int, ...]:
    return tuple(_place(operator, name) for name in names)


def _count(operator: str) -> int:
    return len(getattr(_ops, operator).default._schema.arguments)


def _wanted(operator: str, args: Sequence[Any]) -> Sequence[bool]:
    """The operator's want_hidden, want_weight and want_bias, which follow one another."""
    first = _place(operator, "want_hidden")
    return args[first : first + 3]


_LINEAR_ENTROPY, _LINEAR_BUDGET = _at("linear_logp", "entropy", "memory_budget")
_LINEAR = _LINEAR_ENTROPY  # the arguments before it are those that all linear operators begin with
_CE_G_LOSS, _CE_REDUCTION, _CE_ENTROPY, _CE_WANT = _at("linear_cross_entropy", "g_loss", "reduction", "entropy", "want_hidden")
_CE_TOKEN_INPUTS = _place("linear_cross_entropy", "token_inputs")
_CE_INPUTS = _count("linear_cross_entropy")
# The arguments of a forward that are tensors, lists of them or None.
_CE_TENSORS = _at("linear_cross_entropy", "hidden", "weight", "bias", "target", "row_temperature", "class_weight", "token_weight", "token_inputs")


def _is_compiling() -> bool:
    return torch.compiler.is_compiling()


# ---- shapes


def _vector(like: Tensor, count: Any, dtype: torch.dtype, wanted: bool = True) -> Tensor:
    return like.new_empty((count if wanted else 0,), dtype=dtype)


def _gradients(hidden: Tensor, weight: Tensor, bias: Optional[Tensor], wanted: Sequence[bool]) -> tuple[Tensor, Tensor, Tensor]:
    empty = hidden.new_empty((0,))
    grad_weight = empty
    if wanted[1]:
        rows, columns = weight.shape
        grad_weight = weight.new_empty_strided((rows, columns), (1, rows) if order_of(weight) != 0 else (columns, 1))
    grad_bias = bias.new_empty((bias.shape[0] if wanted[2] else 0,)) if bias is not None else hidden.new_empty((0,), dtype=torch.float32)
    return (
        hidden.new_empty(hidden.shape) if wanted[0] else empty.clone(),
        grad_weight if wanted[1] else weight.new_empty((0,)),
        grad_bias,
    )


def _rows_results(like: Tensor, rows: Any, entropy: bool, argmax: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (
        _vector(like, rows, torch.float32),
        _vector(like, rows, torch.float32),
        _vector(like, rows, torch.float32, entropy),
        _vector(like, rows, torch.int32, argmax),
    )


@library.register_fake("fusedlogp::linear_logp")
def _(hidden, weight, bias, target, row_temperature, temperature, softcap, ignore_index, exact, entropy, argmax, memory_budget):
    return _rows_results(hidden, hidden.shape[0], entropy, argmax)


@library.register_fake("fusedlogp::linear_logp_backward")
def _(*args):
    return _gradients(*args[:3], _wanted("linear_logp_backward", args))


@library.register_fake("fusedlogp::linear_logp_saving")
def _(hidden, *args):
    rows = hidden.shape[0]
    bytes_of_workspace = library.get_ctx().new_dynamic_size()  # the plan decides it, and making a plan needs the device
    return _vector(hidden, rows, torch.float32), _vector(hidden, rows, torch.float32), _vector(hidden, bytes_of_workspace, torch.uint8)


@library.register_fake("fusedlogp::linear_logp_backward_saved")
def _(*args):
    return _gradients(*args[:3], _wanted("linear_logp_backward_saved", args))


@library.register_fake("fusedlogp::linear_logp_partials")
@library.register_fake("fusedlogp::linear_cross_entropy_partials")
def _(hidden, *args):
    return hidden.new_empty((hidden.shape[0], _PARTIAL_FLOATS), dtype=torch.float32)


@library.register_fake("fusedlogp::linear_logp_merge")
def _(*args):
    entropy, argmax = _at("linear_logp_merge", "entropy", "argmax")
    return _rows_results(args[0], args[0].shape[0], args[entropy], args[argmax])


@library.register_fake("fusedlogp::linear_logp_backward_partial")
def _(*args):
    grads = _gradients(*args[:3], _wanted("linear_logp_backward_partial", args))
    return (grads[0].to(torch.float32), *grads[1:])


def _cross_entropy_fake(*args):
    hidden, weight, bias = args[:3]
    rows = hidden.shape[0]
    loss = hidden.new_empty((rows,) if args[_CE_REDUCTION] == _REDUCE_NONE else (), dtype=torch.float32)
    logp, lse, entropy = (_vector(hidden, rows, torch.float32, wanted) for wanted in (True, True, args[_CE_ENTROPY]))
    wanted = list(args[_CE_WANT : _CE_WANT + 3])
    if len(args) in (_count("linear_cross_entropy_accumulate"), _count("linear_cross_entropy_merge_accumulate")):  # with main_grad
        wanted[1] = False
    grads = _gradients(hidden, weight, bias, wanted)
    if len(args) >= _count("linear_cross_entropy_merge"):
        grads = (grads[0].to(torch.float32), *grads[1:])
    return (loss, logp, lse, entropy) + grads


for _name in ("", "_accumulate", "_merge", "_merge_accumulate"):
    library.register_fake(f"fusedlogp::linear_cross_entropy{_name}")(_cross_entropy_fake)


@library.register_fake("fusedlogp::logits_logp")
def _(logits, target, row_temperature, temperature, softcap, ignore_index, entropy, argmax):
    return _rows_results(logits, logits.shape[0], entropy, argmax)


@library.register_fake("fusedlogp::logits_logp_backward")
def _(logits, *args):
    return logits.new_empty(logits.shape)


@library.register_fake("fusedlogp::weighted_sum")
def _(x, w):
    return x.new_empty((x.shape[0],))


@library.register_fake("fusedlogp::weighted_sum_backward")
def _(g, x, w, want_x, want_w):
    return x.new_empty(x.shape if want_x else (0,)), w.new_empty(w.shape if want_w else (0,))


@library.register_fake("fusedlogp::scale_")
def _(x, factor):
    return None


# ---- derivatives


class AsTorch:
    """Raises the library's errors about arguments that only it can judge as torch would: ValueError for a memory_budget below what the problem needs, and
    IndexError for a bad target on the CPU where the operators do not raise it themselves."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is RuntimeError and "outside the vocabulary" in str(error):
            raise IndexError(str(error).split("\n")[0]) from None
        if kind is RuntimeError and "memory_budget: got" in str(error):
            raise ValueError(str(error).split("\n")[0]) from None


class _OnceDifferentiable(torch.autograd.Function):
    """A gradient that autograd cannot differentiate: an attempt raises an error, rather than taking it for a constant."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("fusedlogp: a gradient was differentiated a second time (create_graph=True), which is not implemented")


def _once(gradients: Sequence[Optional[Tensor]], sources: Sequence[Optional[Tensor]]) -> list[Optional[Tensor]]:
    if not torch.is_grad_enabled() or _is_compiling():
        return list(gradients)
    kept = [source for source in sources if source is not None]
    return [gradient if gradient is None else _OnceDifferentiable.apply(gradient, *kept) for gradient in gradients]


def _contiguous(g: Optional[Tensor]) -> Optional[Tensor]:
    return g if g is None or g.is_contiguous() else g.contiguous()


def _graph_is_kept() -> bool:
    """Whether autograd may come back to the saved tensors of the node that runs."""
    return torch._C._autograd._get_current_graph_task_keep_graph()


def _is_plain(value: Tensor) -> bool:
    """Whether value is neither of a subclass, as fake tensors are, nor wrapped by functorch's transforms or by autograd's is_grads_batched."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(value) or torch._C._functorch.is_legacy_batchedtensor(value)
    return type(value) is Tensor and not wrapped


def _scale(gradients: list, g: Tensor) -> list:
    # In place where autograd does not use the gradients again, because grad_weight is as large as weight.
    if torch.is_grad_enabled() or _is_compiling() or not all(_is_plain(value) for value in (*gradients, g)):
        return [(each.to(torch.float32) * g.to(torch.float32)).to(each.dtype) for each in gradients]
    if _graph_is_kept():
        gradients = [each.clone() for each in gradients]
    # Not torch's mul_, which would round g to the gradient's dtype first, 1/3 by 0.2 % in bf16, and would read and write all where g is 1, as loss.backward()
    # has it.
    factor = g.to(torch.float32)
    for each in gradients:
        _run(_scale_op, (each, factor))
    return gradients


def _linear_logp_setup(ctx: Any, inputs: tuple, output: tuple) -> None:
    hidden, weight, bias, target, row_temperature = inputs[:5]
    logp, lse, entropy, argmax = output
    ctx.mark_non_differentiable(argmax)
    ctx.set_materialize_grads(False)
    ctx.options = inputs[5:_LINEAR]
    ctx.with_entropy, ctx.memory_budget = inputs[_LINEAR_ENTROPY], inputs[_LINEAR_BUDGET]
    ctx.save_for_backward(hidden, weight, bias, target, row_temperature, logp, lse, entropy)


def _linear_logp_backward(ctx: Any, g_logp: Any, g_lse: Any, g_entropy: Any, g_argmax: Any) -> tuple:
    hidden, weight, bias, target, row_temperature, logp, lse, entropy = ctx.saved_tensors
    nothing = (None,) * (_LINEAR_BUDGET + 1 - 3)
    wanted = [ctx.needs_input_grad[i] for i in range(3)]
    if not ctx.with_entropy:
        g_entropy = None
    if not any(wanted) or (g_logp is None and g_lse is None and g_entropy is None):
        return (None, None, None) + nothing
    if g_logp is None:
        g_logp = torch.zeros_like(logp)
    grads = call(
        "linear_logp_backward", hidden, weight, bias, target, row_temperature, *ctx.options, logp, lse, entropy if g_entropy is not None else None,
        _contiguous(g_logp), _contiguous(g_lse), _contiguous(g_entropy), *wanted, ctx.memory_budget, 0.0,
    )  # fmt: skip
    kept = [gradient if want else None for gradient, want in zip(grads, wanted)]
    return tuple(kept) + nothing


library.register_autograd("fusedlogp::linear_logp", _linear_logp_backward, setup_context=_linear_logp_setup)


def _places(hidden: Tensor, weight: Tensor, workspace: Tensor) -> tuple:
    """What the plan depends on and, on a GPU, the place of the workspace in its tensor. Hooks and checkpoints may bring the tensors back with others."""
    # KEEP IN STEP: FLP_TORCH_WORKSPACE_ALIGNMENT and FLP_TORCH_VECTOR_ALIGNMENT in python/binding/torch_tensors.h.
    offset = workspace.data_ptr() % 256 if workspace.is_cuda else 0
    return hidden.data_ptr() % 16, weight.data_ptr() % 16, offset, hidden.stride(), weight.stride()


class LinearLogpSaving(torch.autograd.Function):
    """(logp, lse). The first backward uses up what the forward left in a workspace; a further one recomputes the logits."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Optional[Tensor], others: tuple, with_lse: bool, memory_budget: int) -> tuple[Tensor, Tensor]:
        linear = (hidden, weight, bias, *others)
        target, row_temperature = others[:2]
        wanted = ctx.needs_input_grad[:3]
        logp, lse, workspace = _run(_ops.linear_logp_saving.default, (*linear, with_lse, *wanted, memory_budget))
        if not with_lse:
            ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        ctx.options, ctx.memory_budget, ctx.with_lse = linear[5:], memory_budget, with_lse
        ctx.left, ctx.places = True, _places(hidden, weight, workspace)
        ctx.save_for_backward(hidden, weight, bias, target, row_temperature, logp, lse, workspace)
        return logp, lse

    @staticmethod
    def backward(ctx: Any, g_logp: Optional[Tensor], g_lse: Optional[Tensor]) -> tuple:
        wanted = ctx.needs_input_grad[:3]  # as in the forward, even if fewer are requested now
        if g_logp is None and g_lse is None:
            return (None,) * 6
        refuse_tangents((g_logp, g_lse))
        *linear, logp, lse, workspace = ctx.saved_tensors
        hidden, weight, bias = linear[:3]
        upstream = (g_logp, g_lse)
        if not all(g is None or _is_plain(g) for g in (g_logp, g_lse)):
            g_logp = torch.zeros_like(logp) if g_logp is None else g_logp.contiguous()
            with AsTorch():
                grads = call(
                    "linear_logp_backward", *linear, *ctx.options, logp, lse, None, g_logp, _contiguous(g_lse), None, *wanted, ctx.memory_budget, 0.0,
                )  # fmt: skip
            return (*(gradient if want else None for gradient, want in zip(grads, wanted)), None, None, None)
        g_logp = torch.zeros_like(logp) if g_logp is None else g_logp.detach().contiguous()
        g_lse = g_lse if g_lse is None else g_lse.detach().contiguous()
        given = [value if value is None else value.detach() for value in linear]
        if ctx.left and ctx.places == _places(hidden, weight, workspace):
            ctx.left = False
            if ctx.with_lse and g_lse is None:
                g_lse = torch.zeros_like(lse)
            op, args = _ops.linear_logp_backward_saved.default, (g_logp, g_lse, *wanted, ctx.memory_budget, workspace.detach())
        else:
            op, args = _ops.linear_logp_backward.default, (None, g_logp, g_lse, None, *wanted, ctx.memory_budget, 0.0)
        with torch.no_grad(), AsTorch():
            grads = _run(op, (*given, *ctx.options, logp.detach(), lse.detach(), *args))
        kept = [gradient if want else None for gradient, want in zip(grads, wanted)]
        return (*_once(kept, (hidden, weight, bias, *upstream)), None, None, None)


def linear_logp(linear: Sequence[Any], with_lse: bool, entropy: bool, argmax: bool, memory_budget: int) -> tuple[Tensor, ...]:
    """(logp, lse, entropy, argmax), or only (logp, lse) from LinearLogpSaving. Results that were not requested are not to be used."""
    hidden, weight, bias, ignore_index = linear[0], linear[1], linear[2], linear[7]
    # Not for the entropy, whose derivative recomputes the logits; nor for argmax, which a plan with its forward does not give, nor for lse with ignored rows,
    # for which it gives 0. Transforms, torch.compile, meta tensors and subclasses need operators whose results have shapes that follow from the inputs' shapes.
    saving = (
        not (entropy or argmax or (with_lse and ignore_index is not None))
        and torch.is_grad_enabled()
        and (hidden.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad))
        and hidden.shape[0] > 0
        and not hidden.is_meta
        and not _is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and type(hidden) in (Tensor, torch.nn.Parameter)
    )
    if not saving:
        return call("linear_logp", *linear, entropy, argmax, memory_budget)
    logp, lse = LinearLogpSaving.apply(hidden, weight, bias, tuple(linear[3:]), with_lse, memory_budget)
    return logp, lse


class ByTemperature(torch.autograd.Function):
    """value, with slope as its derivative by temperature."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, slope: Tensor, temperature: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        # value and temperature are only for _once: slope depends on them.
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        value, slope, temperature = ctx.saved_tensors
        (by_temperature,) = _once([(g * slope).to(temperature.dtype)], (g, value, temperature))
        (by_value,) = _once([g], (g, temperature))  # the gradients that it enters depend on the temperature
        return by_value, None, by_temperature


def _cross_entropy_setup(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.wanted = inputs[_CE_WANT : _CE_WANT + 3]
    ctx.ready = any(ctx.wanted)
    if ctx.ready:
        # Only the inputs by which _once refuses a second differentiation.
        ctx.save_for_backward(*inputs[:3], *output[4:])
    else:
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in inputs]
        ctx.save_for_backward(*(inputs[i] for i in _CE_TENSORS))


def _cross_entropy_backward(ctx: Any, g_loss: Any, *others: Any) -> tuple:
    needed = [ctx.needs_input_grad[i] for i in range(3)]
    nothing = (None,) * (_CE_INPUTS - 3)
    if g_loss is None or not any(needed):
        return (None, None, None) + nothing
    if ctx.ready:
        hidden, weight, bias, *ready = ctx.saved_tensors
        if any(need and not have for need, have in zip(needed, ctx.wanted)):
            raise RuntimeError("fusedlogp::linear_cross_entropy was told to give some gradients (want_...) and autograd wants others")
        scaled = iter(_scale([gradient for gradient, need in zip(ready, needed) if need], g_loss))
        kept = [next(scaled) if need else None for need in needed]
    else:
        inputs = list(ctx.inputs)
        for place, tensor in zip(_CE_TENSORS, ctx.saved_tensors):
            inputs[place] = tensor
        hidden, weight, bias = inputs[:3]
        inputs[_CE_G_LOSS] = _contiguous(g_loss.reshape(-1))
        inputs[_CE_WANT : _CE_WANT + 3] = needed
        inputs[_CE_ENTROPY] = False
        grads = call("linear_cross_entropy", *inputs)[4:]
        kept = [gradient if need else None for gradient, need in zip(grads, needed)]
    return tuple(_once(kept, (hidden, weight, bias, g_loss))) + nothing


library.register_autograd("fusedlogp::linear_cross_entropy", _cross_entropy_backward, setup_context=_cross_entropy_setup)


def of_upstream(given: list, g_loss: Tensor, wanted: Sequence[bool]) -> None:
    """Changes given, linear_cross_entropy's inputs from the fourth on, to those of a call that computes only the wanted gradients."""
    given[_CE_G_LOSS - 3] = _contiguous(g_loss.reshape(-1))
    given[_CE_WANT - 3 : _CE_WANT] = wanted
    given[_CE_ENTROPY - 3] = False


def main_grad_owner(weight: Any) -> Any:
    """weight where it is a parameter of Megatron's, whose hooks ask it whether its gradient is in main_grad already; else None."""
    return weight if hasattr(weight, "grad_added_to_main_grad") else None


def tell_owner(owner: Any, weight: Tensor) -> Optional[Tensor]:
    """Tells a parameter of Megatron's that its gradient is in main_grad. Returns what stands for the gradient of weight: Megatron's hooks, which wait for one,
    drop it without reading it, or want zeros."""
    if owner is None:
        return None
    owner.grad_added_to_main_grad = True
    return torch.zeros_like(weight) if getattr(owner, "zero_out_wgrad", False) else torch.empty_like(weight)


class CrossEntropyInto(torch.autograd.Function):
    """The loss, whose backward adds the gradient of weight to main_grad and gives those of hidden and bias. owner: what main_grad_owner gave."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Optional[Tensor], main_grad: Tensor, inputs: list, owner: tuple
    ) -> tuple[Tensor, Tensor]:
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in inputs]
        ctx.places = [i for i, value in enumerate(inputs) if isinstance(value, Tensor)]
        ctx.main_grad, ctx.owner = main_grad, owner
        # hidden, weight and bias for _once.
        ctx.save_for_backward(hidden, weight, bias, *(inputs[i] for i in ctx.places))
        loss, _, lse = _ops.linear_cross_entropy(*inputs)[:3]
        ctx.mark_non_differentiable(lse)
        return loss, lse

    @staticmethod
    def backward(ctx: Any, g_loss: Tensor, _g_lse: Any) -> tuple:
        refuse_tangents((g_loss,))
        hidden, weight, bias, *tensors = ctx.saved_tensors
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, tensors):
            inputs[place] = tensor.detach()
        inputs[_CE_G_LOSS] = g_loss.detach().reshape(-1).contiguous()  # torch.compile of 2.6 takes no is_contiguous here
        want_hidden, want_bias = ctx.needs_input_grad[0], ctx.needs_input_grad[2]
        inputs[_CE_WANT : _CE_WANT + 3] = [want_hidden, True, want_bias]
        inputs[_CE_ENTROPY] = False
        with torch.no_grad(), AsTorch():
            grads = _ops.linear_cross_entropy_accumulate(*inputs, ctx.main_grad)
            dummy = tell_owner(ctx.owner[0], weight) if ctx.needs_input_grad[1] else None
        kept = _once([grads[4] if want_hidden else None, dummy, grads[6] if want_bias else None], (hidden, weight, bias, g_loss))
        return (*kept, None, None, None)


def _logits_setup(ctx: Any, inputs: tuple, output: tuple) -> None:
    logits, target, row_temperature = inputs[:3]
    logp, lse, entropy, argmax = output
    ctx.mark_non_differentiable(argmax)
    ctx.set_materialize_grads(False)
    ctx.options, ctx.with_entropy = inputs[3:6], inputs[6]
    ctx.save_for_backward(logits, target, row_temperature, logp, lse, entropy)


def _logits_backward(ctx: Any, g_logp: Any, g_lse: Any, g_entropy: Any, g_argmax: Any) -> tuple:
    logits, target, row_temperature, logp, lse, entropy = ctx.saved_tensors
    if not ctx.with_entropy:
        g_entropy = None
    if g_logp is None and g_lse is None and g_entropy is None:
        return (None,) * 8
    if g_logp is None:
        g_logp = torch.zeros_like(logp)
    gradient = call(
        "logits_logp_backward", logits, target, row_temperature, *ctx.options, logp, lse, entropy if g_entropy is not None else None,
        _contiguous(g_logp), _contiguous(g_lse), _contiguous(g_entropy),
    )  # fmt: skip
    return (gradient,) + (None,) * 7


library.register_autograd("fusedlogp::logits_logp", _logits_backward, setup_context=_logits_setup)


def _weighted_sum_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _weighted_sum_backward(ctx: Any, g: Tensor) -> tuple:
    x, w = ctx.saved_tensors
    wanted = ctx.needs_input_grad[0], ctx.needs_input_grad[1]
    grads = call("weighted_sum_backward", _contiguous(g), x, w, *wanted)
    return tuple(gradient if want else None for gradient, want in zip(grads, wanted))


library.register_autograd("fusedlogp::weighted_sum", _weighted_sum_backward, setup_context=_weighted_sum_setup)


def _refuse_setup(ctx: Any, inputs: tuple, output: Any) -> None:
    pass


def _refuse(ctx: Any, *grads: Any) -> Any:
    raise NotImplementedError("fusedlogp: a gradient was differentiated a second time (create_graph=True), which is not implemented")


for _name in ("linear_logp_backward", "logits_logp_backward", "weighted_sum_backward"):
    library.register_autograd(f"fusedlogp::{_name}", _refuse, setup_context=_refuse_setup)


# ---- calls: the derivatives registered above are for direct calls of torch.ops.fusedlogp.* and for torch.compile. functorch's transforms do not take them,
# and torch reads the schema at each such call, which takes longer than all the rest of a small call. All other calls are therefore autograd.Functions made of
# the same parts.


def _run(op: Any, args: tuple) -> Any:
    """Calls the operator without its registered derivative, unless an outer transform needs that."""
    refuse_tangents(args)
    if torch._C._are_functorch_transforms_active():
        return op(*args)
    with torch._C._AutoDispatchBelowAutograd():
        return op(*args)


def _functions(op: Any, setup: Callable[..., Any], derive: Callable[..., Any], leading: int) -> tuple[Any, Any]:
    """Two autograd.Functions of an operator and its derivative. Transformed is for functorch's transforms, which need setup_context. Differentiable is for all
    other calls: it has no setup_context, because of which torch would bind the arguments to the signature of forward at each call. Only the first `leading`
    inputs, which have derivatives, are passed to it one by one; the others come in one tuple, which torch does not look at."""

    class Transformed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            return _run(op, args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            setup(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with AsTorch():
                return derive(ctx, *grads)

    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            args = given[:leading] + given[leading]
            output = _run(op, args)
            setup(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with AsTorch():
                return (*derive(ctx, *grads)[:leading], None)

    return Transformed, Differentiable


# For each operator its setup_context, its derivative, and how many of the first inputs have one. A backward refuses to be differentiated by any of those.
_FORMULAS: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "linear_logp": (_linear_logp_setup, _linear_logp_backward, 3),
    "linear_cross_entropy": (_cross_entropy_setup, _cross_entropy_backward, 3),
    "logits_logp": (_logits_setup, _logits_backward, 1),
    "weighted_sum": (_weighted_sum_setup, _weighted_sum_backward, 2),
    "linear_logp_backward": (_refuse_setup, _refuse, 15),
    "logits_logp_backward": (_refuse_setup, _refuse, 12),
    "weighted_sum_backward": (_refuse_setup, _refuse, 3),
}
_OVERLOADS = {name: getattr(_ops, name).default for name in _FORMULAS}
_FUNCTIONS = {name: _functions(_OVERLOADS[name], *formula) for name, formula in _FORMULAS.items()}


def call(name: str, *args: Any) -> Any:
    """Calls an operator, under whatever transforms."""
    if _is_compiling():
        return getattr(_ops, name)(*args)
    transformed, differentiable = _FUNCTIONS[name]
    if torch._C._are_functorch_transforms_active():
        return transformed.apply(*args)
    if torch.is_grad_enabled() and any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
        leading = _FORMULAS[name][2]
        return differentiable.apply(*args[:leading], args[leading:])
    return _run(_OVERLOADS[name], args)


# ---- vmap


def _per_sample(op: Any) -> Callable[..., Any]:
    """A rule of vmap that makes one call for each sample. Batched weights and reduced results cannot be folded into rows."""

    def rule(info: Any, in_dims: tuple, *args: Any) -> Any:
        results = []
        for i in range(info.batch_size):
            results.append(op(*(arg.select(dim, i) if isinstance(dim, int) else arg for arg, dim in zip(args, in_dims))))
        if isinstance(results[0], Tensor):
            return torch.stack(results), 0
        return tuple(torch.stack(parts) for parts in zip(*results)), (0,) * len(results[0])

    return rule


def _folding(op: Any, rows: Sequence[int], row_shaped: Callable[[tuple], Sequence[bool]]) -> Callable[..., Any]:
    """A rule of vmap that makes the samples' rows the rows of one call, where only inputs with a value for each row (those in `rows`) are batched."""
    one_by_one = _per_sample(op)

    def rule(info: Any, in_dims: tuple, *args: Any) -> Any:
        shaped = row_shaped(args)
        if not shaped or any(isinstance(dim, int) and i not in rows for i, dim in enumerate(in_dims)):
            return one_by_one(info, in_dims, *args)
        folded = list(args)
        for i in rows:
            if args[i] is None:
                continue
            batched = args[i].movedim(in_dims[i], 0) if in_dims[i] is not None else args[i].expand(info.batch_size, *args[i].shape)
            folded[i] = batched.reshape(-1, *batched.shape[2:]).contiguous()  # which a reshape of samples of one row need not be
        results = op(*folded)
        if isinstance(results, Tensor):
            return results.reshape(info.batch_size, -1, *results.shape[1:]), 0
        out = [result.reshape(info.batch_size, -1, *result.shape[1:]) if result.numel() or result.dim() > 1 else result.new_empty((info.batch_size, 0))
               for result in results]  # fmt: skip
        return tuple(out), (0,) * len(out)

    return rule


def _always(args: tuple) -> Sequence[bool]:
    return (True,)


def _loss_a_row(args: tuple) -> Sequence[bool]:
    # Each sample has gradients of a weight of its own, and a reduced loss of its own.
    return (True,) if args[_CE_REDUCTION] == _REDUCE_NONE and not any(args[_CE_WANT + 1 : _CE_WANT + 3]) and args[_CE_TOKEN_INPUTS] is None else ()


# The inputs of which each has a value, or a row of values, for each row.
_ROW_INPUTS = {
    "linear_logp": ("hidden", "target", "row_temperature"),
    "logits_logp": ("logits", "target", "row_temperature"),
    "logits_logp_backward": ("logits", "target", "row_temperature", "logp", "lse", "entropy", "g_logp", "g_lse", "g_entropy"),
    "weighted_sum": ("x",),
    "linear_cross_entropy": ("hidden", "target", "row_temperature", "token_weight", "g_loss"),
}
for _name, _inputs in _ROW_INPUTS.items():
    _shaped = _loss_a_row if _name == "linear_cross_entropy" else _always
    library.register_vmap(f"fusedlogp::{_name}", _folding(getattr(_ops, _name), _at(_name, *_inputs), _shaped))
for _name in ("linear_logp_backward", "weighted_sum_backward"):
    library.register_vmap(f"fusedlogp::{_name}", _per_sample(getattr(_ops, _name)))

# ---- torch.utils.flop_counter

_flops.register()

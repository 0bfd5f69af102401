"""The functions of the package. N is the number of rows (tokens), D the hidden size, V the vocabulary; `...` is any leading shape."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Sequence, Union, overload

import torch
from torch import Tensor

from . import _arguments as arguments
from . import _operators, _shards
from .token_loss import TokenLoss, ready_made

__all__ = ["linear_cross_entropy", "linear_logp", "logits_logp", "policy_loss", "weighted_sum"]

_OUTPUTS = ("logp", "lse", "entropy", "argmax")


def _wants(rows: arguments.Rows, reduction: Any, main_grad: Optional[Tensor] = None) -> list[bool]:
    """Of which inputs the gradients are computed with the loss. Others are computed in the backward, with the upstream gradient: those of rows' losses, those
    that are added to main_grad, and those in fp16, which a loss scale would reach only after they were rounded at a scale of 1."""
    if reduction == "none" or main_grad is not None or rows.hidden.dtype == torch.float16 or not torch.is_grad_enabled():
        return [False] * 3
    return [value is not None and value.requires_grad for value in (rows.hidden, rows.weight, rows.bias)]


def _check_budget(memory_budget: Any) -> int:
    return arguments.check_count("memory_budget", memory_budget, 0, other=", bytes of the workspace; 0 is the default")


def _check_temperature(temperature: Any) -> None:
    if arguments.wants_gradient(temperature):
        raise NotImplementedError("temperature: got a tensor that requires a gradient, and there is none of a loss by it; linear_logp's logp and lse have one")


def _class_weight(weight: Any, rows: arguments.Rows, classes: Optional[int]) -> Optional[Tensor]:
    """classes: how many there are; None: the ranks have not agreed on it yet."""
    if weight is None:
        return None
    weight = arguments.whole("weight", weight)
    arguments.check_constant("weight", arguments.check_floats("weight", weight))
    arguments.check_same_device("weight", weight, rows.hidden)
    if classes is not None:
        arguments.check_shape("weight", weight, (classes,))
    return weight.detach().contiguous()


def _token_weight(token_weight: Any, rows: arguments.Rows) -> Optional[Tensor]:
    return None if token_weight is None else rows.values("token_weight", token_weight, integers=True)


def _local_main_grad(accumulate_into: Any, linear_weight: Any) -> Any:
    """A DTensor that is sharded as linear_weight is, as the shard; anything else is as it was."""
    if not arguments.is_dtensor(accumulate_into):
        return accumulate_into
    own = (accumulate_into.device_mesh, accumulate_into.placements)
    if not arguments.is_dtensor(linear_weight) or own != (linear_weight.device_mesh, linear_weight.placements):
        raise arguments.wrong(ValueError, "accumulate_into's placements", tuple(accumulate_into.placements), "those of linear_weight, on its device mesh")
    return accumulate_into.to_local()


def _check_main_grad(accumulate_into: Any, linear_weight: Tensor, weight_layout: str, rows: arguments.Rows) -> Tensor:
    arguments.check_floats("accumulate_into", accumulate_into)
    arguments.check_same_device("accumulate_into", accumulate_into, linear_weight)
    arguments.check_shape("accumulate_into", accumulate_into, linear_weight.shape)
    if accumulate_into.requires_grad:
        raise arguments.wrong(ValueError, "accumulate_into", "a tensor that requires a gradient", "a buffer")
    main_grad = accumulate_into.t() if weight_layout == "dv" else accumulate_into
    order = arguments.order_of(rows.weight)
    if main_grad.numel() > 0 and arguments.order_of(main_grad) != order:
        lines = "rows" if (order == 0) == (weight_layout == "vd") else "columns"
        wanted = f"elements that lie apart, in the order of linear_weight's: contiguous {lines}"
        raise arguments.wrong(ValueError, "accumulate_into's strides", tuple(accumulate_into.stride()), wanted)
    return main_grad


def _loss(rows: arguments.Rows, inputs: list, main_grad: Optional[Tensor], owner: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(loss, logp, lse, entropy), the last three without derivatives. owner: what _operators.main_grad_owner gave."""
    if main_grad is not None and torch.is_grad_enabled():
        if torch._C._are_functorch_transforms_active():
            raise NotImplementedError("accumulate_into: torch.func's transforms of a call that adds to a buffer in its backward are not implemented")
        detached = [value.detach() if isinstance(value, Tensor) else value for value in inputs]
        loss, lse = _operators.CrossEntropyInto.apply(rows.hidden, rows.weight, rows.bias, main_grad, detached, (owner,))
        return loss, lse, lse, lse
    return _operators.call("linear_cross_entropy", *inputs)[:4]


# KEEP IN STEP: the overloads and the function behind them; tests/python/test_arguments.py compares the names.
@overload
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Optional[Tensor] = ..., weight: Optional[Tensor] = ..., reduction: str = ...,
    ignore_index: Optional[int] = ..., label_smoothing: float = ..., options: Any = ..., softcap: Optional[float] = ..., logit_scale: float = ...,
    temperature: Union[float, Tensor] = ..., z_loss: float = ..., token_weight: Optional[Tensor] = ..., memory_budget: int = ...,
    accumulate_into: Optional[Tensor] = ..., weight_layout: str = ..., return_lse: Literal[False] = ..., shift: bool = ..., grad_filter_eps: float = ...,
    exact: bool = ..., process_group: Any = ...,
) -> Tensor: ...  # fmt: skip
@overload
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Optional[Tensor] = ..., weight: Optional[Tensor] = ..., reduction: str = ...,
    ignore_index: Optional[int] = ..., label_smoothing: float = ..., options: Any = ..., softcap: Optional[float] = ..., logit_scale: float = ...,
    temperature: Union[float, Tensor] = ..., z_loss: float = ..., token_weight: Optional[Tensor] = ..., memory_budget: int = ...,
    accumulate_into: Optional[Tensor] = ..., weight_layout: str = ..., return_lse: Literal[True], shift: bool = ..., grad_filter_eps: float = ...,
    exact: bool = ..., process_group: Any = ...,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Optional[Tensor] = ..., weight: Optional[Tensor] = ..., reduction: str = ...,
    ignore_index: Optional[int] = ..., label_smoothing: float = ..., options: Any = ..., softcap: Optional[float] = ..., logit_scale: float = ...,
    temperature: Union[float, Tensor] = ..., z_loss: float = ..., token_weight: Optional[Tensor] = ..., memory_budget: int = ...,
    accumulate_into: Optional[Tensor] = ..., weight_layout: str = ..., return_lse: bool, shift: bool = ..., grad_filter_eps: float = ...,
    exact: bool = ..., process_group: Any = ...,
) -> Union[Tensor, tuple[Tensor, Tensor]]: ...  # fmt: skip
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    reduction: str = "mean",
    ignore_index: Optional[int] = None,
    label_smoothing: float = 0.0,
    options: Any = None,
    softcap: Optional[float] = None,
    logit_scale: float = 1.0,
    temperature: Union[float, Tensor] = 1.0,
    z_loss: float = 0.0,
    token_weight: Optional[Tensor] = None,
    memory_budget: int = 0,
    accumulate_into: Optional[Tensor] = None,
    weight_layout: str = "vd",
    return_lse: bool = False,
    shift: bool = False,
    grad_filter_eps: float = 0.0,
    exact: bool = False,
    process_group: Any = None,
) -> Union[Tensor, tuple[Tensor, Tensor]]:
    """Cross entropy of `input @ linear_weight.T + linear_bias` against target, without storing the logits.

    A drop-in replacement for `torch.nn.functional.linear_cross_entropy` (same names, order and defaults of arguments) with targets that are class indices.
    With "mean" and "sum" the gradients are computed together with the loss and scaled by the upstream gradient in the backward; in float16 they are computed
    in the backward, so that a loss scale protects them, and the logits are computed twice.

    Args:
        input: [..., D], bfloat16, float16 or float32.
        linear_weight: [V, D], or [D, V] with weight_layout="dv"; input's dtype. Any strides; memory in row-major and in column-major order is read in place.
        target: [...], int64 or int32, of input's leading shape.
        linear_bias: [V], of any of these dtypes.
        weight: [V], the weights of the classes; it gets no gradient.
        reduction: "mean" (over the rows that are not ignored, weighted by token_weight and the class weights; over no rows, or weights of 0, it is 0, where
            torch's is NaN), "sum" or "none".
        ignore_index: rows with this target are ignored; None stands for -100.
        label_smoothing: 0 to 1.
        options: torch's options of its chunked path; accepted without effect, since no logits are stored here. See memory_budget.
        softcap: c of c tanh(z / c), from 2^-60 on, which is applied after logit_scale and before temperature; None: none.
        logit_scale: a positive factor of the logits, from 2^-60 to 2^60, which is applied before softcap.
        temperature: the divisor of the logits, from 2^-60 to 2^60, or a float tensor [...] with a divisor for each row, or [] with one for all. A tensor's
            divisor that is outside of 2^-64 .. 2^64 (divided by logit_scale) counts as the nearest of the two, also if it is 0 or negative: no error says so.
        z_loss: adds z_loss lse^2 to each row's loss.
        token_weight: [...], a factor of each row's loss, in a floating dtype, a dtype of integers or torch.bool; it gets no gradient.
        memory_budget: the size of the workspace in bytes. More memory means fewer operations. 0: the library's default. Where gradients are computed in the
            backward, the backward raises the error of one that is too small. Each value makes plans that are kept (fusedlogp.info counts them), so that one
            that follows the free memory is better rounded.
        accumulate_into: a buffer of linear_weight's shape, whose elements lie in the same order (a trainer's fp32 main_grad); the backward adds the gradient
            of linear_weight to it, and linear_weight.grad stays as it is. If linear_weight has the attribute grad_added_to_main_grad, as Megatron's
            parameters do, the backward sets it to True and gives a placeholder for the gradient, zeros if linear_weight.zero_out_wgrad is True.
        return_lse: also returns lse [...] in float32, without derivatives; 0 in ignored rows.
        shift: row t is scored against the target of row t + 1. Results with a value for each row have one position fewer than target. A value for each row
            (token_weight, temperature, the inputs of policy_loss) belongs to the hidden state at t, that is to token t + 1; [..., T - 1] is taken too.
        grad_filter_eps: > 0: on sm_90a, blocks of small derivatives are skipped (see flp_linear_logp_backward_problem).
        exact: float32 inputs by multiply-add instead of three tf32 products; with other inputs, or where autocast casts them, it is an error.
        process_group: a torch.distributed group, or a VocabParallel, for a vocabulary that is sharded over the ranks. linear_weight and linear_bias are then
            the rank's own entries, which follow those of the rank before; they may be few or none. accumulate_into has the shard's shape. All other
            arguments are the same on every rank: target has ids of the whole vocabulary, and weight has its classes. The results and the gradient of input
            are the same on every rank; the gradients of linear_weight and linear_bias are the shard's. DTensors that are sharded so bring their group
            (accumulate_into may be one, too, and the tensors of all other arguments may be replicated ones); a DTensor that FSDP has sharded is not sharded
            so, and the ranks, whose targets differ, raise a ValueError.

    Returns:
        The loss in float32: a scalar, or [...] with reduction="none"; with return_lse also lse.

    Raises:
        TypeError, ValueError: an argument is not as above; the text names it, what it was and what was wanted.
        NotImplementedError: target has class probabilities, linear_weight has more than two dimensions, or weight, token_weight or temperature requires a
            gradient (linear_logp has one by temperature). Also: a second differentiation, derivatives in forward mode, and transforms of torch.func with
            process_group or accumulate_into.
        IndexError: a target on the CPU is outside the vocabulary (on a GPU it makes the loss NaN).
    """
    def others(rows: arguments.Rows, classes: Optional[int], wants: Sequence[bool]) -> list:
        """The operator's inputs from class_weight on. classes: V, where it is known."""
        arguments.check_options(options)
        arguments.check_flag("return_lse", return_lse)
        return [
            _class_weight(weight, rows, classes), _token_weight(token_weight, rows), None, None, [], 0, arguments.check_reduction(reduction),
            arguments.check_number("label_smoothing", label_smoothing, 0.0, 1.0, "from 0 to 1"),
            arguments.check_number("z_loss", z_loss, -1e30, 1e30, "from -1e30 to 1e30"), False, *wants, _check_budget(memory_budget),
            arguments.check_number("grad_filter_eps", grad_filter_eps, 0.0, 1.0, "from 0 to 1"),
        ]  # fmt: skip

    def main_grad_of(rows: arguments.Rows, of: Tensor) -> Optional[Tensor]:
        return None if accumulate_into is None else _check_main_grad(_local_main_grad(accumulate_into, linear_weight), of, weight_layout, rows)

    def chosen(rows: arguments.Rows, results: Sequence[Tensor]) -> Union[Tensor, tuple[Tensor, Tensor]]:
        loss = rows.results(results[0]) if reduction == "none" else results[0]
        return (loss, rows.results(results[2])) if return_lse else loss

    call = _shards.call_of(process_group, input, linear_weight, target, linear_bias, weight_layout)
    owner = _operators.main_grad_owner(linear_weight)
    if call is not None:

        def check(rows: arguments.Rows) -> tuple:
            _check_temperature(temperature)
            return others(rows, None, (False, False, False)), main_grad_of(rows, call.linear_weight)

        index = -100 if ignore_index is None else ignore_index
        agreed = _shards.agree(
            call, weight_layout, shift, index, temperature, softcap, logit_scale, exact, check,
            lambda checked: {
                "reduction": reduction, "label_smoothing": label_smoothing, "z_loss": z_loss, "token_weight": token_weight is not None,
                "weight": None if weight is None else (checked[0][0].dtype, tuple(checked[0][0].shape)),
            },
        )  # fmt: skip
        further, main_grad = agreed.checked
        if further[0] is not None:
            arguments.check_shape("weight", further[0], (agreed.place.total,))
        with _operators.AsTorch():
            return chosen(agreed.rows, _shards.losses(agreed, further, main_grad, owner))
    index = -100 if ignore_index is None else arguments.check_ignore_index(ignore_index)
    arguments.check_reduction(reduction)
    _check_temperature(temperature)
    rows = arguments.check_rows(input, linear_weight, target, linear_bias, weight_layout, shift, index)
    scaling = arguments.check_scaling(rows.temperatures(temperature), softcap, logit_scale, rows.values)
    main_grad = main_grad_of(rows, linear_weight)
    inputs = [
        rows.hidden, rows.weight, rows.bias, rows.target, scaling.row_temperature, scaling.temperature, scaling.softcap, index,
        arguments.check_exact(exact, rows), *others(rows, rows.weight.shape[0], _wants(rows, reduction, main_grad)),
    ]  # fmt: skip
    with _operators.AsTorch():
        return chosen(rows, _loss(rows, inputs, main_grad, owner))


@overload
def linear_logp(  # type: ignore[overload-overlap]  # a str is a sequence of them
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Optional[Tensor] = ..., outputs: str = ...,
    temperature: Union[float, Tensor] = ..., softcap: Optional[float] = ..., logit_scale: float = ..., ignore_index: Optional[int] = ...,
    memory_budget: int = ..., weight_layout: str = ..., shift: bool = ..., exact: bool = ..., process_group: Any = ...,
) -> Tensor: ...  # fmt: skip
@overload
def linear_logp(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Optional[Tensor] = ..., outputs: Sequence[str],
    temperature: Union[float, Tensor] = ..., softcap: Optional[float] = ..., logit_scale: float = ..., ignore_index: Optional[int] = ...,
    memory_budget: int = ..., weight_layout: str = ..., shift: bool = ..., exact: bool = ..., process_group: Any = ...,
) -> tuple[Tensor, ...]: ...  # fmt: skip
def linear_logp(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Optional[Tensor] = None,
    outputs: Union[str, Sequence[str]] = "logp",
    temperature: Union[float, Tensor] = 1.0,
    softcap: Optional[float] = None,
    logit_scale: float = 1.0,
    ignore_index: Optional[int] = -100,
    memory_budget: int = 0,
    weight_layout: str = "vd",
    shift: bool = False,
    exact: bool = False,
    process_group: Any = None,
) -> Union[Tensor, tuple[Tensor, ...]]:
    """Log-probabilities of target under softmax(input @ linear_weight.T + linear_bias), and other outputs of the same pass, without storing the logits.

    Differentiable in logp, lse and entropy by input, linear_weight and linear_bias; in logp and lse by a tensor of temperatures too.

    Args:
        input, linear_weight, target, linear_bias, temperature, softcap, logit_scale, weight_layout, shift, exact, process_group: as
            for linear_cross_entropy.
        outputs: a name, or a sequence of names, of "logp", "lse", "entropy" (in nats) and "argmax".
        ignore_index: rows with this target get logp 0 and have no part in any gradient; their lse, entropy and argmax are those of their logits all the same,
            so that a mean over the others needs a mask. None: no row is ignored.
        memory_budget: the size of the workspace in bytes. More memory means fewer operations. 0: the library's default. In a differentiable call for "logp",
            or with ignore_index=None for "lse" too, autograd keeps the workspace until the backward, which recomputes only the logits that it had no room
            for. Other calls, and all under torch.compile and torch.func, keep nothing, and their backward recomputes all logits in a workspace of that size.

    Returns:
        The outputs in the order of their names, one tensor for a name and a tuple for a sequence: [...] in float32, argmax in int32.

    Raises:
        TypeError, ValueError, NotImplementedError, IndexError: as linear_cross_entropy. NotImplementedError also: the entropy's derivative by the temperature.
    """
    call = _shards.call_of(process_group, input, linear_weight, target, linear_bias, weight_layout)
    if call is not None:
        wanted = tuple(_has(outputs, name) for name in ("entropy", "argmax"))
        with _operators.AsTorch():
            agreed = _shards.agree(
                call, weight_layout, shift, ignore_index, temperature, softcap, logit_scale, exact,
                lambda rows: (_check_budget(memory_budget), _check_outputs(outputs)), outputs=wanted,
            )  # fmt: skip
            budget, names = agreed.checked
            results = _shards.statistics(agreed, wanted, budget)
        return _chosen(agreed.rows, results, outputs, names)
    names = _check_outputs(outputs)
    index = arguments.check_ignore_index(ignore_index)
    rows = arguments.check_rows(input, linear_weight, target, linear_bias, weight_layout, shift, index)
    by_temperature = arguments.wants_gradient(temperature)
    if by_temperature and "entropy" in names:
        raise NotImplementedError(
            "temperature: got a tensor that requires a gradient, and there is none of the entropy by it; outputs without 'entropy' have one"
        )
    temperature = rows.temperatures(temperature)
    given = temperature.detach() if by_temperature else temperature
    scaling = arguments.check_scaling(given, softcap, logit_scale, rows.values)
    with _operators.AsTorch():
        results = _operators.linear_logp(
            (rows.hidden, rows.weight, rows.bias, rows.target, scaling.row_temperature, scaling.temperature, scaling.softcap, index,
             arguments.check_exact(exact, rows)),
            "lse" in names, "entropy" in names or by_temperature, "argmax" in names, _check_budget(memory_budget),
        )  # fmt: skip
    if by_temperature:
        results = _by_temperature(results, rows.target, index, rows.padded(temperature, 1.0), float(logit_scale))
    return _chosen(rows, results, outputs, names)


def _chosen(rows: arguments.Rows, results: Sequence[Tensor], outputs: Any, names: Sequence[str]) -> Union[Tensor, tuple[Tensor, ...]]:
    chosen = tuple(rows.results(results[_OUTPUTS.index(name)]) for name in names)
    return chosen[0] if isinstance(outputs, str) else chosen


def _by_temperature(results: Sequence[Tensor], target: Tensor, index: Optional[int], temperature: Tensor, logit_scale: float) -> tuple[Tensor, ...]:
    """The operator's results, with derivatives of logp and lse by the temperature T.

    With logits s = z / T, d logp / dT = -(logp + entropy) / T and d lse / dT = -(lse - entropy) / T, because sum_v p s = lse - entropy. They are 0 in ignored
    rows, whatever stands there, and where the operator takes the nearest divisor that it can use in place of T.
    """
    logp, lse, entropy, argmax = results
    entropy, each = entropy.detach(), temperature.reshape(-1)
    given = each.detach().to(torch.float32)
    divisor = given / logit_scale
    constant = (divisor < arguments.DIVISORS[0]) | (divisor > arguments.DIVISORS[1])
    if index is not None:
        constant = constant | (target == index)
    factor = -1 / given
    logp = _operators.ByTemperature.apply(logp, torch.where(constant, 0.0, factor * (logp.detach() + entropy)), each)
    lse = _operators.ByTemperature.apply(lse, torch.where(constant, 0.0, factor * (lse.detach() - entropy)), each)
    return logp, lse, entropy, argmax


def _names(outputs: Any, wanted: str) -> tuple[str, ...]:
    if not isinstance(outputs, Sequence):
        raise arguments.wrong(TypeError, "outputs", arguments.type_name(outputs), wanted)
    return tuple(outputs)


def _check_outputs(outputs: Any) -> tuple[str, ...]:
    wanted = "a name or several names of " + ", ".join(map(repr, _OUTPUTS))
    names = (outputs,) if isinstance(outputs, str) else _names(outputs, wanted)
    if not names or any(name not in _OUTPUTS for name in names):
        raise arguments.wrong(ValueError, "outputs", repr(outputs), wanted)
    return names


def _has(outputs: Any, name: str) -> bool:
    """Whether outputs, which are not checked yet, have this name."""
    return name in ((outputs,) if isinstance(outputs, str) else outputs) if isinstance(outputs, Sequence) else False


def _check_token_loss(loss: Any, inputs: Any, parameters: Any, outputs: Any) -> tuple[TokenLoss, list[float]]:
    if not isinstance(inputs, Mapping):
        raise arguments.wrong(TypeError, "inputs", arguments.type_name(inputs), "a mapping from names to tensors")
    chosen = ready_made(loss, inputs) if isinstance(loss, str) else loss
    if not isinstance(chosen, TokenLoss):
        raise arguments.wrong(TypeError, "loss", arguments.type_name(loss), "a name or a fusedlogp.TokenLoss")
    wanted = "a sequence of names of 'logp', 'lse' and 'entropy'"
    if isinstance(outputs, str):
        raise arguments.wrong(TypeError, "outputs", "str", wanted)
    if any(name not in ("logp", "lse", "entropy") for name in _names(outputs, wanted)):
        raise arguments.wrong(ValueError, "outputs", repr(outputs), wanted)
    return chosen, chosen.numbers(parameters)


def _token_inputs(chosen: TokenLoss, inputs: Mapping[str, Tensor], rows: arguments.Rows) -> list[Tensor]:
    chosen.check_inputs(inputs)
    return [rows.values(f"inputs[{name!r}]", inputs[name], of_sequences=True) for name in chosen.inputs]


@overload
def policy_loss(  # type: ignore[overload-overlap]  # () is one too
    input: Tensor, linear_weight: Tensor, target: Tensor, inputs: Mapping[str, Tensor], *, loss: Union[str, TokenLoss] = ...,
    parameters: Optional[Mapping[str, float]] = ..., linear_bias: Optional[Tensor] = ..., reduction: str = ..., token_weight: Optional[Tensor] = ...,
    ignore_index: Optional[int] = ..., temperature: Union[float, Tensor] = ..., softcap: Optional[float] = ..., logit_scale: float = ...,
    memory_budget: int = ..., weight_layout: str = ..., shift: bool = ..., exact: bool = ..., outputs: tuple[()] = ..., process_group: Any = ...,
) -> Tensor: ...  # fmt: skip
@overload
def policy_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, inputs: Mapping[str, Tensor], *, loss: Union[str, TokenLoss] = ...,
    parameters: Optional[Mapping[str, float]] = ..., linear_bias: Optional[Tensor] = ..., reduction: str = ..., token_weight: Optional[Tensor] = ...,
    ignore_index: Optional[int] = ..., temperature: Union[float, Tensor] = ..., softcap: Optional[float] = ..., logit_scale: float = ...,
    memory_budget: int = ..., weight_layout: str = ..., shift: bool = ..., exact: bool = ..., outputs: Sequence[str], process_group: Any = ...,
) -> tuple[Tensor, ...]: ...  # fmt: skip
def policy_loss(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    inputs: Mapping[str, Tensor],
    *,
    loss: Union[str, TokenLoss] = "grpo",
    parameters: Optional[Mapping[str, float]] = None,
    linear_bias: Optional[Tensor] = None,
    reduction: str = "mean",
    token_weight: Optional[Tensor] = None,
    ignore_index: Optional[int] = None,
    temperature: Union[float, Tensor] = 1.0,
    softcap: Optional[float] = None,
    logit_scale: float = 1.0,
    memory_budget: int = 0,
    weight_layout: str = "vd",
    shift: bool = False,
    exact: bool = False,
    outputs: Sequence[str] = (),
    process_group: Any = None,
) -> Union[Tensor, tuple[Tensor, ...]]:
    """A loss made of each token's log-probability (and entropy, lse, ...), with its gradients, without storing the logits.

    Args:
        input, linear_weight, target, linear_bias, temperature, softcap, logit_scale, memory_budget, weight_layout, shift, exact, ignore_index,
            reduction, token_weight, process_group: as for linear_cross_entropy. For a mean over tokens, use "mean" with a mask as token_weight; for a mean
            over sequences, use "sum" with token_weight = mask / (tokens of the sequence) / (sequences).
        inputs: the arrays that the loss takes, by name: "advantages", "old_logp" and so on, each in a floating dtype and [...], or for target [..., T] also
            [..., 1], a value for each sequence. They get no gradients.
        loss: "reinforce", "ppo", "dapo", "grpo" (which adds its divergence if "reference_logp" is among inputs), "dual_clip", "cispo", "gspo_token", or a
            TokenLoss of your own.
        parameters: values for the loss's numbers (clip_low, clip_high, clip_dual, kl_scale) in place of their defaults.
        outputs: names of "logp", "lse" and "entropy", which are returned besides the loss, without derivatives, and are 0 in ignored rows.

    Returns:
        The loss in float32, a scalar or [...]; with outputs a tuple of the loss and the outputs, these [...] in float32.

    Raises:
        As linear_cross_entropy. ValueError also: inputs or parameters has a name that the loss does not have, or inputs lacks one.
    """
    call = _shards.call_of(process_group, input, linear_weight, target, linear_bias, weight_layout)
    if call is not None:

        def check(rows: arguments.Rows) -> list:
            chosen, numbers = _check_token_loss(loss, inputs, parameters, outputs)
            _check_temperature(temperature)
            return _policy_inputs(chosen, numbers, inputs, rows, reduction, token_weight, outputs, memory_budget, (False, False, False))

        index = -100 if ignore_index is None else ignore_index
        name = loss if isinstance(loss, str) else getattr(loss, "name", "")
        agreed = _shards.agree(
            call, weight_layout, shift, index, temperature, softcap, logit_scale, exact, check,
            lambda checked: {
                "loss": name, "parameters": tuple(checked[4]), "reduction": reduction, "token_weight": token_weight is not None, "loss_outputs": tuple(outputs),
            },
        )  # fmt: skip
        with _operators.AsTorch():
            return _policy_results(agreed.rows, _shards.losses(agreed, agreed.checked), reduction, outputs)
    chosen, numbers = _check_token_loss(loss, inputs, parameters, outputs)
    index = -100 if ignore_index is None else arguments.check_ignore_index(ignore_index)
    _check_temperature(temperature)
    rows = arguments.check_rows(input, linear_weight, target, linear_bias, weight_layout, shift, index)
    scaling = arguments.check_scaling(rows.temperatures(temperature), softcap, logit_scale, rows.values)
    wants = _wants(rows, reduction)
    given = [
        rows.hidden, rows.weight, rows.bias, rows.target, scaling.row_temperature, scaling.temperature, scaling.softcap, index,
        arguments.check_exact(exact, rows),
        *_policy_inputs(chosen, numbers, inputs, rows, reduction, token_weight, outputs, memory_budget, wants),
    ]  # fmt: skip
    with _operators.AsTorch():
        return _policy_results(rows, _loss(rows, given, None), reduction, outputs)


def _policy_inputs(
    chosen: TokenLoss, numbers: list[float], inputs: Mapping[str, Tensor], rows: arguments.Rows, reduction: Any, token_weight: Any, outputs: Any,
    memory_budget: Any, wants: Sequence[bool],
) -> list:  # fmt: skip
    """linear_cross_entropy's inputs from class_weight on."""
    arrays = _token_inputs(chosen, inputs, rows)
    return [
        None, _token_weight(token_weight, rows), None, torch.stack(arrays) if arrays else None, numbers, chosen.id,
        arguments.check_reduction(reduction), 0.0, 0.0, "entropy" in outputs, *wants, _check_budget(memory_budget), 0.0,
    ]  # fmt: skip


def _policy_results(rows: arguments.Rows, results: Sequence[Tensor], reduction: str, outputs: Sequence[str]) -> Union[Tensor, tuple[Tensor, ...]]:
    value = rows.results(results[0]) if reduction == "none" else results[0]
    if not outputs:
        return value
    return (value, *(rows.results(results[1 + ("logp", "lse", "entropy").index(name)]) for name in outputs))


@overload
def logits_logp(  # type: ignore[overload-overlap]  # a str is a sequence of them
    logits: Tensor, target: Tensor, *, outputs: str = ..., temperature: Union[float, Tensor] = ..., softcap: Optional[float] = ...,
    logit_scale: float = ..., ignore_index: Optional[int] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def logits_logp(
    logits: Tensor, target: Tensor, *, outputs: Sequence[str], temperature: Union[float, Tensor] = ..., softcap: Optional[float] = ...,
    logit_scale: float = ..., ignore_index: Optional[int] = ...,
) -> tuple[Tensor, ...]: ...  # fmt: skip
def logits_logp(
    logits: Tensor,
    target: Tensor,
    *,
    outputs: Union[str, Sequence[str]] = "logp",
    temperature: Union[float, Tensor] = 1.0,
    softcap: Optional[float] = None,
    logit_scale: float = 1.0,
    ignore_index: Optional[int] = -100,
) -> Union[Tensor, tuple[Tensor, ...]]:
    """The outputs of linear_logp for logits [..., V] (bfloat16, float16, float32; any row stride) that exist already, by reading them once.

    Differentiable in logp, lse and entropy by logits. Arguments, results and errors as linear_logp's.
    """
    names = _check_outputs(outputs)
    index = arguments.check_ignore_index(ignore_index)
    arguments.check_floats("logits", logits)
    if logits.dim() < 1 or logits.shape[-1] < 1:
        raise arguments.wrong(ValueError, "logits' shape", tuple(logits.shape), "(..., V) with V at least 1")
    target = arguments.check_target(target, logits.shape[:-1], logits)

    def each(name: str, value: Tensor, _padding: float) -> Tensor:
        return arguments.row_values(name, value, logits, target.shape).reshape(-1).contiguous()

    scaling = arguments.check_scaling(arguments.of_all_rows(temperature, target.shape, logits), softcap, logit_scale, each)
    with _operators.AsTorch():
        results = _operators.call(
            "logits_logp",
            arguments.rows_of(logits), target.reshape(-1).contiguous(), scaling.row_temperature, scaling.temperature, scaling.softcap, index,
            "entropy" in names, "argmax" in names,
        )  # fmt: skip
    chosen = tuple(results[_OUTPUTS.index(name)].reshape(target.shape) for name in names)
    return chosen[0] if isinstance(outputs, str) else chosen


def weighted_sum(x: Tensor, w: Tensor) -> Tensor:
    """The sum over D of x [..., D] times w [D], computed in float32: [...] in x's dtype.

    x and w are bfloat16, float16 or float32, and may have different dtypes. Differentiable by both.

    Raises:
        TypeError, ValueError: the text names the argument, what it was and what was wanted.
    """
    arguments.check_floats("x", x)
    arguments.check_floats("w", w)
    arguments.check_same_device("w", w, x)
    if x.dim() < 1 or x.shape[-1] < 1:
        raise arguments.wrong(ValueError, "x's shape", tuple(x.shape), "(..., D) with D at least 1")
    arguments.check_shape("w", w, (x.shape[-1],))
    return _operators.call("weighted_sum", arguments.rows_of(x), w.contiguous()).reshape(x.shape[:-1])

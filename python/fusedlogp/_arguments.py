"""Checks a caller's arguments and brings them into the form that the operators take: rows in one dimension, strides that they can read."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Union

import torch
from torch import Tensor
from torch.autograd import forward_ad

FLOATS = (torch.bfloat16, torch.float16, torch.float32)
REDUCTIONS = {"mean": 0, "sum": 1, "none": 2}
# What the library divides logits by, from a row's tensor of temperatures: one outside of this range counts as the nearest of the two.
DIVISORS = (2.0**-64, 2.0**64)


def wrong(kind: type, name: str, got: Any, wanted: str) -> Exception:
    return kind(f"{name}: got {got}, wanted {wanted}")


def type_name(value: Any) -> str:
    """With the module that it is of: numpy.bool is no bool."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def refuse_tangents(values: Iterable[Any], name: str = "an argument") -> None:
    """Refuses dual tensors of forward-mode AD: the operators, which do not see their tangents, would give results without any."""
    if forward_ad._current_level < 0 or torch.compiler.is_compiling():
        return
    for value in values:
        if isinstance(value, Tensor) and forward_ad.unpack_dual(value).tangent is not None:
            raise NotImplementedError(f"{name}: got a dual tensor, and derivatives in forward mode (jvp) are not implemented; use those in reverse mode")


def is_dtensor(value: Any) -> bool:
    if type(value) in (Tensor, torch.nn.Parameter):  # a fast path: looking for an attribute that is not there takes longer
        return False
    return isinstance(value, Tensor) and hasattr(value, "device_mesh") and hasattr(value, "to_local")


def check_tensor(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise wrong(TypeError, name, type_name(value), "a torch.Tensor")
    if is_dtensor(value):
        raise wrong(TypeError, name, f"a DTensor with placements {tuple(value.placements)}", f"a torch.Tensor: {name}.to_local() or {name}.full_tensor()")
    refuse_tangents((value,), name)
    if value.layout is not torch.strided:
        raise wrong(TypeError, f"{name}'s layout", value.layout, "torch.strided")
    return value


def check_floats(name: str, value: Any) -> Tensor:
    if check_tensor(name, value).dtype not in FLOATS:
        raise wrong(TypeError, f"{name}'s dtype", value.dtype, "torch.bfloat16, torch.float16 or torch.float32")
    return value


def check_same_device(name: str, value: Tensor, other: Tensor) -> None:
    if value.device != other.device:
        raise wrong(ValueError, f"{name}'s device", value.device, f"{other.device}, as the first argument")


def check_shape(name: str, value: Tensor, *shapes: Any) -> None:
    """One of the shapes."""
    if not any(tuple(value.shape) == tuple(shape) for shape in shapes):
        raise wrong(ValueError, f"{name}'s shape", tuple(value.shape), " or ".join(str(tuple(shape)) for shape in shapes))


def check_number(name: str, value: Any, low: float, high: float, wanted: str) -> float:
    """wanted: of the number, as "from 0 to 1"."""
    if not isinstance(value, (int, float)) and isinstance(value, numbers.Real):
        value = float(value)  # numpy's
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(TypeError, name, type_name(value), f"a number {wanted}")
    if not low <= value <= high:
        raise wrong(ValueError, name, value, f"a number {wanted}")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong(TypeError, name, type_name(value), "a bool")
    return value


def check_integer(name: str, value: Any, wanted: str) -> int:
    """An int, or what stands for one (numpy.int64); no tensor, which may have to be waited for."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, (bool, Tensor)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise wrong(TypeError, name, type_name(value), wanted)


def check_count(name: str, value: Any, least: int, most: int = 2**63 - 1, other: str = "") -> int:
    wanted = f"an int of {least} to {most}{other}"
    value = check_integer(name, value, wanted)
    if not least <= value <= most:
        raise wrong(ValueError, name, value, wanted)
    return value


def check_choice(name: str, value: Any, choices: Any, wanted: str) -> str:
    if not isinstance(value, str):
        raise wrong(TypeError, name, type_name(value), f"a str: {wanted}")
    if value not in choices:
        raise wrong(ValueError, name, repr(value), wanted)
    return value


_LARGEST = sys.float_info.max  # which the Dynamo of torch 2.6 does not read within a function


def check_finite(name: str, value: Any) -> float:
    return check_number(name, value, -_LARGEST, _LARGEST, "that is finite")


def check_options(options: Any) -> None:
    """torch.nn.LinearCrossEntropyOptions, which torch has since 2.13. They have no effect here."""
    if options is not None and not isinstance(options, getattr(torch.nn, "LinearCrossEntropyOptions", ())):
        raise wrong(TypeError, "options", type_name(options), "a torch.nn.LinearCrossEntropyOptions or None")


def check_constant(name: str, value: Tensor) -> Tensor:
    if torch.is_grad_enabled() and value.requires_grad:
        raise NotImplementedError(f"{name}: got a tensor that requires a gradient, and there is none by it; {name}.detach() says that none is wanted")
    return value


def check_reduction(reduction: Any) -> int:
    return REDUCTIONS[check_choice("reduction", reduction, REDUCTIONS, "'mean', 'sum' or 'none'")]


def whole(name: str, value: Any) -> Any:
    """A DTensor that each rank has whole as its tensor here. Anything else is as it was."""
    if not is_dtensor(value):
        return value
    if not all(placement.is_replicate() for placement in value.placements):
        wanted = f"Replicate() alone: {name}.redistribute(placements=[Replicate()])"
        raise wrong(ValueError, f"{name}'s placements", tuple(value.placements), wanted)
    return value.to_local()


def row_values(name: str, value: Any, like: Tensor, *shapes: Any, integers: bool = False) -> Tensor:
    """value, which has a number for each row in one of the shapes, as fp32. It must not require a gradient. integers: whether it may have integers."""
    value = whole(name, value)
    check_constant(name, check_tensor(name, value))
    check_same_device(name, value, like)
    if value.dtype.is_complex or not (value.dtype.is_floating_point or value.dtype == torch.bool or integers):
        raise wrong(TypeError, f"{name}'s dtype", value.dtype, f"a floating dtype{', a dtype of integers' if integers else ''} or torch.bool")
    check_shape(name, value, *shapes)
    return value.detach().to(torch.float32)


def of_all_rows(value: Any, shape: Any, like: Tensor) -> Any:
    """A tensor without dimensions is a number for all rows, also one on the CPU, as in torch's operators. Anything else is as it was."""
    return value.to(like.device).expand(shape) if isinstance(value, Tensor) and value.dim() == 0 else value


def rows_of(value: Tensor) -> Tensor:
    """[..., D] as [N, D] whose rows are contiguous; copies only where the strides make that necessary."""
    rows = value if value.dim() == 2 else value.reshape(-1, value.shape[-1])
    if rows.shape[1] > 1 and rows.stride(1) != 1 or rows.shape[0] > 1 and rows.stride(0) < rows.shape[1]:
        rows = rows.clone(memory_format=torch.contiguous_format)  # contiguous() would leave the strides of no rows as they are
    return rows


def order_of(matrix: Tensor) -> int:
    """How a matrix [V, D] is stored: 0: as [V, D] with contiguous rows, 1: as [D, V] with contiguous rows, -1: otherwise."""
    # KEEP IN STEP: flp_torch_lies_transposed in python/binding/torch_linear.c.
    rows, columns = matrix.shape
    if (columns <= 1 or matrix.stride(1) == 1) and (rows <= 1 or matrix.stride(0) >= columns):
        return 0
    return 1 if (rows <= 1 or matrix.stride(0) == 1) and (columns <= 1 or matrix.stride(1) >= rows) else -1


def matrix_of(weight: Tensor) -> Tensor:
    """weight [V, D], stored as [V, D] or as [D, V] with contiguous rows; a copy where it is stored otherwise."""
    return weight if order_of(weight) >= 0 else weight.contiguous()


class Scaling(NamedTuple):
    """What happens to a logit: softcap(logit) / temperature, in the operators' terms."""

    temperature: float
    softcap: float
    row_temperature: Optional[Tensor]


def wants_gradient(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad and torch.is_grad_enabled()


def _quotient(name: str, value: Any, scale: float, exponent: int) -> Any:
    """What the library takes for value behind logit_scale."""
    if not 2.0**-exponent <= value / scale <= 2.0**exponent:
        raise wrong(ValueError, f"{name} / logit_scale", value / scale, f"a number from 2^-{exponent} to 2^{exponent}")
    return value / scale


def check_scaling(temperature: Union[float, Tensor], softcap: Optional[float], logit_scale: float, values: Callable[..., Tensor]) -> Scaling:
    """values: from a name and a tensor of a number for each row to its contiguous fp32 [N]."""
    scale = check_number("logit_scale", logit_scale, 2.0**-60, 2.0**60, "from 2^-60 to 2^60")
    cap = math.inf if softcap is None else check_number("softcap", softcap, 2.0**-60, math.inf, "from 2^-60 on, or None")
    # c tanh(s z / c) / T = (c / s) tanh(z / (c / s)) / (T / s)
    # No math.isinf, which torch.compile cannot trace of a number that it takes for a variable.
    cap = 0.0 if cap == math.inf else _quotient("softcap", cap, scale, 126)
    if isinstance(temperature, Tensor):
        return Scaling(1.0, cap, values("temperature", temperature, 1.0) / scale)
    each = check_number("temperature", temperature, 2.0**-60, 2.0**60, "from 2^-60 to 2^60, or a tensor of one for each row or for all")
    return Scaling(_quotient("temperature", each, scale, 64), cap, None)


class Rows(NamedTuple):
    """The arguments that all linear operators begin with."""

    hidden: Tensor
    weight: Tensor
    bias: Optional[Tensor]
    target: Tensor
    shape: Sequence[int]  # of results: target's, one position shorter where it was shifted
    shifted: bool

    def full_shape(self) -> tuple:
        """The shape of arguments that have a value for each row: target's."""
        return (*self.shape[:-1], self.shape[-1] + 1) if self.shifted else tuple(self.shape)

    def padded(self, value: Any, padding: float) -> Tensor:
        """With shift a value for each result becomes one for each row: the last position's has no part in anything."""
        return torch.nn.functional.pad(value, (0, 1), value=padding) if self.shifted and value.shape == self.shape else value

    def values(self, name: str, value: Any, padding: float = 0.0, integers: bool = False, of_sequences: bool = False) -> Tensor:
        """A number for each row, or with shift for each result, as contiguous fp32 [N]; no derivatives by it. integers: as for row_values. of_sequences:
        a number for each sequence of rows, [..., 1] where the rows are [..., T], is taken too."""
        full = self.full_shape()
        of_each = (*full[:-1], 1) if of_sequences and len(full) > 1 else full
        shapes = [full, *([tuple(self.shape)] if self.shifted else []), *([] if of_each is full else [of_each])]
        value = row_values(name, value, self.hidden, *shapes, integers=integers)
        if value.shape == of_each:
            value = value.expand(full)
        return self.padded(value, padding).reshape(-1).contiguous()

    def temperatures(self, temperature: Any) -> Any:
        """A tensor has a temperature for each row, then, or for each result."""
        return of_all_rows(whole("temperature", temperature), self.full_shape(), self.hidden)

    def results(self, value: Tensor) -> Tensor:
        """[N] in the caller's shape."""
        if self.shifted:
            return value.reshape(self.full_shape())[..., :-1]
        return value if value.shape == self.shape else value.reshape(self.shape)


def check_exact(exact: Any, rows: Rows) -> bool:
    if check_flag("exact", exact) and rows.hidden.dtype != torch.float32:
        raise wrong(ValueError, "exact", f"True with {rows.hidden.dtype}", "False, or inputs in torch.float32 outside of autocast")
    return exact


def check_ignore_index(ignore_index: Any) -> Optional[int]:
    if ignore_index is None:
        return None
    ignore_index = check_integer("ignore_index", ignore_index, "an int or None")
    if not -(2**63) <= ignore_index < 2**63:
        raise wrong(ValueError, "ignore_index", ignore_index, "an int of 64 bits")
    return ignore_index


def check_target(target: Any, shape: Any, like: Tensor) -> Tensor:
    check_tensor("target", target)
    if target.dtype.is_floating_point:
        raise NotImplementedError(
            f"target: got {target.dtype}, class probabilities, which are not implemented; wanted class indices in torch.int64 or torch.int32 "
            "(of one-hot rows target.argmax(-1); rows that are smoothed evenly are label_smoothing)"
        )
    if target.dtype not in (torch.int64, torch.int32):
        raise wrong(TypeError, "target's dtype", target.dtype, "torch.int64 or torch.int32")
    check_same_device("target", target, like)
    check_shape("target", target, shape)
    return target


def _autocast(value: Tensor) -> Optional[torch.dtype]:
    kind = value.device.type
    known = kind in ("cpu", "cuda") or torch.amp.is_autocast_available(kind)
    return torch.get_autocast_dtype(kind) if known and torch.is_autocast_enabled(kind) else None


def check_rows(
    input: Any, linear_weight: Any, target: Any, linear_bias: Any, weight_layout: Any, shift: Any, ignore_index: Optional[int], empty: bool = False
) -> Rows:
    """Checks the arguments that all linear operators begin with. empty: a weight without entries, as a shard of the vocabulary may be, is accepted."""
    check_floats("input", input)
    check_floats("linear_weight", linear_weight)
    check_choice("weight_layout", weight_layout, ("vd", "dv"), "'vd' ([V, D]) or 'dv' ([D, V])")
    if input.dim() < 1:
        raise wrong(ValueError, "input's shape", tuple(input.shape), "(..., D)")
    if linear_weight.dim() > 2:
        raise NotImplementedError(f"linear_weight: got {linear_weight.dim()} dimensions, a loss of several dimensions, which is not implemented; wanted 2")
    if linear_weight.dim() < 2:
        raise wrong(ValueError, "linear_weight's shape", tuple(linear_weight.shape), "two dimensions")
    check_same_device("linear_weight", linear_weight, input)
    dtype = _autocast(input)
    if dtype in FLOATS:
        input, linear_weight = input.to(dtype), linear_weight.to(dtype)
    if input.dtype != linear_weight.dtype:
        raise wrong(TypeError, "linear_weight's dtype", linear_weight.dtype, f"input's {input.dtype}")
    weight = linear_weight.t() if weight_layout == "dv" else linear_weight
    if weight.shape[1] != input.shape[-1] or weight.shape[1] == 0 or (weight.shape[0] == 0 and not empty):
        wanted = f"D = {input.shape[-1]}, input's last dimension, and V, at least 1 each"
        raise wrong(ValueError, f"linear_weight's shape ({weight_layout})", tuple(linear_weight.shape), wanted)
    if linear_bias is not None:
        check_floats("linear_bias", linear_bias)
        check_same_device("linear_bias", linear_bias, input)
        check_shape("linear_bias", linear_bias, (weight.shape[0],))
        linear_bias = linear_bias.contiguous()
    target = check_target(target, input.shape[:-1], input)
    shape = target.shape
    shifted = check_flag("shift", shift)
    if shifted:
        if target.dim() < 1 or target.shape[-1] < 1:
            raise wrong(ValueError, "target's shape with shift", tuple(target.shape), "(..., T) with T at least 1")
        if ignore_index is None:
            raise wrong(ValueError, "ignore_index with shift", None, "the target of the last position")
        if target.dtype == torch.int32 and not -(2**31) <= ignore_index < 2**31:
            raise wrong(ValueError, "ignore_index with shift", ignore_index, "the target of the last position, in target's torch.int32")
        # The targets are shifted, not the hidden states, which would have to be copied.
        target = torch.nn.functional.pad(target[..., 1:], (0, 1), value=ignore_index)
        shape = (*shape[:-1], shape[-1] - 1)
    target = target if target.dim() == 1 else target.reshape(-1)
    return Rows(rows_of(input), matrix_of(weight), linear_bias, target.contiguous(), shape, shifted)

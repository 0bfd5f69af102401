"""The functions as torch modules."""

from __future__ import annotations

import inspect
from typing import Any, Optional, Sequence

import torch
from torch import Tensor

from . import _arguments as arguments
from .functional import linear_cross_entropy

__all__ = ["LinearCrossEntropyLoss"]

_OWN = ("input", "linear_weight", "target", "linear_bias", "weight", "reduction", "ignore_index", "label_smoothing", "options")
_OTHERS = tuple(name for name in inspect.signature(linear_cross_entropy).parameters if name not in _OWN)


def _check_device(device: Any) -> None:
    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        kind = ValueError if isinstance(device, str) else TypeError
        raise arguments.wrong(kind, "device", repr(device) if isinstance(device, str) else arguments.type_name(device), "a torch.device or its name") from error


def _check_names(others: Any) -> None:
    for name in others:
        if name not in _OTHERS:
            raise TypeError(f"an argument by name: got {name}, wanted those of linear_cross_entropy: {', '.join(_OTHERS)}")


def _shown(value: Any) -> str:
    return f"<tensor {tuple(value.shape)}>" if isinstance(value, Tensor) else repr(value)


class LinearCrossEntropyLoss(torch.nn.Module):
    """linear_cross_entropy with a Linear of its own, as torch.nn.LinearCrossEntropyLoss.

    Args:
        in_features: D.
        num_classes: V.
        out_features: torch's argument for losses of several dimensions; only () is implemented.
        bias: whether the Linear has one.
        device, dtype: of the Linear.
        weight, reduction, ignore_index, label_smoothing, options, and others by name (softcap, temperature, z_loss, ...): as for linear_cross_entropy.

    Raises:
        NotImplementedError: out_features is not (). TypeError, ValueError: an argument is not as above; the values of others are only checked by a call.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Optional[torch.dtype] = None,
        reduction: str = "mean",
        weight: Optional[Tensor] = None,
        ignore_index: Optional[int] = None,
        label_smoothing: float = 0.0,
        options: Any = None,
        **others: Any,
    ) -> None:
        super().__init__()
        in_features = arguments.check_count("in_features", in_features, 1)
        num_classes = arguments.check_count("num_classes", num_classes, 1)
        if not isinstance(out_features, Sequence):
            raise arguments.wrong(TypeError, "out_features", arguments.type_name(out_features), "a tuple, of which () alone is implemented")
        if tuple(out_features) != ():
            raise NotImplementedError(f"out_features: got {tuple(out_features)}, a loss of several dimensions, which is not implemented; wanted ()")
        arguments.check_flag("bias", bias)
        chosen = torch.get_default_dtype() if dtype is None else dtype
        if chosen not in arguments.FLOATS:
            raise arguments.wrong(TypeError, "dtype", chosen, "torch.bfloat16, torch.float16 or torch.float32")
        if device is not None:
            _check_device(device)
        if weight is not None:
            arguments.check_shape("weight", arguments.check_floats("weight", weight), (num_classes,))
        arguments.check_reduction(reduction)
        ignore_index = arguments.check_ignore_index(ignore_index)
        label_smoothing = arguments.check_number("label_smoothing", label_smoothing, 0.0, 1.0, "from 0 to 1")
        arguments.check_options(options)
        _check_names(others)
        self.num_classes, self.out_features = num_classes, ()
        self.reduction = reduction
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.others = others
        self.register_buffer("weight", weight)
        self.weight: Optional[Tensor]
        self.linear = torch.nn.Linear(in_features, num_classes, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor, **others: Any) -> Any:
        """input [..., D], target [...]; others: arguments of this call alone (token_weight, temperature, ...)."""
        return linear_cross_entropy(
            input,
            self.linear.weight,
            target,
            linear_bias=self.linear.bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
            **{**self.others, **others},
        )

    def extra_repr(self) -> str:
        shown = {"num_classes": self.num_classes, "reduction": self.reduction, "ignore_index": self.ignore_index, "label_smoothing": self.label_smoothing}
        if self.weight is not None:
            shown["weight"] = self.weight
        if self.options is not None:
            shown["options"] = self.options
        return ", ".join(f"{name}={_shown(value)}" for name, value in {**shown, **self.others}.items())

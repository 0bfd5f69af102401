"""The functions as modules."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .functional import linear_cross_entropy

__all__ = ["LinearCrossEntropyLoss"]


class LinearCrossEntropyLoss(torch.nn.Module):
    """linear_cross_entropy with a Linear of its own, as torch.nn.LinearCrossEntropyLoss.

    Args:
        in_features: D.
        num_classes: V.
        out_features: torch's, for losses of several dimensions: () alone is implemented.
        bias: whether the Linear has one.
        device, dtype: of the Linear.
        weight, reduction, ignore_index, label_smoothing, options, and others by name (softcap, temperature, z_loss, ...): as linear_cross_entropy's.

    Raises:
        NotImplementedError: out_features is not (). ValueError: weight's shape, or label_smoothing.
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
        if tuple(out_features) != ():
            raise NotImplementedError(f"out_features: got {tuple(out_features)}, a loss of several dimensions, which is not implemented; wanted ()")
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ValueError(f"weight's shape: got {tuple(weight.shape)}, wanted ({num_classes},)")
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"label_smoothing: got {label_smoothing}, wanted 0 to 1")
        self.num_classes = num_classes
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
        return f"num_classes={self.num_classes}, reduction={self.reduction!r}, ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}"

"""What torch.utils.flop_counter counts of the linear operators: 2 N V D for each product of matrices of that size. Logits count again where an operator
begins without them, as linear_logp's backward does from the rows' statistics; that a plan computes some twice in one operator, for want of workspace, shapes do
not say."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Callable

import torch

_ops = torch.ops.fusedlogp
_COUNTER = "torch.utils.flop_counter"
# The products of an operator that gives so many of the gradients of hidden and weight.
_PRODUCTS: dict[str, Callable[[int], int]] = {
    "linear_logp": lambda gradients: 1,
    "linear_logp_saving": lambda gradients: 1,
    "linear_logp_partials": lambda gradients: 1,
    "linear_logp_merge": lambda gradients: 0,
    "linear_logp_backward": lambda gradients: 1 + gradients,
    "linear_logp_backward_partial": lambda gradients: 1 + gradients,
    "linear_logp_backward_saved": lambda gradients: gradients,
    "linear_cross_entropy": lambda gradients: 1 + gradients,
    "linear_cross_entropy_accumulate": lambda gradients: 1 + gradients,
    "linear_cross_entropy_partials": lambda gradients: 1,
    "linear_cross_entropy_merge": lambda gradients: 1 + gradients if gradients else 0,
    "linear_cross_entropy_merge_accumulate": lambda gradients: 1 + gradients if gradients else 0,
}


def _formula(op: Any, products: Callable[[int], int]) -> Callable[..., int]:
    names = [argument.name for argument in op.default._schema.arguments]

    def flops(*shapes: Any, out_shape: Any = None, **named: Any) -> int:
        given = {**dict(zip(names, shapes)), **named}
        rows, columns = given["hidden"]
        gradients = bool(given.get("want_hidden")) + bool(given.get("want_weight"))
        return products(gradients) * 2 * rows * columns * given["weight"][0]

    return flops


def _register(counter: Any) -> None:
    for name, products in _PRODUCTS.items():
        op = getattr(_ops, name)
        counter.register_flop_formula(op)(_formula(op, products))


class _BehindItsImport(importlib.abc.MetaPathFinder):
    """Registers the formulas when torch's module is imported: by itself it loads triton, which takes longer than all of this package."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != _COUNTER:
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                _register(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Now, or as soon as torch.utils.flop_counter is there."""
    if _COUNTER in sys.modules:
        _register(sys.modules[_COUNTER])
    else:
        sys.meta_path.insert(0, _BehindItsImport())

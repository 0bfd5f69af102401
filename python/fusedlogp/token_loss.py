"""Losses of one token as expressions: ready-made ones, and the caller's own."""

from __future__ import annotations

import ctypes
import hashlib
import re
from typing import Any, Mapping, Optional, Sequence

from . import _arguments as arguments
from ._library import library

_STATISTICS = ("logp", "lse", "entropy", "uniform", "class_weight")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


def _mapping(parameters: Any) -> Mapping[str, float]:
    if parameters is not None and not isinstance(parameters, Mapping):
        raise arguments.wrong(TypeError, "parameters", type(parameters).__name__, "a mapping from names to numbers, or None")
    return {} if parameters is None else parameters


class TokenLoss:
    """The loss of one token as an expression, from which its derivatives are made; policy_loss takes it.

    Args:
        expression: in Lua's syntax, of the statistics logp, lse, entropy, uniform (the mean of -log p over the vocabulary) and the names below. It may use
            + - * /, ^ with a whole number as the exponent, exp, log, min, max, abs, clamp(x, low, high), where(less(a, b), x, y) and detach(x).
            Statements may precede it if it ends in `return ...`.
        inputs: names of the arrays that a call passes, at most 8.
        parameters: names of numbers with their defaults, at most 8.

    Raises:
        TypeError, ValueError: an argument is not as above: a name is no identifier, occurs twice or is a statistic's; there are too many names; a number is
            not finite. An error in the expression is raised by the first call (RuntimeError).

    Example: TokenLoss("-advantages * logp - scale * entropy", inputs=("advantages",), parameters={"scale": 0.01})
    """

    def __init__(self, expression: str, inputs: Sequence[str] = (), parameters: Optional[Mapping[str, float]] = None, *, _ready_made: Optional[str] = None):
        if not isinstance(expression, str):
            raise arguments.wrong(TypeError, "expression", type(expression).__name__, "a str")
        if not expression.strip() and _ready_made is None:
            raise arguments.wrong(ValueError, "expression", repr(expression), "an expression of logp and others")
        if isinstance(inputs, str) or not isinstance(inputs, Sequence):
            raise arguments.wrong(TypeError, "inputs", type(inputs).__name__, "a sequence of names")
        self.inputs = tuple(inputs)
        self.parameters = {name: arguments.check_finite(f"parameters[{name!r}]", value) for name, value in _mapping(parameters).items()}
        names = [*self.inputs, *self.parameters]
        for name in names:
            if not isinstance(name, str) or not _NAME.match(name) or name in _STATISTICS or names.count(name) > 1:
                raise ValueError(f"a name of inputs or parameters: got {name!r}, wanted an identifier of its own, none of {', '.join(_STATISTICS)}")
        if len(self.inputs) > 8 or len(self.parameters) > 8:
            raise ValueError(f"inputs and parameters: got {len(self.inputs)} and {len(self.parameters)}, wanted at most 8 each")
        definition = None if _ready_made else self._define(expression)
        text = "\0".join([_ready_made or "", definition or "", ",".join(self.inputs), ",".join(self.parameters)])
        digest = hashlib.sha256(text.encode()).digest()
        # The same in each process, because compiled graphs contain it.
        self.id = int.from_bytes(digest[:7], "little") + 1
        self.name = _ready_made or "own_" + digest.hex()[:16]
        status = library.flp_torch_token_loss(
            ctypes.c_int64(self.id),
            self.name.encode(),
            definition.encode() if definition else None,
            ",".join(self.inputs).encode(),
            ",".join(self.parameters).encode(),
        )
        if status != 0:
            raise MemoryError("fusedlogp: too many token losses (256)")

    def _define(self, expression: str) -> str:
        used = set(re.findall(r"[A-Za-z_]\w*", expression))
        local = [f"local {name} = t.{name}" for name in (*_STATISTICS, *self.inputs, *self.parameters) if name in used]
        body = expression if re.search(r"\breturn\b", expression) else f"return {expression}"
        numbers = ", ".join(f'{{ "{name}", {value!r} }}' for name, value in self.parameters.items())
        arrays = ", ".join(f'"{name}"' for name in self.inputs)
        return f"return {{ inputs = {{ {arrays} }}, parameters = {{ {numbers} }}, loss = function(t)\n" + "\n".join(local) + f"\n{body}\nend }}\n"

    def numbers(self, given: Optional[Mapping[str, float]]) -> list[float]:
        """The parameters' values in order."""
        given = _mapping(given)
        for name in given:
            if name not in self.parameters:
                raise ValueError(f"parameters: got {name!r}, wanted names of {', '.join(self.parameters) or 'nothing'}")
        return [arguments.check_finite(f"parameters[{name!r}]", given.get(name, default)) for name, default in self.parameters.items()]

    def check_inputs(self, given: Mapping[str, Any]) -> None:
        if set(given) != set(self.inputs):
            raise ValueError(f"inputs: got {', '.join(sorted(map(str, given))) or 'nothing'}, wanted {', '.join(self.inputs) or 'nothing'}")


_CLIPPED = {"clip_low": 0.2, "clip_high": 0.2}
_READY: dict[str, TokenLoss] = {}


def _make(name: str) -> TokenLoss:
    if name == "reinforce":
        return TokenLoss("-advantages * logp", ("advantages",))
    if name == "grpo_kl":
        return TokenLoss("", ("advantages", "old_logp", "reference_logp"), _CLIPPED | {"kl_scale": 0.05}, _ready_made="policy_gradient_kl")
    if name == "gspo_token":
        # The ratio's value is the sequence's, its derivative the token's.
        return TokenLoss(
            "local ratio = exp(sequence_log_ratio + logp - detach(logp))\n"
            "return -min(ratio * advantages, clamp(ratio, 1 - clip_low, 1 + clip_high) * advantages)",
            ("advantages", "sequence_log_ratio"),
            {"clip_low": 3e-4, "clip_high": 4e-4},
        )
    clip = _CLIPPED | {"clip_high": 0.28} if name == "dapo" else _CLIPPED
    return TokenLoss("", ("advantages", "old_logp"), clip, _ready_made="policy_gradient")


def ready_made(name: str, inputs: Mapping[str, Any]) -> TokenLoss:
    """The ready-made token loss of a name; for "grpo" with a reference_logp among inputs, the one with a divergence."""
    if name not in ("reinforce", "ppo", "dapo", "grpo", "gspo_token"):
        raise ValueError(f"loss: got {name!r}, wanted 'reinforce', 'ppo', 'dapo', 'grpo', 'gspo_token' or a fusedlogp.TokenLoss")
    if name == "grpo" and "reference_logp" in inputs:
        name = "grpo_kl"
    if name not in _READY:
        _READY[name] = _make(name)
    return _READY[name]

"""Losses of one token as expressions: ready-made ones, and the caller's own."""

from __future__ import annotations

import ctypes
import hashlib
import re
from typing import Any, Mapping, Optional, Sequence

from . import _arguments as arguments
from ._library import library

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_OK, _BAD_ARGUMENT, _OUT_OF_MEMORY = 0, -1, -7  # flp_status of fusedlogp.h
# KEEP IN STEP: python/binding/torch_plans.h.
_FULL, _MOST = 1, 256


def _mapping(parameters: Any) -> Mapping[str, float]:
    if parameters is not None and not isinstance(parameters, Mapping):
        raise arguments.wrong(TypeError, "parameters", arguments.type_name(parameters), "a mapping from names to numbers, or None")
    return {} if parameters is None else parameters


def _quoted(text: str) -> str:
    """As a string of Lua's."""
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return '"' + "".join(escaped.get(character, character) for character in text) + '"'


class TokenLoss:
    """The loss of one token as an expression, from which its derivatives are made; policy_loss takes it.

    It is made outside of what torch.compile compiles. It can be copied and pickled, and stands for the same loss in every process.

    Args:
        expression: in Lua's syntax, of the statistics logp, lse, entropy, uniform (the mean of -log p over the vocabulary) and the names below. It may use
            + - * /, ^ with a whole number as the exponent, exp, log, min, max, abs, clamp(x, low, high), where(less(a, b), x, y) and detach(x).
            Statements may precede it if it ends in `return ...`.
        inputs: names of the arrays that a call passes, at most 8.
        parameters: names of numbers with their defaults, at most 8.

    Raises:
        TypeError, ValueError: an argument is not as above: a name is no identifier of lower-case letters, digits and _, occurs twice, or is that of a keyword,
            a statistic or a function; there are too many names; a number is not finite; expression is not in Lua's syntax, has a name that is not known, or
            takes more than 256 operations with its derivatives.
        RuntimeError: a process can make 256 different losses, the ready-made ones among them, and keeps them until it ends. Losses that differ only in the
            defaults of their parameters are one.

    Example: TokenLoss("-advantages * logp - scale * entropy", inputs=("advantages",), parameters={"scale": 0.01})
    """

    _short: Optional[str] = None  # of a ready-made one, policy_loss' name for it

    def __init__(self, expression: str, inputs: Sequence[str] = (), parameters: Optional[Mapping[str, float]] = None):
        if not isinstance(expression, str):
            raise arguments.wrong(TypeError, "expression", arguments.type_name(expression), "a str")
        if not expression.strip():
            raise arguments.wrong(ValueError, "expression", repr(expression), "an expression of logp and others")
        if isinstance(inputs, str) or not isinstance(inputs, Sequence):
            raise arguments.wrong(TypeError, "inputs", arguments.type_name(inputs), "a sequence of names")
        self.expression, self.inputs = expression, tuple(inputs)
        self.parameters = {name: arguments.check_finite(f"parameters[{name!r}]", value) for name, value in _mapping(parameters).items()}
        for what, names in (("inputs", self.inputs), ("parameters", self.parameters)):
            for name in names:
                if not isinstance(name, str) or not _NAME.match(name):
                    raise arguments.wrong(ValueError, f"a name of {what}", repr(name), "an identifier")
        if len(self.inputs) > 8 or len(self.parameters) > 8:
            raise ValueError(f"inputs and parameters: got {len(self.inputs)} and {len(self.parameters)}, wanted at most 8 each")
        self._register(None, self._definition(), True)

    @classmethod
    def _ready_made(cls, short: str, name: Optional[str], expression: str, inputs: Sequence[str], parameters: Mapping[str, float]) -> TokenLoss:
        """short: in policy_loss; name: the library's of one that it has, whose expression is empty."""
        made = cls.__new__(cls)
        made.expression, made.inputs, made.parameters = expression, tuple(inputs), dict(parameters)
        made._register(name, None if name else made._definition(), False)
        made._short = short
        return made

    def _definition(self) -> str:
        """As flp_token_loss_define takes it. Each call passes all parameters: their defaults are none of the library's, for which losses that differ in nothing
        else are one."""
        numbers = ", ".join(f'{{ "{name}", 0 }}' for name in self.parameters)
        arrays = ", ".join(f'"{name}"' for name in self.inputs)
        return f"return {{ inputs = {{ {arrays} }}, parameters = {{ {numbers} }}, expression = {_quoted(self.expression)} }}\n"

    def _register(self, name: Optional[str], definition: Optional[str], check: bool) -> None:
        text = "\0".join([name or "", definition or "", ",".join(self.inputs), ",".join(self.parameters)])
        digest = hashlib.sha256(text.encode()).digest()
        # The same in each process, because compiled graphs contain it.
        self.id = int.from_bytes(digest[:7], "little") + 1
        self.name = name or "own_" + digest.hex()[:16]
        status = library.flp_torch_token_loss(
            ctypes.c_int64(self.id),
            self.name.encode(),
            definition.encode() if definition else None,
            ",".join(self.inputs).encode(),
            ",".join(self.parameters).encode(),
            int(check),
        )
        if status != _OK:
            self._refuse(status)

    def _refuse(self, status: int) -> None:
        reason = library.flp_error_message().decode(errors="replace")
        if status == _BAD_ARGUMENT:
            reason = reason.removeprefix(f"token loss {self.name}: ")
            raise ValueError(reason if re.match(r"\w+:", reason) else f"expression: {reason}")
        if status == _FULL:
            raise RuntimeError(
                f"TokenLoss: this process has {_MOST} different ones already, counting the ready-made ones; a number that changes is a parameter, "
                "which each call may give another value"
            )
        if status == _OUT_OF_MEMORY:
            raise MemoryError("fusedlogp: no memory for a token loss")
        raise RuntimeError(f"fusedlogp: {reason}")

    def __repr__(self) -> str:
        if self._short is not None:
            return f"<fusedlogp.TokenLoss {self._short!r}>"
        return f"TokenLoss({self.expression!r}, inputs={self.inputs!r}, parameters={self.parameters!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._short is not None:
            return _of_name, (self._short,)
        return type(self), (self.expression, self.inputs, self.parameters)

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
_SAMPLED = ("advantages", "old_logp")
# The ratio's value is the sequence's, its derivative the token's. Without an advantage nothing is lost, also where the ratio overflows.
_GSPO_TOKEN = """\
local ratio = exp(sequence_log_ratio + logp - detach(logp))
return -where(less(abs(advantages), 1e-37), advantages, min(ratio * advantages, clamp(ratio, 1 - clip_low, 1 + clip_high) * advantages))"""
# MiniMax-M1's: every token keeps its derivative, times a ratio that is clipped and has none (arXiv:2506.13585).
_CISPO = "-detach(clamp(exp(logp - old_logp), 1 - clip_low, 1 + clip_high)) * advantages * logp"
# PPO's, in which a negative advantage counts at most clip_dual times (arXiv:1912.09729), however large the ratio.
_DUAL_CLIP = """\
local ratio = exp(logp - old_logp)
local clipped = -where(less(abs(advantages), 1e-37), advantages, min(ratio * advantages, clamp(ratio, 1 - clip_low, 1 + clip_high) * advantages))
return where(less(advantages, 0), min(clipped, -clip_dual * advantages), clipped)"""
# All of them are made at import: Dynamo cannot trace how.
_READY = {
    short: TokenLoss._ready_made(short, *definition)
    for short, definition in {
        "reinforce": (None, "-advantages * logp", ("advantages",), {}),
        "ppo": ("policy_gradient", "", _SAMPLED, _CLIPPED),
        "dapo": ("policy_gradient", "", _SAMPLED, {**_CLIPPED, "clip_high": 0.28}),
        "grpo": ("policy_gradient", "", _SAMPLED, _CLIPPED),
        "grpo_kl": ("policy_gradient_kl", "", (*_SAMPLED, "reference_logp"), {**_CLIPPED, "kl_scale": 0.05}),
        "dual_clip": (None, _DUAL_CLIP, _SAMPLED, {**_CLIPPED, "clip_dual": 3.0}),
        "cispo": (None, _CISPO, _SAMPLED, {"clip_low": 1.0, "clip_high": 4.0}),
        "gspo_token": (None, _GSPO_TOKEN, ("advantages", "sequence_log_ratio"), {"clip_low": 3e-4, "clip_high": 4e-4}),
    }.items()
}


def _of_name(short: str) -> TokenLoss:
    return _READY[short]


def ready_made(name: str, inputs: Mapping[str, Any]) -> TokenLoss:
    """The ready-made token loss of a name; for "grpo" with a reference_logp among inputs, the one with a divergence."""
    if name not in ("reinforce", "ppo", "dapo", "grpo", "dual_clip", "cispo", "gspo_token"):
        raise ValueError(f"loss: got {name!r}, wanted 'reinforce', 'ppo', 'dapo', 'grpo', 'dual_clip', 'cispo', 'gspo_token' or a fusedlogp.TokenLoss")
    return _READY["grpo_kl" if name == "grpo" and "reference_logp" in inputs else name]

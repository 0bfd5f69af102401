"""Losses of a token as expressions: ready-made ones, and one's own."""

from __future__ import annotations

import ast
import ctypes
import functools
import hashlib
import re
from typing import Any, Mapping, Optional, Sequence

import torch
from torch import Tensor

from ._library import library

_STATISTICS = ("logp", "lse", "entropy", "uniform", "class_weight")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


class TokenLoss:
    """The loss of one token, whose derivatives follow from it; policy_loss takes it.

    Args:
        expression: in Lua's syntax, of the statistics logp, lse, entropy, uniform (the mean of -log p over the vocabulary) and the names below:
            + - * / ^ with a whole number, exp, log, min, max, abs, clamp(x, low, high), where(less(a, b), x, y), detach(x). Statements may come
            before it if it ends in `return ...`.
        inputs: names of the arrays that a call brings, at most 8.
        parameters: names of numbers with their defaults, at most 8.

    Raises:
        ValueError: a name is no identifier, stands twice or is a statistic's, or there are too many. What is wrong with the expression, the first
            call says (RuntimeError).

    Example: TokenLoss("-advantages * logp - scale * entropy", inputs=("advantages",), parameters={"scale": 0.01})
    """

    def __init__(self, expression: str, inputs: Sequence[str] = (), parameters: Optional[Mapping[str, float]] = None, *, _ready_made: Optional[str] = None):
        self.inputs = tuple(inputs)
        self.parameters = {name: float(value) for name, value in (parameters or {}).items()}
        names = [*self.inputs, *self.parameters]
        for name in names:
            if not _NAME.match(name) or name in _STATISTICS or names.count(name) > 1:
                raise ValueError(f"a name of inputs or parameters: got {name!r}, wanted an identifier of its own, none of {', '.join(_STATISTICS)}")
        if len(self.inputs) > 8 or len(self.parameters) > 8:
            raise ValueError(f"inputs and parameters: got {len(self.inputs)} and {len(self.parameters)}, wanted at most 8 each")
        self.expression = expression
        definition = None if _ready_made else self._define(expression)
        text = "\0".join([_ready_made or "", definition or "", ",".join(self.inputs), ",".join(self.parameters)])
        digest = hashlib.sha256(text.encode()).digest()
        # The same in each process: compiled graphs hold it.
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

    def of_rows(self, statistics: Mapping[str, Tensor], arrays: Sequence[Tensor], numbers: Sequence[float]) -> Tensor:
        """The loss of rows whose statistics are there, in torch's own operations, which are differentiated as such."""
        like = statistics["logp"]
        values = {name: torch.tensor(number, dtype=like.dtype, device=like.device) for name, number in zip(self.parameters, numbers)}
        values.update(statistics, **dict(zip(self.inputs, arrays)))
        exec(_compiled(self.expression, frozenset(values)), {"__builtins__": {}, **_IN_TORCH}, values)
        return values[_RESULT]

    def numbers(self, given: Mapping[str, float]) -> list[float]:
        """The parameters' values in order."""
        for name in given:
            if name not in self.parameters:
                raise ValueError(f"parameters: got {name!r}, wanted names of {', '.join(self.parameters) or 'nothing'}")
        return [float(given.get(name, default)) for name, default in self.parameters.items()]

    def check_inputs(self, given: Mapping[str, Any]) -> None:
        if set(given) != set(self.inputs):
            raise ValueError(f"inputs: got {', '.join(sorted(given)) or 'nothing'}, wanted {', '.join(self.inputs) or 'nothing'}")


_RESULT = "_loss"
_IN_TORCH = {
    "exp": lambda x: torch.as_tensor(x).exp(),
    "log": lambda x: torch.as_tensor(x).log(),
    "abs": lambda x: torch.as_tensor(x).abs(),
    "min": lambda a, b: torch.minimum(*_alike(a, b)),
    "max": lambda a, b: torch.maximum(*_alike(a, b)),
    "clamp": lambda x, low, high: torch.minimum(*_alike(torch.maximum(*_alike(x, low)), high)),
    "less": lambda a, b: torch.lt(*_alike(a, b)),
    "where": lambda condition, x, y: torch.where(condition, *_alike(x, y)),
    "detach": lambda x: torch.as_tensor(x).detach(),
}
_SYNTAX = (
    ast.Module, ast.Assign, ast.Name, ast.Load, ast.Store, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.UnaryOp, ast.USub, ast.Call,
)  # fmt: skip


def _alike(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    a, b = (torch.as_tensor(value, dtype=torch.float32) for value in (a, b))
    return (a.to(b.device), b) if a.dim() == 0 else (a, b.to(a.device))


@functools.lru_cache(maxsize=256)
def _compiled(expression: str, names: frozenset) -> Any:
    """An expression, with `local` and `return` statements of a line each, as a program of the same operations that leaves _RESULT. Nothing else is run."""
    text = expression if re.search(r"\breturn\b", expression) else f"return {expression}"
    lines = [re.sub(r"^local\s+", "", re.sub(r"^return\b", f"{_RESULT} =", line.strip())) for line in text.replace("^", "**").splitlines()]
    try:
        if "--" in text:
            raise SyntaxError("a comment")
        tree = ast.parse("\n".join(lines))
    except SyntaxError as error:
        raise NotImplementedError(f"a token loss over shards of the vocabulary: wanted statements of a line each, got {expression!r} ({error.msg})") from None
    known = {*names, *_IN_TORCH}
    for node in ast.walk(tree):
        if not isinstance(node, _SYNTAX) or (isinstance(node, ast.Constant) and type(node.value) not in (int, float)):
            raise NotImplementedError(f"a token loss over shards of the vocabulary: {type(node).__name__} is not implemented there")
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in known:
            raise NotImplementedError(f"a token loss over shards of the vocabulary: {node.id} is not there")
    return compile(tree, "<token loss>", "exec")


_CLIPPED = {"clip_low": 0.2, "clip_high": 0.2}
_READY: dict[str, TokenLoss] = {}


def _make(name: str) -> TokenLoss:
    if name == "reinforce":
        return TokenLoss("-advantages * logp", ("advantages",))
    # KEEP IN STEP: gen/token_losses/policy_gradient.lua and policy_gradient_kl.lua, of which rows of merged shards take these.
    clipped = "-min(ratio * advantages, clamp(ratio, 1 - clip_low, 1 + clip_high) * advantages)"
    if name == "grpo_kl":
        kl = "local d = reference_logp - logp\nlocal kl = where(less(0, abs(kl_scale)), kl_scale * (exp(d) - d - 1), 0)\n"
        text = f"local ratio = exp(logp - old_logp)\n{kl}return {clipped} + kl"
        return TokenLoss(text, ("advantages", "old_logp", "reference_logp"), _CLIPPED | {"kl_scale": 0.05}, _ready_made="policy_gradient_kl")
    if name == "gspo_token":
        # The ratio's value is the sequence's, its derivative the token's.
        return TokenLoss(
            "local ratio = exp(sequence_log_ratio + logp - detach(logp))\n"
            f"return {clipped}",
            ("advantages", "sequence_log_ratio"),
            {"clip_low": 3e-4, "clip_high": 4e-4},
        )
    clip = _CLIPPED | {"clip_high": 0.28} if name == "dapo" else _CLIPPED
    return TokenLoss(f"local ratio = exp(logp - old_logp)\nreturn {clipped}", ("advantages", "old_logp"), clip, _ready_made="policy_gradient")


def ready_made(name: str, inputs: Mapping[str, Any]) -> TokenLoss:
    """The token loss of a name; "grpo" with a reference_logp is the one with a divergence."""
    if name not in ("reinforce", "ppo", "dapo", "grpo", "gspo_token"):
        raise ValueError(f"loss: got {name!r}, wanted 'reinforce', 'ppo', 'dapo', 'grpo', 'gspo_token' or a fusedlogp.TokenLoss")
    if name == "grpo" and "reference_logp" in inputs:
        name = "grpo_kl"
    if name not in _READY:
        _READY[name] = _make(name)
    return _READY[name]

"""Each argument of each public function, given wrongly: the error names it, what it was and what was wanted, and nothing is changed. An argument without a case
fails."""

import inspect
import math
import typing
import unittest

import torch
import torch.distributed as distributed
from support import DEVICE, Case, draw

import fusedlogp

ROWS, COLUMNS, VOCAB = 13, 40, 101
ELSEWHERE = "meta"


def ones(*shape, device=DEVICE, **options):
    return torch.ones(shape, device=device, **options)


def indices(*shape, dtype=torch.int64, device=DEVICE):
    return torch.zeros(shape, dtype=dtype, device=device)


def number(name, *wrong):
    """The cases of a number of that name, of which these values are out of range."""
    others = [(value, ValueError, name, str(value)) for value in (math.nan, *wrong)]
    kinds = [(value, TypeError, name, type(value).__name__, "a number") for value in ("0.5", True, 1j, [1.0])]
    return kinds + others


def flag(name):
    return [("no", TypeError, name, "str", "a bool"), (None, TypeError, name, "NoneType"), (2, TypeError, name, "int")]


def tensor(name, shape, wanted, dtypes=(torch.float64, torch.int64)):
    """The cases of a floating tensor of a shape."""
    yield [1.0], TypeError, name, "list", "a torch.Tensor"
    yield 1.0, TypeError, name, "float", "a torch.Tensor"
    for dtype in dtypes:
        yield lambda dtype=dtype: ones(*shape, dtype=dtype), TypeError, f"{name}'s dtype", str(dtype), "torch.float32"
    yield lambda: ones(*shape, device=ELSEWHERE), ValueError, f"{name}'s device", ELSEWHERE, DEVICE
    yield lambda: ones(*shape).to_sparse(), TypeError, f"{name}'s layout", "torch.sparse_coo", "torch.strided"
    for other in ((*shape[:-1], shape[-1] + 1), (*shape, 1), ()):
        yield lambda other=other: ones(*other), ValueError, f"{name}'s shape", str(other), wanted


def row_values(name, dtypes=(torch.int64, torch.complex64)):
    for case in tensor(name, (ROWS,), f"({ROWS},)", dtypes=dtypes):
        yield case[:-1] if "dtype" in case[2] else case
    yield lambda: ones(ROWS, requires_grad=True), NotImplementedError, name, "gradient"


TARGET = [
    ([0], TypeError, "target", "list", "a torch.Tensor"),
    (lambda: indices(ROWS, dtype=torch.int16), TypeError, "target's dtype", "torch.int16", "torch.int64"),
    (lambda: indices(ROWS, dtype=torch.bool), TypeError, "target's dtype", "torch.bool"),
    (lambda: ones(ROWS, VOCAB), NotImplementedError, "target", "class probabilities"),
    (lambda: indices(ROWS, device=ELSEWHERE), ValueError, "target's device", ELSEWHERE),
    (lambda: indices(ROWS).to_sparse(), TypeError, "target's layout", "torch.sparse_coo"),
    (lambda: indices(ROWS + 1), ValueError, "target's shape", f"({ROWS + 1},)", f"({ROWS},)"),
    (lambda: indices(ROWS, 1), ValueError, "target's shape", f"({ROWS}, 1)", f"({ROWS},)"),
]
if DEVICE == "cpu":  # a GPU's are not looked at: the result is NaN
    TARGET += [(lambda: indices(ROWS) + VOCAB, IndexError, str(VOCAB)), (lambda: indices(ROWS) - 1, IndexError, "-1")]
# What input has by itself; its hidden size is linear_weight's to match.
INPUT = [case for case in tensor("input", (ROWS, COLUMNS), "") if "layout" in case[2] or "dtype" in case[2] or case[1] is TypeError]
INPUT += [(lambda: ones(), ValueError, "input's shape", "()", "(..., D)")]
INPUT += [(lambda: ones(ROWS, COLUMNS, device=ELSEWHERE), ValueError, "device", ELSEWHERE)]
INPUT += [(lambda: ones(ROWS, 0), ValueError, "linear_weight's shape", "D = 0")]
WEIGHT = [case for case in tensor("linear_weight", (VOCAB, COLUMNS), "") if case[1] is TypeError]
WEIGHT += [
    (lambda: ones(VOCAB, COLUMNS, device=ELSEWHERE), ValueError, "linear_weight's device", ELSEWHERE),
    (lambda: ones(VOCAB, COLUMNS, dtype=torch.bfloat16), TypeError, "linear_weight's dtype", "torch.bfloat16", "torch.float32"),
    (lambda: ones(COLUMNS, VOCAB), ValueError, "linear_weight's shape", f"({COLUMNS}, {VOCAB})", f"D = {COLUMNS}"),
    (lambda: ones(COLUMNS), ValueError, "linear_weight's shape", f"({COLUMNS},)", "two dimensions"),
    (lambda: ones(0, COLUMNS), ValueError, "linear_weight's shape", f"(0, {COLUMNS})", "at least 1"),
    (lambda: ones(VOCAB, 1, COLUMNS), NotImplementedError, "linear_weight", "3 dimensions"),
]
OUTPUTS = [
    ("p", ValueError, "outputs", "'p'", "'logp'"),
    ((), ValueError, "outputs", "()"),
    (("logp", "p"), ValueError, "outputs", "'p'"),
    (("logp", 1), ValueError, "outputs", "1"),
    (3, TypeError, "outputs", "int", "names"),
    (None, TypeError, "outputs", "NoneType", "names"),
]
NAME = [(["mean"], TypeError, "list"), (None, TypeError, "NoneType"), (3, TypeError, "int"), ("other", ValueError, "'other'")]
IGNORE_INDEX = [
    (1.5, TypeError, "ignore_index", "float", "an int or None"),
    (True, TypeError, "ignore_index", "bool"),
    ("-100", TypeError, "ignore_index", "str"),
    (2**63, ValueError, "ignore_index", str(2**63)),
]
BUDGET = [
    (1.0, TypeError, "memory_budget", "float", "an int"),
    (True, TypeError, "memory_budget", "bool"),
    (None, TypeError, "memory_budget", "NoneType"),
    (-1, ValueError, "memory_budget", "-1"),
    (2**63, ValueError, "memory_budget", str(2**63)),
]
TEMPERATURE = number("temperature", 0, -1.0, math.inf, 2.0**61)
TEMPERATURE += [case for case in row_values("temperature") if callable(case[0]) and "()" not in case]  # a tensor without dimensions is for all rows
SOFTCAP = number("softcap", 0, -1.0)
SCALE = number("logit_scale", 0.0, -1.0, math.inf)
LAYOUT = [(value, kind, "weight_layout", word) for value, kind, word in NAME] + [("dv", ValueError, "linear_weight's shape (dv)", f"D = {COLUMNS}")]
SHIFT = flag("shift")
GROUP = [("world", TypeError, "process_group", "str", "ProcessGroup"), (0, TypeError, "process_group", "int")]
REDUCTION = [(value, kind, "reduction", word) for value, kind, word in NAME]
BIAS = list(tensor("linear_bias", (VOCAB,), f"({VOCAB},)"))
LINEAR = {
    "input": INPUT, "linear_weight": WEIGHT, "target": TARGET, "linear_bias": BIAS, "ignore_index": IGNORE_INDEX, "temperature": TEMPERATURE,
    "softcap": SOFTCAP, "logit_scale": SCALE, "memory_budget": BUDGET, "weight_layout": LAYOUT, "shift": SHIFT, "exact": flag("exact"), "process_group": GROUP,
}  # fmt: skip
CROSS_ENTROPY = {
    **LINEAR,
    "weight": [*tensor("weight", (VOCAB,), f"({VOCAB},)"), (lambda: ones(VOCAB, requires_grad=True), NotImplementedError, "weight", "gradient")],
    "reduction": REDUCTION,
    "label_smoothing": number("label_smoothing", -0.1, 1.1),
    "options": [("fast", TypeError, "options", "str")],
    "z_loss": number("z_loss", math.inf, -math.inf),
    "token_weight": list(row_values("token_weight", (torch.complex64,))),
    "accumulate_into": [
        *tensor("accumulate_into", (VOCAB, COLUMNS), f"({VOCAB}, {COLUMNS})"),
        (lambda: ones(VOCAB, COLUMNS, requires_grad=True), ValueError, "accumulate_into", "requires a gradient", "a buffer"),
        (lambda: ones(1, COLUMNS).expand(VOCAB, COLUMNS), ValueError, "accumulate_into's strides", "(0, 1)", "apart"),
        (lambda: ones(COLUMNS, VOCAB).t(), ValueError, "accumulate_into's strides", f"(1, {VOCAB})", "contiguous rows"),
        (lambda: ones(2 * VOCAB, 2 * COLUMNS)[::2, ::2], ValueError, "accumulate_into's strides", f"({4 * COLUMNS}, 2)", "contiguous rows"),
        (lambda: ones(5 * VOCAB * COLUMNS).as_strided((VOCAB, COLUMNS), (4, 1)), ValueError, "accumulate_into's strides", "(4, 1)", "apart"),
    ],
    "return_lse": flag("return_lse"),
    "grad_filter_eps": number("grad_filter_eps", -0.1, 1.1),
}
ADVANTAGES = {"advantages": lambda: ones(ROWS), "old_logp": lambda: ones(ROWS)}


def with_advantages(value):
    """inputs whose advantages are wrong."""
    return lambda: {"advantages": value() if callable(value) else value, "old_logp": ones(ROWS)}


POLICY = {
    **LINEAR,
    "inputs": [
        (lambda: ones(ROWS), TypeError, "inputs", "Tensor", "a mapping"),
        (None, TypeError, "inputs", "NoneType"),
        ({}, ValueError, "inputs", "nothing", "advantages, old_logp"),
        (lambda: {**{name: value() for name, value in ADVANTAGES.items()}, 3: ones(ROWS)}, ValueError, "inputs", "3", "advantages"),
        *((with_advantages(value), *rest) for value, *rest in row_values("inputs['advantages']")),
    ],
    "loss": [("best", ValueError, "loss", "'best'", "'grpo'"), (None, TypeError, "loss", "NoneType"), (3, TypeError, "loss", "int")],
    "parameters": [
        ([0.2], TypeError, "parameters", "list", "a mapping"),
        (3, TypeError, "parameters", "int"),
        ({"clip": 0.2}, ValueError, "parameters", "'clip'", "clip_low"),
        *(({"clip_low": value}, *rest) for value, *rest in number("parameters['clip_low']", math.inf)),
    ],
    "reduction": REDUCTION,
    "token_weight": list(row_values("token_weight", (torch.complex64,))),
    "outputs": [
        ("logp", TypeError, "outputs", "str", "a sequence"),
        (("argmax",), ValueError, "outputs", "'argmax'", "'entropy'"),
        (("logp", 1), ValueError, "outputs", "1"),
        (3, TypeError, "outputs", "int", "a sequence"),
    ],
}
LOGITS = {
    "logits": [
        *(case for case in tensor("logits", (ROWS, VOCAB), "") if case[1] is TypeError),
        (lambda: ones(), ValueError, "logits' shape", "()"),
        (lambda: ones(ROWS, 0), ValueError, "logits' shape", f"({ROWS}, 0)", "V at least 1"),
        (lambda: ones(ROWS, VOCAB, device=ELSEWHERE), ValueError, "device", ELSEWHERE),
        (lambda: ones(ROWS + 1, VOCAB), ValueError, "target's shape", f"({ROWS + 1},)"),
    ],
    "target": TARGET,
    "outputs": OUTPUTS,
    "temperature": TEMPERATURE,
    "softcap": SOFTCAP,
    "logit_scale": SCALE,
    "ignore_index": IGNORE_INDEX,
}
SUM = {
    "x": [
        *(case for case in tensor("x", (ROWS, COLUMNS), "") if case[1] is TypeError),
        (lambda: ones(), ValueError, "x's shape", "()"),
        (lambda: ones(ROWS, 0), ValueError, "x's shape", f"({ROWS}, 0)", "D at least 1"),
        (lambda: ones(ROWS, COLUMNS, device=ELSEWHERE), ValueError, "device", ELSEWHERE),
    ],
    "w": list(tensor("w", (COLUMNS,), f"({COLUMNS},)")),
}
COUNT = [("4", TypeError, "str"), (4.0, TypeError, "float"), (True, TypeError, "bool")]
COUNT += [(0, ValueError, "got 0", "an int of 1"), (-3, ValueError, "-3", "an int of 1")]
MODULE = {
    "in_features": [(value, kind, "in_features", *words) for value, kind, *words in COUNT],
    "num_classes": [(value, kind, "num_classes", *words) for value, kind, *words in COUNT],
    "out_features": [((3,), NotImplementedError, "out_features", "(3,)"), (3, TypeError, "out_features", "int", "a tuple")],
    "bias": flag("bias"),
    "device": [("nowhere", ValueError, "device", "'nowhere'"), (1.5, TypeError, "device", "float")],
    "dtype": [(torch.float64, TypeError, "dtype", "torch.float64", "torch.float32"), ("bf16", TypeError, "dtype", "bf16")],
    "reduction": REDUCTION,
    "weight": [case for case in CROSS_ENTROPY["weight"] if "device" not in case[2] and case[1] is not NotImplementedError],
    "ignore_index": IGNORE_INDEX,
    "label_smoothing": CROSS_ENTROPY["label_smoothing"],
    "options": CROSS_ENTROPY["options"],
    "others": [],
}
TOKEN_LOSS = {
    "expression": [(3, TypeError, "expression", "int", "a str"), (None, TypeError, "expression", "NoneType"), ("", ValueError, "expression", "''")],
    "inputs": [
        ("advantages", TypeError, "inputs", "str", "a sequence"),
        (3, TypeError, "inputs", "int"),
        (("a b",), ValueError, "inputs", "'a b'", "an identifier"),
        (("logp",), ValueError, "inputs", "logp", "a statistic"),
        (("a", "a"), ValueError, "inputs", "got a", "an input"),
        ((3,), ValueError, "inputs", "3"),
        (tuple("abcdefghi"), ValueError, "inputs", "9", "at most 8"),
    ],
    "parameters": [
        ("scale", TypeError, "parameters", "str", "a mapping"),
        ([1.0], TypeError, "parameters", "list"),
        ({"end of": 1.0}, ValueError, "parameters", "'end of'"),
        ({3: 1.0}, ValueError, "parameters", "3"),
        *(({"scale": value}, *rest) for value, *rest in number("parameters['scale']", math.inf)),
        ({letter: 1.0 for letter in "abcdefghi"}, ValueError, "parameters", "9", "at most 8"),
    ],
}
VOCAB_PARALLEL = {
    "group": [(None, TypeError, "group: got NoneType", "a torch.distributed.ProcessGroup"), ("world", TypeError, "group: got str")],
    "vocab_size": [(value, kind, "vocab_size", *words) for value, kind, *words in COUNT],
    "reduce_grad_input": flag("reduce_grad_input"),
    "multiprocessors_for_exchange": [(value, kind, "multiprocessors_for_exchange", words[0]) for value, kind, *words in COUNT if value != 0],
}


def problem():
    hidden, weight, bias, target = draw(ROWS, COLUMNS, VOCAB, bias=True, ignored=False)
    linear = {"input": hidden, "linear_weight": weight, "target": target}
    return {
        fusedlogp.linear_cross_entropy: (CROSS_ENTROPY, {**linear, "linear_bias": bias}),
        fusedlogp.linear_logp: ({**LINEAR, "temperature": TEMPERATURE[:-1], "outputs": OUTPUTS}, linear),
        fusedlogp.policy_loss: (POLICY, {**linear, "inputs": {name: value() for name, value in ADVANTAGES.items()}}),
        fusedlogp.logits_logp: (LOGITS, {"logits": torch.randn(ROWS, VOCAB, device=DEVICE, requires_grad=True), "target": target}),
        fusedlogp.weighted_sum: (SUM, {"x": hidden, "w": weight.detach()[0].clone().requires_grad_()}),
        fusedlogp.LinearCrossEntropyLoss: (MODULE, {"in_features": COLUMNS, "num_classes": VOCAB}),
        fusedlogp.TokenLoss: (TOKEN_LOSS, {"expression": "-logp", "inputs": ()}),
        fusedlogp.VocabParallel: (VOCAB_PARALLEL, {"group": distributed.ProcessGroup(0, 1)}),
    }


def names_of(function):
    return [name for name in inspect.signature(function).parameters if not name.startswith("_")]


class Arguments(Case):
    def refused(self, function, name, given, case):
        value, kind, *words = case
        value = value() if callable(value) else value
        before = {key: each.clone() for key, each in given.items() if isinstance(each, torch.Tensor)}
        with self.assertRaises(kind) as caught:
            function(**{**given, name: value})
        self.assertIs(kind, type(caught.exception), caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))
        for key, each in before.items():
            self.assertTrue(torch.equal(each, given[key]) and given[key].grad is None, key)

    def test_each_argument_has_a_case(self):
        for function, (table, _) in problem().items():
            self.assertEqual(set(names_of(function)), set(table), function.__name__)
        public = {value for name, value in vars(fusedlogp).items() if name in fusedlogp.__all__ and name != "info"}
        self.assertEqual(public, set(problem()))

    def test_each_argument_of_each_function(self):
        for function, (table, given) in problem().items():
            for name, cases in table.items():
                for number, case in enumerate(cases):
                    with self.subTest(function=function.__name__, argument=name, number=number, case=str(case)):
                        self.refused(function, name, given, case)

    def test_the_tables_problem_is_right_but_for_the_one_argument(self):
        main_grad = ones(VOCAB, COLUMNS)
        for function, (_, given) in problem().items():
            function(**given)
        function, (_, given) = next(iter(problem().items()))
        function(**given, accumulate_into=main_grad, token_weight=ones(ROWS), weight=ones(VOCAB), temperature=ones(ROWS), memory_budget=1 << 30)
        self.assertTrue(torch.equal(main_grad, torch.ones_like(main_grad)))

    def test_main_grad_is_as_it_was_after_any_other_error(self):
        table, given = problem()[fusedlogp.linear_cross_entropy]
        for name, cases in table.items():
            for case in cases if name != "accumulate_into" else ():
                main_grad = torch.full((VOCAB, COLUMNS), 3.0, device=DEVICE)
                with self.subTest(argument=name, case=str(case)), self.assertRaises(Exception):
                    value = case[0]() if callable(case[0]) else case[0]
                    fusedlogp.linear_cross_entropy(**{**given, name: value, "accumulate_into": main_grad})
                self.assertTrue((main_grad == 3).all(), name)

    def test_arguments_that_conflict(self):
        given = problem()[fusedlogp.linear_cross_entropy][1]
        for more, *words in (
            ({"shift": True, "token_weight": [1.0]}, TypeError, "token_weight", "list"),
            ({"shift": True, "token_weight": ones(ROWS + 1)}, ValueError, "token_weight's shape", f"({ROWS + 1},)"),
            ({"shift": True, "temperature": ones(ROWS - 2)}, ValueError, "temperature's shape", f"({ROWS - 2},)", f"({ROWS},) or ({ROWS - 1},)"),
            ({"shift": True, "input": ones(COLUMNS), "target": indices()}, ValueError, "target's shape with shift", "()"),
            ({"shift": True, "target": indices(ROWS, dtype=torch.int32), "ignore_index": 2**40}, ValueError, "ignore_index", str(2**40), "torch.int32"),
            ({"weight_layout": "dv", "accumulate_into": ones(VOCAB, COLUMNS), "linear_weight": ones(COLUMNS, VOCAB)}, ValueError, "accumulate_into's shape"),
            ({"memory_budget": 1}, ValueError, "memory_budget", "got 1", "bytes"),
            (
                {"linear_weight": ones(COLUMNS, VOCAB).t(), "accumulate_into": ones(VOCAB, COLUMNS)},
                ValueError, "accumulate_into's strides", f"({COLUMNS}, 1)", "contiguous columns",
            ),
            (
                {"linear_weight": ones(COLUMNS, VOCAB), "weight_layout": "dv", "accumulate_into": ones(VOCAB, COLUMNS).t()},
                ValueError, "accumulate_into's strides", f"(1, {COLUMNS})", "contiguous rows",
            ),
        ):  # fmt: skip
            with self.subTest(words=words):
                kind, *words = words
                with self.assertRaises(kind) as caught:
                    fusedlogp.linear_cross_entropy(**{**given, **more})
                for word in words:
                    self.assertIn(word, str(caught.exception))
        logp = problem()[fusedlogp.linear_logp][1]
        with self.assertRaisesRegex(ValueError, "ignore_index with shift"):
            fusedlogp.linear_logp(**logp, shift=True, ignore_index=None)
        with self.assertRaisesRegex(ValueError, "memory_budget: got 1, wanted .* bytes"):
            fusedlogp.linear_logp(**logp, memory_budget=1)

    def test_a_budget_that_only_the_backward_needs_is_named_there(self):
        given = problem()[fusedlogp.linear_cross_entropy][1]
        logp = problem()[fusedlogp.linear_logp][1]
        for name, function in (
            ("none", lambda: fusedlogp.linear_cross_entropy(**given, reduction="none", memory_budget=1)),
            ("main_grad", lambda: fusedlogp.linear_cross_entropy(**given, accumulate_into=ones(VOCAB, COLUMNS), memory_budget=1)),
            ("entropy", lambda: fusedlogp.linear_logp(**logp, outputs="entropy", memory_budget=1)),
        ):
            with self.subTest(name), self.assertRaisesRegex(ValueError, "memory_budget: got 1, wanted .* bytes"):
                function().sum().backward()

    def test_exact_is_for_fp32(self):
        given = problem()[fusedlogp.policy_loss][1]
        inputs = given.pop("inputs")
        halves = {name: value.bfloat16() if value.is_floating_point() else value for name, value in given.items()}
        for function, more in ((fusedlogp.linear_cross_entropy, {}), (fusedlogp.linear_logp, {}), (fusedlogp.policy_loss, {"inputs": inputs})):
            with self.subTest(function.__name__):
                with self.assertRaisesRegex(ValueError, "exact: got True with torch.bfloat16, wanted False, or inputs in torch.float32 outside of autocast"):
                    function(**halves, **more, exact=True)
                with torch.autocast(DEVICE, dtype=torch.bfloat16), self.assertRaisesRegex(ValueError, "exact: got True with torch.bfloat16"):
                    function(**given, **more, exact=True)
                function(**given, **more, exact=True)

    @unittest.skipUnless(hasattr(typing, "get_overloads"), "a Python before 3.11 keeps no overloads")
    def test_overloads_have_the_arguments_of_their_function(self):
        for function, returned in ((fusedlogp.linear_cross_entropy, 3), (fusedlogp.linear_logp, 2), (fusedlogp.policy_loss, 2), (fusedlogp.logits_logp, 2)):
            overloads = typing.get_overloads(function)
            self.assertEqual(returned, len(overloads))
            for overload in overloads:
                self.assertEqual(names_of(function), names_of(overload), function.__name__)

    def test_a_modules_options_are_shown(self):
        module = fusedlogp.LinearCrossEntropyLoss(COLUMNS, VOCAB, weight=torch.ones(VOCAB), softcap=3.0, z_loss=0.5, temperature=torch.ones(ROWS))
        shown = (f"num_classes={VOCAB}", "reduction='mean'", f"weight=<tensor ({VOCAB},)>", "softcap=3.0", "z_loss=0.5", f"temperature=<tensor ({ROWS},)>")
        for each in shown:
            self.assertIn(each, repr(module))
        self.assertNotIn("softcap", repr(fusedlogp.LinearCrossEntropyLoss(COLUMNS, VOCAB)))

    def test_modules_other_arguments(self):
        with self.assertRaisesRegex(TypeError, "softcp"):
            fusedlogp.LinearCrossEntropyLoss(4, 5, softcp=3.0)
        module = fusedlogp.LinearCrossEntropyLoss(COLUMNS, VOCAB, device=DEVICE)
        given = problem()[fusedlogp.linear_cross_entropy][1]
        given = {name: given[name] for name in ("input", "target")}
        for name in ("input", "target"):
            for case in LINEAR[name]:
                with self.subTest(argument=name, case=str(case)):
                    self.refused(module.forward, name, given, case)
        with self.assertRaisesRegex(TypeError, "softcp"):
            module(**given, softcp=3.0)


if __name__ == "__main__":
    unittest.main()

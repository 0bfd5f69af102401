"""torch's own examination of the operators, and torch.compile."""

import importlib
import os
import re
import subprocess
import sys
import unittest

import torch
from torch import library
from support import DEVICE, EVERYTHING, ROOT, Bounds, Case, draw

import fusedlogp
from fusedlogp import _ctypes, _operators, token_loss

ops = torch.ops.fusedlogp


def inputs_of():
    """(operator, arguments) of each, with and without what is optional."""
    hidden, weight, bias, target = draw(bias=True)
    x, w, b = (value.detach() for value in (hidden, weight, bias))
    rows = torch.rand(13, device=DEVICE)
    logp, lse, entropy, _ = ops.linear_logp(x, w, b, target, None, 1.0, 0.0, -100, False, True, True, 0)
    plain = (None, 1.0, 0.0, -100, False)
    loss = (None, None, None, None, [], 0, 0, 0.0, 0.0, False)
    yield ops.linear_logp, (hidden, weight, bias, target, None, 0.5, 3.0, -100, False, True, True, 0)
    yield ops.linear_logp, (hidden, x.new_ones(40, 101).t(), None, target, rows + 0.5, 1.0, 0.0, -100, False, False, False, 1 << 30)
    yield ops.linear_logp_backward, (x, w, b, target, *plain, logp, lse, entropy, rows, rows, rows, True, True, True, 0, 0.0)
    yield ops.linear_logp_backward, (x, w, None, target, *plain, logp, lse, None, rows, None, None, True, False, False, 0, 0.0)
    across = w.t().contiguous().t()  # stored as [D, V]
    yield ops.linear_logp_backward, (x, across, b, target, *plain, logp, lse, entropy, rows, rows, rows, True, True, True, 0, 0.0)
    yield ops.linear_logp_partials, (x, w[40:], b[40:], target, *plain, True, True, 40, 101)
    partials = torch.cat([ops.linear_logp_partials(x, w[cut], b[cut], target, *plain, True, True, cut.start or 0, 101) for cut in (slice(40), slice(40, None))])
    yield ops.linear_logp_merge, (x, w[40:], b[40:], target, *plain, True, True, 40, 101, partials)
    shard = (x, w[40:], b[40:], target, *plain, logp, lse, entropy, rows, rows, rows)
    yield ops.linear_logp_backward_partial, (*shard, True, True, True, 0, 0.0, 40, 101, 0, 0)
    yield ops.linear_logp_backward_partial, (*shard, False, True, False, 0, 0.0, 40, 101, 0, 0)
    yield ops.linear_logp_saving, (x, w, b, target, *plain, True, True, True, True, 0)
    logp, lse, workspace = ops.linear_logp_saving(x, w, None, target, *plain, False, True, False, False, 0)
    yield ops.linear_logp_backward_saved, (x, w, None, target, *plain, logp, lse, rows, None, True, False, False, 0, workspace)
    yield ops.linear_cross_entropy, (hidden, weight, bias, target, *plain, *loss, True, True, True, 0, 0.0)
    yield ops.linear_cross_entropy, (hidden, weight, None, target, *plain, None, rows, None, None, [], 0, 2, 0.1, 0.01, True, False, False, False, 0, 0.0)
    yield ops.linear_cross_entropy_accumulate, (x, w, b, target, *plain, *loss, True, True, True, 0, 0.0, torch.zeros_like(w))
    sharded = (x, w[40:], b[40:], target, *plain, *loss)
    partials = torch.cat([ops.linear_cross_entropy_partials(x, w[cut], b[cut], target, *plain, *loss, False, False, False, 0, 0.0, cut.start or 0, 101)
                          for cut in (slice(40), slice(40, None))])  # fmt: skip
    yield ops.linear_cross_entropy_partials, (*sharded, False, False, False, 0, 0.0, 40, 101)
    yield ops.linear_cross_entropy_merge, (*sharded, True, True, True, 0, 0.0, 40, 101, partials, 0, 0)
    yield ops.linear_cross_entropy_merge_accumulate, (*sharded, True, True, True, 0, 0.0, 40, 101, partials, 0, 0, torch.zeros_like(w[40:]))
    yield ops.logits_logp, ((x @ w.t()).requires_grad_(), target, None, 1.0, 0.0, -100, True, True)
    yield ops.logits_logp_backward, (x @ w.t(), target, None, 1.0, 0.0, -100, logp, lse, entropy, rows, rows, rows)
    yield ops.weighted_sum, (hidden, w[0].clone().requires_grad_())
    yield ops.weighted_sum_backward, (rows, x, w[0], True, True)
    yield ops.scale_, (x.clone(), rows[0])


class Operators(Case):
    def test_opcheck(self):
        utilities, traced = ["test_schema", "test_autograd_registration", "test_faketensor"], ["test_aot_dispatch_dynamic"]
        # torch compares a traced call's results as numbers. Between the parts of a workspace there are bytes that nobody writes, and a partial without
        # argmax has the entry -1, which is NaN as a float: so many first results of these are compared by their bits.
        by_bits = {ops.linear_logp_saving: 2, ops.linear_cross_entropy_partials: 1}
        for op, arguments in inputs_of():
            count = by_bits.get(op)
            with self.subTest(op=str(op)):
                library.opcheck(op.default, arguments, test_utils=utilities + (traced if EVERYTHING and count is None else []))
            if EVERYTHING and count is not None:

                def first(*given, op=op, count=count):
                    results = op(*given)
                    return (results,) if isinstance(results, torch.Tensor) else results[:count]

                for actual, expected in zip(torch.compile(first, backend="aot_eager", fullgraph=True)(*arguments), first(*arguments), strict=True):
                    self.assertTrue(torch.equal(actual.view(torch.int32), expected.view(torch.int32)))

    def test_a_problem_has_one_plan(self):
        def plans():
            return int(fusedlogp.info()["plans"])

        def step(rows):
            hidden, weight, bias, target = draw(rows=rows, columns=44, vocab=77, bias=True)
            fusedlogp.linear_cross_entropy(hidden, weight, target, linear_bias=bias, z_loss=0.1).backward()
            logp, entropy = fusedlogp.linear_logp(hidden, weight, target, outputs=("logp", "entropy"))
            (logp + entropy).sum().backward()
            fusedlogp.linear_logp(hidden, weight, target, linear_bias=bias).sum().backward()
            fusedlogp.logits_logp(hidden[:, :13], target.clamp(max=12)).sum().backward()
            fusedlogp.weighted_sum(hidden, weight[0]).sum().backward()

        before = plans()
        step(20)
        first = plans() - before
        self.assertEqual(first, 11)  # seven operators of the library, a backward with its forward, and scale for each of three gradients
        for rows in (20, 50, 64):
            step(rows)
        self.assertEqual(plans() - before, first)
        # The buckets of numbers of rows are the library's (runtime/core/row_buckets.h).
        of_bucket = []
        for rows in (129, 200, 256, 257, 300):
            at = plans()
            step(rows)
            of_bucket.append(plans() - at)
        self.assertEqual([0, 0, 0], [of_bucket[i] for i in (1, 2, 4)])
        self.assertTrue(of_bucket[0] > 0 and of_bucket[3] > 0, of_bucket)

    def test_the_import_leaves_the_compiler_out(self):
        code = "import sys, torch, fusedlogp; sys.exit('torch._dynamo' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)

    def test_info_says_which_binding(self):
        import os

        wanted = os.environ.get("FUSEDLOGP_BINDING", "auto")
        info = fusedlogp.info()
        version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        self.assertEqual(info["binding"], wanted if wanted != "auto" else "c" if version >= (2, 10) else "ctypes")
        self.assertTrue(info["reason"])


class Compile(Case):
    backend = "inductor" if EVERYTHING else "aot_eager"

    def same(self, function, *leaves, tolerance=0.0, **options):
        torch._dynamo.reset()
        expected = function(*leaves)
        wanted = torch.autograd.grad(expected, leaves)
        actual = torch.compile(function, fullgraph=True, backend=self.backend, **options)(*leaves)
        given = torch.autograd.grad(actual, leaves)
        for a, b in zip((actual, *given), (expected, *wanted)):
            self.assert_close(a, b, tolerance)

    def test_the_loss_without_breaks(self):
        hidden, weight, bias, target = draw(bias=True)
        tolerance = Bounds(hidden, weight, 1.0).weight
        self.same(lambda x, w, b: fusedlogp.linear_cross_entropy(x * 2, w, target, linear_bias=b, softcap=3.0), hidden, weight, bias, tolerance=tolerance)
        self.same(lambda x, w: fusedlogp.linear_cross_entropy(x, w, target, reduction="none").square().sum(), hidden, weight, tolerance=tolerance * 30)

    def test_logp_and_policy_without_breaks(self):
        hidden, weight, _, target = draw()
        tolerance = 10 * Bounds(hidden, weight, 1.0).weight

        def logp(x, w):
            a, b = fusedlogp.linear_logp(x.reshape(1, 13, -1), w.t(), target.reshape(1, 13), outputs=("logp", "entropy"), weight_layout="dv")
            return (a + 0.1 * b).sum()

        self.same(logp, hidden, weight, tolerance=tolerance)
        advantages = torch.randn(13, device=DEVICE)
        self.same(lambda x, w: fusedlogp.policy_loss(x, w, target, {"advantages": advantages}, loss="reinforce"), hidden, weight, tolerance=tolerance)

    def test_dynamic_rows(self):
        _, weight, _, _ = draw()
        torch._dynamo.reset()
        function = torch.compile(lambda x, t: fusedlogp.linear_cross_entropy(x, weight, t), fullgraph=True, backend="aot_eager", dynamic=True)
        for rows in (5, 9, 70):
            hidden, _, _, target = draw(rows=rows)
            self.assert_close(function(hidden, target), fusedlogp.linear_cross_entropy(hidden, weight, target), 1e-6)

    def test_main_grad_without_breaks(self):
        hidden, weight, _, target = draw()
        torch._dynamo.reset()
        sums = [torch.zeros_like(weight) for _ in range(2)]
        loss = lambda x, w, total: fusedlogp.linear_cross_entropy(x, w, target, accumulate_into=total)  # noqa: E731
        loss(hidden, weight, sums[0]).backward()
        torch.compile(loss, fullgraph=True, backend="aot_eager")(hidden, weight, sums[1]).backward()
        self.assert_close(sums[1], sums[0], Bounds(hidden, weight, 1.0).weight)


class WithoutData(Case):
    """Meta tensors, and what torch counts of a call."""

    def test_meta_tensors(self):
        def meta(*shape, **options):
            return torch.empty(shape, device="meta", **options)

        x, w, target = meta(2, 3, 8, requires_grad=True), meta(5, 8, requires_grad=True), meta(2, 3, dtype=torch.int64)
        own = fusedlogp.TokenLoss("-a * logp", ("a",))
        calls = {
            "loss": (lambda: fusedlogp.linear_cross_entropy(x, w, target), ()),
            "losses": (lambda: fusedlogp.linear_cross_entropy(x, w, target, reduction="none", temperature=meta(2, 3)), (2, 3)),
            "shifted": (lambda: fusedlogp.linear_cross_entropy(x, w, target, reduction="none", shift=True), (2, 2)),
            "into": (lambda: fusedlogp.linear_cross_entropy(x, w, target, accumulate_into=meta(5, 8)), ()),
            "logp": (lambda: fusedlogp.linear_logp(x, w, target), (2, 3)),
            "entropy": (lambda: fusedlogp.linear_logp(x, w, target, outputs="entropy"), (2, 3)),
            "policy": (lambda: fusedlogp.policy_loss(x, w, target, {"a": meta(2, 3)}, loss=own), ()),
            "logits": (lambda: fusedlogp.logits_logp(x @ w.t(), target), (2, 3)),
            "weighted sum": (lambda: fusedlogp.weighted_sum(x, w[0]), (2, 3)),
        }
        for name, (call, shape) in calls.items():
            with self.subTest(name):
                x.grad = w.grad = None
                result = call()
                self.assertEqual((shape, "meta"), (tuple(result.shape), result.device.type))
                result.sum().backward()
                self.assertEqual(x.shape, x.grad.shape)
                self.assertEqual(None if name == "into" else w.shape, None if w.grad is None else w.grad.shape)

    def test_what_is_counted_is_the_products(self):
        for name in [name for name in sys.modules if name == "torch.utils.flop_counter"]:
            del sys.modules[name]  # as where nobody has imported it yet
        FlopCounterMode = importlib.import_module("torch.utils.flop_counter").FlopCounterMode
        hidden, weight, _, target = draw()
        options = {"frozen": {"linear_weight": weight.detach()}, "into": {"accumulate_into": torch.zeros_like(weight)}, "none": {"reduction": "none"}}
        # Products in the forward and in all.
        for call, given, forward, both in (
            (fusedlogp.linear_cross_entropy, {}, 3, 3),
            (fusedlogp.linear_cross_entropy, options["frozen"], 2, 2),
            (fusedlogp.linear_cross_entropy, options["none"], 1, 4),
            (fusedlogp.linear_cross_entropy, options["into"], 1, 4),
            (fusedlogp.linear_logp, {}, 1, 3),
            (fusedlogp.linear_logp, options["frozen"], 1, 2),
            (fusedlogp.linear_logp, {"outputs": "entropy"}, 1, 4),
        ):
            with self.subTest(call=call.__name__, given=list(given)), FlopCounterMode(display=False) as counter:
                result = call(**{"input": hidden, "linear_weight": weight, "target": target, **given}).sum()
                counted = counter.get_total_flops()
                result.backward()
            self.assertEqual((forward, both), (counted / (2 * 13 * 40 * 101), counter.get_total_flops() / (2 * 13 * 40 * 101)))
        with FlopCounterMode(display=False) as counter:
            self.assertEqual(13, len(ops.linear_logp(hidden, weight, target=target, bias=None, row_temperature=None, temperature=1.0, softcap=0.0,
                                                     ignore_index=-100, exact=False, entropy=False, argmax=False, memory_budget=0)[0]))  # fmt: skip
        self.assertEqual(2 * 13 * 40 * 101, counter.get_total_flops())
        for name in [str(op) for op, _ in inputs_of() if "linear" in str(op)]:
            self.assertIn(name, map(str, sys.modules["torch.utils.flop_counter"].flop_registry))


HEADER, BINDING = os.path.join(ROOT, "runtime", "fusedlogp.h"), os.path.join(ROOT, "python", "binding")


@unittest.skipUnless(os.path.isfile(HEADER), "the library's sources are not beside the tests")
class Headers(unittest.TestCase):
    """What the package knows of the library's headers, which it does not read."""

    def text(self, *path):
        with open(os.path.join(*path)) as file:
            return file.read()

    def test_statuses_and_dtypes_have_the_library_s_numbers(self):
        header = self.text(HEADER)
        status = {name: int(number) for name, number in re.findall(r"X\((\w+), (-?\d+), ", header)}
        self.assertEqual(status["BAD_TARGET"], _ctypes._BAD_TARGET)
        self.assertEqual(
            [status[name] for name in ("OK", "BAD_ARGUMENT", "OUT_OF_MEMORY")], [token_loss._OK, token_loss._BAD_ARGUMENT, token_loss._OUT_OF_MEMORY]
        )
        names = re.search(r"typedef enum \{ ([^}]*) \} flp_dtype;", header)[1].split(", ")
        of_torch = [torch.bfloat16, torch.float16, torch.float32, torch.int32, torch.int64]
        self.assertEqual(["FLP_NONE", "FLP_BF16", "FLP_F16", "FLP_F32", "FLP_I32", "FLP_I64"], names)
        self.assertEqual({dtype: i + 1 for i, dtype in enumerate(of_torch)}, _ctypes._DTYPES)
        self.assertEqual(int(re.search(r"FLP_PARTIAL_FLOATS = (\d+)", header)[1]), _operators._PARTIAL_FLOATS)

    def test_frames_and_token_losses_have_the_binding_s_numbers(self):
        frame, plans = self.text(BINDING, "torch_frame.h"), self.text(BINDING, "torch_plans.h")
        kinds = re.search(r"typedef enum \{ ([^}]*) \} flp_torch_kind;", frame)[1].split(", ")
        self.assertEqual([f"FLP_TORCH_{name}" for name in ("NONE", "TENSOR", "NUMBER", "NUMBERS")], kinds)
        self.assertEqual([0, 1, 2, 3], [_ctypes._NONE, _ctypes._TENSOR, _ctypes._NUMBER, _ctypes._NUMBERS])
        self.assertEqual(int(re.search(r"FLP_TORCH_INPUTS_MAX = (\d+)", frame)[1]), _ctypes._INPUTS_MAX)
        most, full = map(int, re.search(r"FLP_TORCH_TOKEN_LOSSES_MAX = (\d+), FLP_TORCH_TOKEN_LOSSES_FULL = (\d+)", plans).groups())
        self.assertEqual((most, full), (token_loss._MOST, token_loss._FULL))

    def test_saved_workspaces_are_known_by_the_library_s_alignments(self):
        known = {name: self.text(ROOT, "runtime", "core", file) for name, file in (("PROBLEM", "problem.h"), ("WORKSPACE", "workspace.h"))}
        wanted = {name: re.search(rf"FLP_{name}_ALIGNMENT = (\d+)", text)[1] for name, text in known.items()}
        places = self.text(ROOT, "python", "fusedlogp", "_operators.py").split("def _places")[1].split("\nclass ")[0]
        self.assertEqual([wanted["WORKSPACE"], wanted["PROBLEM"], wanted["PROBLEM"]], re.findall(r"data_ptr\(\) % (\d+)", places))

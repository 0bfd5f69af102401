"""linear_logp, logits_logp and weighted_sum beside fp64."""

import itertools

import torch
from support import DEVICE, DTYPES, Bounds, Case, double, draw, logits_of, some

import fusedlogp

OUTPUTS = ("logp", "lse", "entropy", "argmax")


def reference(z, target):
    lse = torch.logsumexp(z, -1)
    logp = torch.log_softmax(z, -1)
    entropy = -(logp.exp() * logp).sum(-1)
    chosen = torch.where(target == -100, 0.0, logp.gather(-1, target.clamp(min=0).unsqueeze(-1)).squeeze(-1))
    return chosen, lse, entropy, z.argmax(-1)


class LinearLogp(Case):
    def check(self, results, expected, leaves, doubles, bounds, grad_bounds):
        # An entropy is a sum of terms up to log V.
        for name, actual, wanted in zip(OUTPUTS, results, expected):
            if name == "argmax":
                self.assertEqual(actual.dtype, torch.int32)
                self.assertTrue(torch.equal(actual.long().cpu(), wanted.cpu()))
            else:
                self.assert_close(actual, wanted, bounds.value * (8 if name == "entropy" else 1), 2e-6)
        g = [torch.randn_like(value) for value in results[:3]]
        torch.autograd.backward(results[:3], g)
        kept = doubles[-1]
        factor = [g[0].double(), g[1].double() * kept, g[2].double() * kept]  # an ignored row has no part in any gradient
        torch.autograd.backward(expected[:3], factor)
        for leaf, truth, bound in zip(leaves, doubles, grad_bounds):
            if leaf is not None:
                self.assert_close(leaf.grad, truth.grad, bound, bounds.relative)

    def test_grid(self):
        grid = itertools.product(DTYPES, (False, True), (None, 4.0), (1.0, 0.6), (torch.int64, torch.int32))
        for dtype, bias, softcap, temperature, index in some(grid, 5):
            with self.subTest(dtype=dtype, bias=bias, softcap=softcap, temperature=temperature, index=index):
                hidden, weight, offset, target = draw(dtype=dtype, bias=bias)
                x, w, b = double(hidden), double(weight), double(offset)
                expected = reference(logits_of(x, w, b, softcap=softcap, temperature=temperature), target)
                options = {"linear_bias": offset, "softcap": softcap, "temperature": temperature}
                results = fusedlogp.linear_logp(hidden, weight, target.to(index), **options, outputs=OUTPUTS)
                # |g| up to about 4 each; the derivative of the entropy has a factor of up to 2 log V.
                bounds = Bounds(hidden, weight, 4 * 12.0, temperature)
                counted = (target != -100).double()
                self.check(results, expected, (hidden, weight, offset), (x, w, b, counted), bounds, (bounds.hidden, bounds.weight, bounds.bias))
                self.check_logp_alone(hidden, weight, offset, target.to(index), options)

    def check_logp_alone(self, hidden, weight, offset, target, options):
        """Its gradients, of a workspace that the forward has left, are those of the logits anew; in any form of the weight."""
        leaves = [leaf for leaf in (hidden, weight, offset) if leaf is not None]
        g = torch.randn(target.shape, device=DEVICE)
        anew = fusedlogp.linear_logp(hidden, weight, target, **options, outputs=("logp", "argmax"))[0]
        kept = fusedlogp.linear_logp(hidden, weight, target, **options)
        turned = fusedlogp.linear_logp(hidden, weight.t(), target, **options, weight_layout="dv")
        bounds = Bounds(hidden, weight, 4.0, options["temperature"])
        self.assert_close(kept, anew, 2 * bounds.value, 2e-6)
        expected = torch.autograd.grad(anew, leaves, g)
        for logp in (kept, turned):
            for name, actual, wanted in zip(("hidden", "weight", "bias"), torch.autograd.grad(logp, leaves, g), expected):
                self.assert_close(actual, wanted, 2 * getattr(bounds, name), 2 * bounds.relative)

    def test_by_a_temperature_that_has_no_part_in_the_results(self):
        hidden, weight, _, target = draw(rows=6, ignored=False)
        target[0] = -100
        grads = lambda temperature, **options: torch.autograd.grad(
            sum(value.sum() for value in fusedlogp.linear_logp(hidden, weight, target, temperature=temperature, outputs=("logp", "lse"), **options)),
            temperature,
        )[0]
        wanted = grads(torch.ones(6, device=DEVICE, requires_grad=True))
        self.assertEqual(0, wanted[0])
        self.assertEqual(5, wanted[1:].count_nonzero())
        for value in (0.0, float("nan"), float("inf"), -1.0):  # of an ignored row
            each = torch.ones(6, device=DEVICE)
            each[0] = value
            self.assertTrue(torch.equal(grads(each.requires_grad_()), wanted), value)
        # One learned number, and padding whose hidden states are NaN.
        broken = hidden.detach().clone()
        broken[0] = float("nan")
        one = torch.ones((), device=DEVICE, requires_grad=True)
        logp = fusedlogp.linear_logp(broken, weight, target, temperature=one.expand(6))
        self.assertTrue(torch.autograd.grad(logp.sum(), one)[0].isfinite())
        # Outside of 2^-64 .. 2^64, divided by logit_scale, the nearest of the two counts, and the results do not depend on the temperature.
        for values, scale in (((2.0**-70, 0.0, -1.0, 2.0**70, 1.0, 1.0), 1.0), ((2.0**-60, 2.0**-65, 0.0, -2.0, 1.0, 1.0), 2.0**10)):
            got = grads(torch.tensor(values, device=DEVICE, requires_grad=True), logit_scale=scale)
            self.assertEqual(0, got[:4].count_nonzero(), got)
            self.assertEqual(2, (got[4:].isfinite() & (got[4:] != 0)).sum())
        # The last position of a sequence, which shift leaves out.
        for last in (0.0, float("nan")):
            each = torch.ones(2, 3, device=DEVICE)
            each[:, -1] = last
            each.requires_grad_()
            logp = fusedlogp.linear_logp(hidden.view(2, 3, -1), weight, target.view(2, 3), temperature=each, shift=True)
            (got,) = torch.autograd.grad(logp.sum(), each)
            self.assertTrue((got[:, -1] == 0).all() and got.isfinite().all(), got)

    def test_by_temperature(self):
        for softcap, logit_scale, dtype in ((None, 1.0, torch.float32), (4.0, 0.5, torch.float32), (None, 1.0, torch.bfloat16)):
            hidden, weight, bias, target = draw(dtype=dtype, bias=True)
            temperature = (torch.rand(13, device=DEVICE) + 0.5).requires_grad_()
            x, w, b, t = (double(value) for value in (hidden, weight, bias, temperature))
            expected = reference(logits_of(x, w, b, softcap=softcap, logit_scale=logit_scale, temperature=t), target)[:2]
            options = {"linear_bias": bias, "softcap": softcap, "logit_scale": logit_scale}
            results = fusedlogp.linear_logp(hidden, weight, target, temperature=temperature, outputs=("logp", "lse"), **options)
            g = torch.randn(2, 13, device=DEVICE)
            kept = (target != -100).double()
            torch.autograd.backward(results, tuple(g))
            torch.autograd.backward(expected, (g[0].double(), g[1].double() * kept))
            bounds = Bounds(hidden, weight, 8.0, temperature.detach())
            # A sum of |p log p|, up to log V, beside the value; twice for two outputs, over the least temperature.
            self.assert_close(temperature.grad, t.grad, 2 * 4 * (8 * bounds.value) / 0.5, 1e-5)
            self.assert_close(hidden.grad, x.grad, bounds.hidden, bounds.relative)
            with torch.no_grad(): # one with gradients to come may leave exponentials for them, by tiles of its own
                alone = fusedlogp.linear_logp(hidden, weight, target, temperature=temperature, **options)
            self.assertTrue(torch.equal(results[0], alone))
        one = torch.tensor(0.7, device=DEVICE, requires_grad=True)
        fusedlogp.linear_logp(hidden, weight, target.reshape(1, 13)[0], temperature=one.expand(13)).sum().backward()
        z = (x.detach() @ w.detach().t())
        t = torch.tensor(0.7, device=DEVICE, dtype=torch.float64, requires_grad=True)
        reference(z / t, target)[0].sum().backward()
        self.assert_close(one.grad, t.grad, 13 * 16 * bounds.value / 0.7, 1e-5)

    def test_a_tensor_without_dimensions_is_the_temperature_of_all_rows(self):
        hidden, weight, _, target = draw(ignored=False)
        x, y = hidden.detach().view(1, 13, -1), target.view(1, 13)
        calls = {
            "linear_logp": lambda t: fusedlogp.linear_logp(x, weight, y, temperature=t, outputs="lse"),
            "linear_logp, shift": lambda t: fusedlogp.linear_logp(x, weight, y, temperature=t, shift=True),
            "linear_cross_entropy": lambda t: fusedlogp.linear_cross_entropy(x, weight, y, temperature=t, reduction="none"),
            "policy_loss": lambda t: fusedlogp.policy_loss(x, weight, y, {"advantages": torch.ones(1, 13, device=DEVICE)}, loss="reinforce", temperature=t),
            "logits_logp": lambda t: fusedlogp.logits_logp(x @ weight.detach().t(), y, temperature=t),
        }
        for name, call in calls.items():
            each = call(torch.full((1, 13), 0.75, device=DEVICE))
            for given in (torch.tensor(0.75, device=DEVICE), torch.tensor(0.75), torch.tensor(0.75, dtype=torch.bfloat16)):
                self.assertTrue(torch.equal(call(given), each), name)
            with self.assertRaisesRegex(TypeError, "temperature's dtype: got torch.int64"):
                call(torch.tensor(1))
        self.assertFalse(torch.equal(calls["linear_logp"](torch.tensor(0.5)), calls["linear_logp"](torch.tensor(0.75))))
        each, one = torch.full((13,), 0.75, device=DEVICE, requires_grad=True), torch.tensor(0.75, requires_grad=True)
        for t in (each, one):
            fusedlogp.linear_logp(x, weight, y, temperature=t.view(1, 13) if t is each else t).sum().backward()
        self.assert_close(one.grad, each.grad.sum().cpu(), 1e-5 * each.grad.abs().sum().item(), 0)

    def test_outputs_alone_and_in_any_order(self):
        hidden, weight, target = (x.detach() for x in draw() if x is not None) # one with gradients to come may take tiles of its own
        every = dict(zip(OUTPUTS, fusedlogp.linear_logp(hidden, weight, target, outputs=OUTPUTS)))
        for name in OUTPUTS:
            self.assertTrue(torch.equal(fusedlogp.linear_logp(hidden, weight, target, outputs=name), every[name]))
        entropy, logp = fusedlogp.linear_logp(hidden, weight, target, outputs=("entropy", "logp"))
        self.assertTrue(torch.equal(logp, every["logp"]) and torch.equal(entropy, every["entropy"]))

    def test_gradients_of_one_output_alone(self):
        for name in ("logp", "lse", "entropy"):
            hidden, weight, _, target = draw(ignored=False)
            x, w = double(hidden), double(weight)
            fusedlogp.linear_logp(hidden, weight, target, outputs=(name, "logp"))[0].sum().backward()
            reference(x @ w.t(), target)[OUTPUTS.index(name)].sum().backward()
            bounds = Bounds(hidden, weight, 12.0)
            self.assert_close(hidden.grad, x.grad, bounds.hidden)
            self.assert_close(weight.grad, w.grad, bounds.weight)

    def test_no_rows_that_lie_apart(self):
        none = torch.empty(0, dtype=torch.int64, device=DEVICE)
        for hidden in (torch.randn(0, 32, device=DEVICE)[:, ::2], torch.randn(16, 8, device=DEVICE).t()[:0]):
            hidden.requires_grad_()
            logp = fusedlogp.linear_logp(hidden, torch.randn(9, 16, device=DEVICE), none)
            logp.sum().backward()
            self.assertEqual([(0,), (0, 16)], [tuple(logp.shape), tuple(hidden.grad.shape)])
            self.assertEqual((0,), tuple(fusedlogp.logits_logp(hidden.detach(), none).shape))
            self.assertEqual((0,), tuple(fusedlogp.weighted_sum(hidden, torch.ones(16, device=DEVICE)).shape))

    def test_no_rows(self):
        hidden, weight, _, target = draw(rows=0)
        self.assertEqual(fusedlogp.linear_logp(hidden, weight, target).shape, (0,))

    def test_logits_logp(self):
        grid = itertools.product(DTYPES, (None, 4.0), (1.0, 0.6), (0, 3))
        for dtype, softcap, temperature, padding in some(grid, 5):
            with self.subTest(dtype=dtype, softcap=softcap, temperature=temperature, padding=padding):
                _, _, _, target = draw()
                wide = (3 * torch.randn(13, 101 + padding, device=DEVICE)).to(dtype).requires_grad_()
                logits = wide[:, :101]
                z = double(wide)
                scaled = z[:, :101]
                scaled = softcap * torch.tanh(scaled / softcap) if softcap else scaled
                expected = reference(scaled / temperature, target)
                results = fusedlogp.logits_logp(logits, target, softcap=softcap, temperature=temperature, outputs=OUTPUTS)
                bounds = Bounds(torch.ones(1, 1, device=DEVICE).to(dtype), 20 * torch.ones(101, 1, device=DEVICE), 48.0, temperature)
                self.check(results, expected, (wide,), (z, (target != -100).double()), bounds, (bounds.hidden / 20,))

    def test_weighted_sum(self):
        for dtype, w_dtype in some(itertools.product(DTYPES, DTYPES), 2):
            x = torch.randn(3, 5, 37, device=DEVICE).to(dtype).requires_grad_()
            w = torch.randn(37, device=DEVICE).to(w_dtype).requires_grad_()
            a, b = double(x), double(w)
            y = fusedlogp.weighted_sum(x, w)
            g = torch.randn_like(y)
            y.backward(g)
            (a @ b).backward(g.double())
            unit = 37 * 2.0**-24 * float((a.abs() @ b.abs()).detach().max())
            self.assertEqual((y.dtype, y.shape), (dtype, (3, 5)))
            self.assert_close(y, a @ b, unit, torch.finfo(dtype).eps)
            self.assert_close(x.grad, a.grad, 1e-7, torch.finfo(dtype).eps)
            unit = 15 * 2.0**-24 * float((g.double().abs().flatten() @ a.detach().abs().reshape(15, 37)).max())
            self.assert_close(w.grad, b.grad, unit, torch.finfo(w_dtype).eps)


class PolicyLoss(Case):
    def inputs(self, target):
        return {name: torch.randn(target.shape, device=DEVICE) - shift for name, shift in (("advantages", 0.0), ("old_logp", 4.0), ("reference_logp", 4.0))}

    def compare(self, loss, names, expression, **arguments):
        hidden, weight, _, target = draw(dtype=torch.float32)
        x, w = double(hidden), double(weight)
        inputs = {name: value for name, value in self.inputs(target).items() if name in names}
        mask = (torch.rand(target.shape, device=DEVICE) > 0.3).float()
        logp, lse, entropy, _ = reference(x @ w.t(), target)
        kept = mask.double() * (target != -100)
        rows = expression(logp, entropy, *(inputs[name].double() for name in names))
        expected = (rows * kept).sum() / kept.sum()
        actual, given_logp, given_entropy = fusedlogp.policy_loss(
            hidden, weight, target, inputs, loss=loss, token_weight=mask, outputs=("logp", "entropy"), **arguments
        )
        expected.backward()
        actual.backward()
        # exp(logp - old_logp) and advantages make derivatives of up to about 50.
        bounds = Bounds(hidden, weight, 50.0)
        self.assert_close(actual, expected, 50 * bounds.value)
        self.assert_close(given_logp, logp, bounds.value)
        self.assertFalse(given_logp.requires_grad or given_entropy.requires_grad)
        self.assert_close(hidden.grad, x.grad, bounds.hidden)
        self.assert_close(weight.grad, w.grad, bounds.weight)

    def test_clipped(self):
        for loss, high in (("ppo", 0.2), ("grpo", 0.2), ("dapo", 0.28)):

            def expression(logp, entropy, advantages, old_logp, high=high):
                ratio = torch.exp(logp - old_logp)
                return -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1 + high) * advantages)

            self.compare(loss, ("advantages", "old_logp"), expression)

    def test_clipped_twice(self):
        for dual in (3.0, 1.5):

            def expression(logp, entropy, advantages, old_logp, dual=dual):
                ratio = torch.exp(logp - old_logp)
                clipped = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
                return torch.where(advantages < 0, torch.minimum(clipped, -dual * advantages), clipped)

            self.compare("dual_clip", ("advantages", "old_logp"), expression, parameters={"clip_dual": dual})

    def test_clipped_weights(self):
        def expression(logp, entropy, advantages, old_logp):
            return -torch.exp(logp - old_logp).clamp(0.5, 1.5).detach() * advantages * logp

        self.compare("cispo", ("advantages", "old_logp"), expression, parameters={"clip_low": 0.5, "clip_high": 0.5})

    def test_a_ratio_beyond_fp32_is_clipped(self):
        hidden, weight, _, target = draw(dtype=torch.float32, ignored=False)
        inputs = {"advantages": torch.full(target.shape, -1.0, device=DEVICE), "old_logp": torch.full(target.shape, -1000.0, device=DEVICE)}
        loss = fusedlogp.policy_loss(hidden, weight, target, inputs, loss="dual_clip", reduction="none")
        self.assertTrue(torch.equal(loss, torch.full_like(loss, 3.0)))
        loss.sum().backward()
        self.assertEqual(float(hidden.grad.abs().max() + weight.grad.abs().max()), 0.0)
        loss, logp = fusedlogp.policy_loss(hidden, weight, target, inputs, loss="cispo", outputs=("logp",), reduction="none")
        torch.testing.assert_close(loss, 5 * logp)

    def test_with_a_reference_model(self):
        def expression(logp, entropy, advantages, old_logp, reference_logp):
            ratio = torch.exp(logp - old_logp)
            difference = reference_logp - logp
            return -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages) + 0.1 * (torch.exp(difference) - difference - 1)

        self.compare("grpo", ("advantages", "old_logp", "reference_logp"), expression, parameters={"kl_scale": 0.1})

    def test_ones_own(self):
        own = fusedlogp.TokenLoss("-advantages * logp - scale * entropy", inputs=("advantages",), parameters={"scale": 0.01})
        self.compare(own, ("advantages",), lambda logp, entropy, advantages: -advantages * logp - 0.02 * entropy, parameters={"scale": 0.02})
        self.compare("reinforce", ("advantages",), lambda logp, entropy, advantages: -advantages * logp)

    def test_sequence_ratios(self):
        hidden, weight, _, target = draw(ignored=False)
        x, w = double(hidden), double(weight)
        advantages, log_ratio = torch.randn(13, device=DEVICE), torch.randn(13, device=DEVICE) * 3e-4
        logp = reference(x @ w.t(), target)[0]
        ratio = torch.exp(log_ratio.double() + logp - logp.detach())
        a = advantages.double()
        expected = -torch.minimum(ratio * a, ratio.clamp(1 - 3e-4, 1 + 4e-4) * a)
        inputs = {"advantages": advantages, "sequence_log_ratio": log_ratio}
        actual = fusedlogp.policy_loss(hidden, weight, target, inputs, loss="gspo_token", reduction="none")
        bounds = Bounds(hidden, weight, 4.0)
        self.assert_close(actual, expected, bounds.value)
        actual.sum().backward()
        expected.sum().backward()
        self.assert_close(weight.grad, w.grad, bounds.weight)


class Shifted(Case):
    """A value for each row may be one for each result: the last position has no part in anything."""

    def setUp(self):
        super().setUp()
        hidden, self.weight, _, target = draw(rows=12)
        self.hidden, self.target = hidden.detach().reshape(2, 6, -1).requires_grad_(), target.reshape(2, 6)

    def alike(self, call, values):
        """The same bits with [..., T] and [..., T - 1], gradients too."""
        found = []
        for given in ({name: value[..., :5] for name, value in values.items()}, values):
            results = call(self.hidden, self.weight, self.target, **given)
            results = results if isinstance(results, tuple) else (results,)
            leaves = [self.hidden, self.weight, *(value for value in given.values() if value.requires_grad)]
            found.append((*results, *torch.autograd.grad(sum(result.sum() for result in results if result.requires_grad), leaves)))
        for a, b in zip(*found, strict=True):
            self.assertTrue(torch.equal(a, b if a.shape == b.shape else b[..., :5]))

    def test_values_of_linear_logp_go_into_policy_loss(self):
        with torch.no_grad():
            old_logp = fusedlogp.linear_logp(self.hidden, self.weight, self.target, shift=True) + 0.01
        advantages = torch.randn(2, 5, device=DEVICE)
        given = {"advantages": advantages, "old_logp": old_logp}
        actual = fusedlogp.policy_loss(self.hidden, self.weight, self.target, given, reduction="none", shift=True)
        logp = fusedlogp.linear_logp(self.hidden, self.weight, self.target, shift=True)
        ratio = torch.exp(logp - old_logp)
        expected = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        expected = torch.where(self.target[:, 1:] == -100, 0.0, expected)
        self.assert_close(actual, expected, 8 * Bounds(self.hidden.flatten(0, 1), self.weight, 4.0).value)
        compiled = torch.compile(fusedlogp.policy_loss, backend="aot_eager", fullgraph=True)
        self.assert_same(compiled(self.hidden, self.weight, self.target, given, reduction="none", shift=True), actual, 1e-6)

    def test_both_lengths_of_each_value(self):
        def policy(*problem, advantages, old_logp, **options):
            return fusedlogp.policy_loss(*problem, {"advantages": advantages, "old_logp": old_logp}, shift=True, **options)

        def logp(*problem, **options):
            return fusedlogp.linear_logp(*problem, outputs=("logp", "lse"), shift=True, **options)

        values = {name: torch.rand(2, 6, device=DEVICE) + 0.5 for name in ("advantages", "old_logp", "token_weight", "temperature")}
        weights = {name: values[name] for name in ("token_weight", "temperature")}
        self.alike(policy, values)
        self.alike(lambda *problem, **given: fusedlogp.linear_cross_entropy(*problem, shift=True, **given), weights)
        self.alike(lambda *problem, **given: fusedlogp.linear_cross_entropy(*problem, shift=True, reduction="none", **given), weights)
        self.alike(logp, {"temperature": values["temperature"]})
        self.alike(logp, {"temperature": values["temperature"].requires_grad_()})
        self.alike(lambda *problem, **given: fusedlogp.linear_cross_entropy(*problem, shift=True, **given), {"token_weight": weights["token_weight"] > 1})

    def test_other_lengths_are_refused(self):
        for options in ({"token_weight": torch.ones(2, 4)}, {"temperature": torch.ones(2, 4)}, {"token_weight": torch.ones(2, 5), "shift": False}):
            options = {"shift": True, **{name: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for name, value in options.items()}}
            wanted = r"\(2, 6\) or \(2, 5\)" if options["shift"] else r"wanted \(2, 6\)$"
            with self.assertRaisesRegex(ValueError, wanted):
                fusedlogp.linear_cross_entropy(self.hidden, self.weight, self.target, **options)
        with self.assertRaisesRegex(ValueError, r"inputs\['advantages'\]'s shape: got \(2, 4\), wanted \(2, 6\) or \(2, 5\)"):
            fusedlogp.policy_loss(self.hidden, self.weight, self.target, {"advantages": torch.ones(2, 4, device=DEVICE)}, loss="reinforce", shift=True)

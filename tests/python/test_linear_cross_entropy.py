"""The loss and its gradients beside eager torch in fp64."""

import itertools

import torch
import torch.nn.functional as F
from support import DEVICE, DTYPES, Bounds, Case, double, draw, logits_of, some

import fusedlogp


def eager(logits, target, weight=None, reduction="mean", label_smoothing=0.0, z_loss=0.0, token_weight=None):
    """F.cross_entropy, with the library's other terms where they are asked for."""
    kept = (target != -100).double()
    rows = F.cross_entropy(logits, target, weight=weight, reduction="none", label_smoothing=label_smoothing)
    rows = rows + z_loss * torch.logsumexp(logits, -1) ** 2 * kept
    factor = kept if token_weight is None else token_weight * kept
    rows = rows * factor
    if reduction == "none":
        return rows
    if reduction == "sum":
        return rows.sum()
    classes = torch.ones_like(factor) if weight is None else weight[target.clamp(min=0)]
    return rows.sum() / (factor * classes).sum()


OPTIONS = [
    {},
    {"softcap": 3.0},
    {"logit_scale": 0.25, "softcap": 2.0},
    {"temperature": 0.7},
    {"label_smoothing": 0.1},
    {"z_loss": 1e-2},
    {"class_weight": True},
    {"class_weight": True, "label_smoothing": 0.2},
    {"token_weight": True},
    {"row_temperature": True},
]


class LinearCrossEntropy(Case):
    def test_masks_of_any_integers(self):
        hidden, weight, _, target = draw()
        mask = torch.arange(13, device=DEVICE) % 3
        expected = fusedlogp.linear_cross_entropy(hidden, weight, target, token_weight=mask.float())
        for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            self.assertTrue(torch.equal(fusedlogp.linear_cross_entropy(hidden, weight, target, token_weight=mask.to(dtype)), expected), dtype)
        expected = fusedlogp.linear_cross_entropy(hidden, weight, target, token_weight=(mask > 0).float())
        self.assertTrue(torch.equal(fusedlogp.linear_cross_entropy(hidden, weight, target, token_weight=mask > 0), expected))

    def test_a_policys_inputs_of_each_sequence(self):
        hidden, weight, _, target = draw(rows=12)
        hidden, target = hidden.view(3, 4, -1), target.view(3, 4)
        each, old = torch.randn(3, 1, device=DEVICE), torch.randn(3, 4, device=DEVICE) - 4
        for shift in (False, True):
            call = lambda advantages, shift=shift: fusedlogp.policy_loss(
                hidden, weight, target, {"advantages": advantages, "old_logp": old}, loss="ppo", shift=shift
            )
            self.assertTrue(torch.equal(call(each), call(each.expand(3, 4))))
        two = lambda advantages: fusedlogp.policy_loss(hidden[:, :2], weight, target[:, :2], {"advantages": advantages}, loss="reinforce", shift=True)
        self.assertTrue(torch.equal(two(each), two(each.expand(3, 2))))
        for shape in ((1, 4), (3,), (3, 1, 1), (4, 1)):
            with self.assertRaisesRegex(ValueError, r"inputs\['advantages'\]'s shape.*wanted \(3, 4\) or \(3, 1\)"):
                fusedlogp.policy_loss(hidden, weight, target, {"advantages": torch.ones(shape, device=DEVICE)}, loss="reinforce")

    def compare(self, dtype, layout, bias, reduction, options):
        hidden, weight, offset, target = draw(dtype=dtype, bias=bias)
        x, w, b = double(hidden), double(weight), double(offset)
        options = dict(options)
        classes = torch.rand(weight.shape[0], device=DEVICE) + 0.5 if options.pop("class_weight", False) else None
        tokens = torch.rand(hidden.shape[0], device=DEVICE) if options.pop("token_weight", False) else None
        if options.pop("row_temperature", False):
            options["temperature"] = torch.rand(hidden.shape[0], device=DEVICE) + 0.5
        scaling = {name: options.get(name) for name in ("softcap", "logit_scale", "temperature") if name in options}
        terms = {name: options[name] for name in ("label_smoothing", "z_loss") if name in options}
        expected = eager(logits_of(x, w, b, **scaling), target, None if classes is None else classes.double(), reduction,
                         token_weight=None if tokens is None else tokens.double(), **terms)  # fmt: skip
        if layout == "dv":
            given = weight.detach().t().contiguous().requires_grad_()
        elif layout == "strided":
            given = F.pad(weight.detach(), (0, 8)).requires_grad_()
        else:
            given = weight
        passed = given[:, : weight.shape[1]] if layout == "strided" else given
        actual = fusedlogp.linear_cross_entropy(
            hidden, passed, target, linear_bias=offset, weight=classes, reduction=reduction, token_weight=tokens,
            weight_layout="dv" if layout == "dv" else "vd", **options,
        )  # fmt: skip
        upstream = torch.rand_like(actual) + 0.5
        actual.backward(upstream)
        expected.backward(upstream.double())
        # A row's derivatives by its logits are at most so much: class weights are up to 1.5, lse up to about 8.
        scale = 3 * (2.0 if reduction != "mean" else 2.0 / max(1, int((target != -100).sum()) // 2))
        bounds = Bounds(hidden, weight, scale, options.get("temperature", 1.0))
        rows = 1 if reduction != "sum" else hidden.shape[0]
        self.assert_close(actual, expected, 4 * bounds.value * rows, 1e-6)
        grad = given.grad.t() if layout == "dv" else given.grad[:, : weight.shape[1]]
        self.assert_close(hidden.grad, x.grad, bounds.hidden, bounds.relative)
        self.assert_close(grad, w.grad, bounds.weight, bounds.relative)
        if bias:
            self.assert_close(offset.grad, b.grad, bounds.bias, bounds.relative)

    def test_grid(self):
        grid = itertools.product(DTYPES, ("vd", "dv", "strided"), (False, True), ("mean", "sum", "none"), OPTIONS)
        for dtype, layout, bias, reduction, options in some(grid, 11):
            with self.subTest(dtype=dtype, layout=layout, bias=bias, reduction=reduction, options=options):
                self.compare(dtype, layout, bias, reduction, options)

    def test_is_a_drop_in_for_torch(self):
        if not hasattr(F, "linear_cross_entropy"):
            self.skipTest("torch.nn.functional.linear_cross_entropy came with torch 2.13")
        hidden, weight, bias, target = draw(bias=True)
        classes = torch.rand(weight.shape[0], device=DEVICE)
        bounds = Bounds(hidden, weight, 2.0)
        for reduction, smoothing in itertools.product(("mean", "sum", "none"), (0.0, 0.1)):
            arguments = {"linear_bias": bias, "weight": classes, "reduction": reduction, "label_smoothing": smoothing}
            expected = F.linear_cross_entropy(hidden, weight, target, **arguments)
            actual = fusedlogp.linear_cross_entropy(hidden, weight, target, **arguments)
            self.assertEqual(actual.shape, expected.shape)
            self.assert_close(actual, expected, 8 * bounds.value * (hidden.shape[0] if reduction == "sum" else 1), 1e-6)

    def test_names_order_and_defaults_are_torchs(self):
        import inspect

        if not hasattr(F, "linear_cross_entropy"):
            self.skipTest("torch.nn.functional.linear_cross_entropy came with torch 2.13")
        for theirs, ours in ((F.linear_cross_entropy, fusedlogp.linear_cross_entropy), (torch.nn.LinearCrossEntropyLoss, fusedlogp.LinearCrossEntropyLoss)):
            wanted = [(p.name, p.default, p.kind) for p in inspect.signature(theirs).parameters.values()]
            given = [(p.name, p.default, p.kind) for p in inspect.signature(ours).parameters.values()]
            self.assertEqual(given[: len(wanted)], wanted)

    def test_any_leading_shape(self):
        hidden, weight, _, target = draw(rows=12)
        expected = fusedlogp.linear_cross_entropy(hidden, weight, target, reduction="none")
        for shape in ((3, 4), (2, 3, 2), (12, 1)):
            actual = fusedlogp.linear_cross_entropy(hidden.reshape(*shape, -1), weight, target.reshape(shape), reduction="none")
            self.assertEqual(actual.shape, torch.Size(shape))
            self.assertTrue(torch.equal(actual.flatten(), expected))
        one = fusedlogp.linear_cross_entropy(hidden[1], weight, target[1], reduction="none")
        self.assertEqual(one.shape, torch.Size(()))
        self.assertTrue(torch.equal(one, expected[1]))

    def test_no_rows(self):
        hidden, weight, _, target = draw(rows=0)
        loss = fusedlogp.linear_cross_entropy(hidden, weight, target, reduction="sum")
        loss.backward()
        self.assertEqual(loss.item(), 0)
        self.assertTrue(torch.equal(weight.grad, torch.zeros_like(weight)))

    def test_a_mean_over_no_rows_is_zero(self):
        hidden, weight, _, target = draw()
        for given in ((hidden[:0], weight, target[:0]), (hidden, weight, torch.full_like(target, -100))):
            loss = fusedlogp.linear_cross_entropy(*given)
            self.assertEqual(0, loss.item())
            self.assertEqual(0, sum(gradient.count_nonzero() for gradient in torch.autograd.grad(loss, (hidden, weight))))
        self.assertEqual(0, fusedlogp.linear_cross_entropy(hidden, weight, target, token_weight=torch.zeros(13, device=DEVICE)).item())

    def test_a_row_s_temperature_out_of_range_counts_as_the_nearest(self):
        hidden, weight, _, target = draw()
        given = torch.tensor([0.0, -1.0, 2.0**-70, 2.0**70], device=DEVICE)
        nearest = torch.tensor([2.0**-64, 2.0**-64, 2.0**-64, 2.0**64], device=DEVICE)
        actual, expected = (fusedlogp.linear_logp(hidden[1:5], weight, target[1:5], temperature=each) for each in (given, nearest))
        self.assertTrue(torch.equal(actual, expected))

    def test_shift_compares_with_the_next_token(self):
        hidden, weight, _, target = draw(rows=12)
        hidden, target = hidden.reshape(2, 6, -1), target.reshape(2, 6)
        expected = fusedlogp.linear_cross_entropy(hidden[:, :-1], weight, target[:, 1:], reduction="none")
        actual, lse = fusedlogp.linear_cross_entropy(hidden, weight, target, reduction="none", shift=True, return_lse=True)
        self.assertTrue(torch.equal(actual, expected))
        self.assertEqual(lse.shape, (2, 5))
        mean = fusedlogp.linear_cross_entropy(hidden, weight, target, shift=True)
        self.assert_same(mean, fusedlogp.linear_cross_entropy(hidden[:, :-1], weight, target[:, 1:]), Bounds(hidden.flatten(0, 1), weight, 1.0).value)

    def test_return_lse(self):
        hidden, weight, _, target = draw(ignored=False)
        _, lse = fusedlogp.linear_cross_entropy(hidden, weight, target, return_lse=True)
        self.assertFalse(lse.requires_grad)
        self.assert_close(lse, torch.logsumexp(hidden.double() @ weight.double().t(), -1), Bounds(hidden, weight, 1.0).value)

    def test_module(self):
        module = fusedlogp.LinearCrossEntropyLoss(40, 101, bias=True, device=DEVICE, softcap=5.0, reduction="sum")
        hidden, _, _, target = draw()
        actual = module(hidden, target)
        expected = fusedlogp.linear_cross_entropy(hidden, module.linear.weight, target, linear_bias=module.linear.bias, softcap=5.0, reduction="sum")
        self.assertTrue(torch.equal(actual, expected))
        actual.backward()
        self.assertEqual(module.linear.weight.grad.shape, (101, 40))
        self.assertIn("num_classes=101", repr(module))
        self.assertEqual((), module.out_features)

    def test_what_is_for_gradients_is_taken_by_calls_without(self):
        hidden, weight, _, target = draw()
        options = {"memory_budget": 64 << 20, "grad_filter_eps": 1e-4}
        main_grad = torch.zeros_like(weight)
        for without in ({"reduction": "none"}, {"accumulate_into": main_grad}, {}):
            with self.subTest(without=list(without)), torch.set_grad_enabled(bool(without)):
                expected = fusedlogp.linear_cross_entropy(hidden, weight, target, reduction=without.get("reduction", "mean"))
                actual = fusedlogp.linear_cross_entropy(hidden, weight, target, **without, **options)
                self.assert_close(actual, expected, 2 * Bounds(hidden, weight, 1.0).value)
                if actual.requires_grad:
                    actual.sum().backward()
        self.assertGreater(float(main_grad.norm()), 0)
        self.assertIsNotNone(hidden.grad)
        for reduction in ("none", "mean"):
            loss = fusedlogp.policy_loss(hidden, weight.detach(), target, {"advantages": torch.ones(13, device=DEVICE)}, loss="reinforce", reduction=reduction,
                                         memory_budget=64 << 20)  # fmt: skip
            loss.sum().backward()

    def test_memory_budget_changes_nothing_but_rounding(self):
        hidden, weight, _, target = draw()
        losses = [fusedlogp.linear_cross_entropy(hidden, weight, target, memory_budget=budget) for budget in (0, 64 << 20)]
        grads = [torch.autograd.grad(loss, (hidden, weight)) for loss in losses]
        bounds = Bounds(hidden, weight, 1.0)
        self.assert_close(losses[0], losses[1], bounds.value)
        self.assert_close(grads[0][0], grads[1][0], bounds.hidden)
        self.assert_close(grads[0][1], grads[1][1], bounds.weight)

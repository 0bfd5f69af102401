"""What torch does with a function, tried with each differentiable function: compiled, checkpointed, kept, used twice, hooked, transformed, sliced, tied."""

import unittest

import torch
from support import DEVICE, EVERYTHING, FP32_UNIT, Case, draw
from torch.utils.checkpoint import checkpoint

import fusedlogp

ROWS, COLUMNS, VOCAB = 13, 40, 101


def with_slope(*results):
    """A scalar that depends on each element of all results, otherwise on each."""
    slopes = [torch.sin(torch.arange(result.numel(), device=result.device) + i + 1.0).reshape(result.shape) for i, result in enumerate(results)]
    return sum((slope * result).sum() for slope, result in zip(slopes, results))


def policy(x, w, target, **options):
    inputs = {"advantages": torch.cos(torch.arange(ROWS, device=DEVICE) * 1.0)}
    return fusedlogp.policy_loss(x, w, target, inputs, loss=BONUS, **options)


BONUS = fusedlogp.TokenLoss("-advantages * logp - 0.1 * entropy", inputs=("advantages",))
# Of (input, weight, target); the first two are leaves.
LINEAR = {
    "loss": lambda x, w, t: fusedlogp.linear_cross_entropy(x, w, t),
    "losses": lambda x, w, t: with_slope(fusedlogp.linear_cross_entropy(x, w, t, reduction="none", z_loss=0.1)),
    "policy": lambda x, w, t: policy(x, w, t),
    "policies": lambda x, w, t: with_slope(policy(x, w, t, reduction="none")),
    "logp": lambda x, w, t: with_slope(fusedlogp.linear_logp(x, w, t)),
    "logp and lse": lambda x, w, t: with_slope(*fusedlogp.linear_logp(x, w, t, outputs=("logp", "lse"))),
    "entropy": lambda x, w, t: with_slope(*fusedlogp.linear_logp(x, w, t, outputs=("logp", "lse", "entropy"))),
}
OTHERS = {
    "logits": lambda z, t: with_slope(*fusedlogp.logits_logp(z, t, outputs=("logp", "lse", "entropy"))),
    "weighted sum": lambda x, w: with_slope(fusedlogp.weighted_sum(x, w)),
}


class Transforms(Case):
    def each(self, names=None):
        """(name, function of leaves, leaves) of each differentiable function, in a subtest of its own."""
        for name in names or (*LINEAR, *OTHERS):
            hidden, weight, _, target = draw(ROWS, COLUMNS, VOCAB)
            if name == "logits":
                leaves, function = [(3 * torch.randn(ROWS, VOCAB, device=DEVICE)).requires_grad_()], lambda z: OTHERS["logits"](z, target)
            elif name == "weighted sum":
                leaves, function = [hidden, weight.detach()[0].clone().requires_grad_()], OTHERS[name]
            else:
                leaves, function = [hidden, weight], lambda x, w, name=name: LINEAR[name](x, w, target)
            with self.subTest(name):
                yield name, function, leaves

    def alike(self, actual, expected):
        """Sums of D, V or N terms in another order: exponentials of logits of up to 16 are off by so much, relative to the largest of a gradient."""
        for a, b in zip(actual, expected, strict=True):
            self.assert_close(a, b, 4 * (ROWS + COLUMNS + VOCAB) * FP32_UNIT * 16 * float(b.abs().max()))

    def grads(self, value, leaves, **options):
        return torch.autograd.grad(value, leaves, **options)

    def test_compiled_without_breaks(self):
        for _, function, leaves in self.each():
            torch._dynamo.reset()
            compiled = torch.compile(function, fullgraph=True, backend="inductor" if EVERYTHING else "aot_eager")
            actual, expected = compiled(*leaves), function(*leaves)
            self.alike([actual, *self.grads(actual, leaves)], [expected, *self.grads(expected, leaves)])

    def test_checkpointed(self):
        for _, function, leaves in self.each():
            expected = self.grads(function(*leaves), leaves)
            self.alike(self.grads(checkpoint(function, *leaves, use_reentrant=False), leaves), expected)
            checkpoint(function, *leaves, use_reentrant=True).backward()
            self.alike([leaf.grad for leaf in leaves], expected)

    def test_kept_and_then_gone(self):
        for _, function, leaves in self.each():
            value = function(*leaves)
            first = self.grads(value, leaves, retain_graph=True)
            copies = [gradient.clone() for gradient in first]
            self.alike(self.grads(value, leaves, retain_graph=True, grad_outputs=torch.tensor(2.0, device=DEVICE)), [2 * each for each in copies])
            self.alike(self.grads(value, leaves), copies)
            for a, b in zip(first, copies):
                self.assertTrue(torch.equal(a, b), "a backward wrote into what another one gave")
            with self.assertRaises(RuntimeError):
                self.grads(value, leaves)

    def test_used_twice(self):
        for _, function, leaves in self.each():
            expected = self.grads(function(*leaves), leaves)
            value = function(*leaves)
            self.alike(self.grads(2 * value + function(*leaves) - 0.5 * value, leaves), [2.5 * each for each in expected])

    def test_tied(self):
        tokens = torch.randint(0, VOCAB, (ROWS,), device=DEVICE)
        for _, function, (hidden, weight) in self.each(LINEAR):
            value = function(hidden + torch.nn.functional.embedding(tokens, weight), weight)
            states = (hidden + torch.nn.functional.embedding(tokens, weight)).detach().requires_grad_()
            by_states, by_weight = self.grads(function(states, weight), (states, weight))
            self.alike(self.grads(value, (hidden, weight)), (by_states, by_weight.index_add(0, tokens, by_states)))
        for name, function, leaves in self.each(OTHERS):
            expected = self.grads(function(*leaves), leaves)
            others = [torch.randn_like(leaf) for leaf in leaves]
            tied = function(*leaves) + sum((leaf * other).sum() for leaf, other in zip(leaves, others))
            self.alike(self.grads(tied, leaves), [a + b for a, b in zip(expected, others)])

    def test_saved_tensors_are_hooked(self):
        for name, function, leaves in self.each():
            expected = self.grads(function(*leaves), leaves)
            shapes = []
            hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor, shapes=shapes: shapes.append(tuple(tensor.shape)) or tensor.clone(), lambda t: t)
            for hook in (hooks, torch.autograd.graph.save_on_cpu()):
                with hook:
                    value = function(*leaves)
                self.alike(self.grads(value, leaves), expected)
            self.assertTrue(shapes)
            if name != "logits":
                self.assertNotIn((ROWS, VOCAB), shapes, "logits were saved")

    def test_the_same_bits_in_deterministic_mode(self):
        torch.use_deterministic_algorithms(True)
        try:
            for _, function, leaves in self.each():
                first, second = (self.grads(function(*leaves), leaves) for _ in range(2))
                self.assertTrue(all(map(torch.equal, first, second)))
        finally:
            torch.use_deterministic_algorithms(False)

    def test_autocast(self):
        for name, function, leaves in self.each():
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                value = function(*leaves)
            # What has a matrix product is cast, as torch.nn.functional.linear; what is given logits or sums is not, as cross_entropy.
            cast = [leaf.bfloat16() for leaf in leaves] if name in LINEAR else leaves
            expected = function(*cast)
            self.assertEqual(value.dtype, torch.float32)
            self.assert_same(value, expected, 1e-3)
            given, wanted = self.grads(value, leaves), self.grads(expected, leaves)
            self.assertEqual([torch.float32] * len(leaves), [gradient.dtype for gradient in given])
            self.alike(given, wanted)

    def test_func_grad(self):
        for _, function, leaves in self.each():
            values = [leaf.detach() for leaf in leaves]
            numbers = tuple(range(len(leaves)))
            self.alike(torch.func.grad(function, argnums=numbers)(*values), self.grads(function(*leaves), leaves))

    def test_vmap_and_vmap_of_grad(self):
        for _, function, leaves in self.each():
            first, *rest = [leaf.detach() for leaf in leaves]
            batch = torch.stack([first, 0.5 * first, first.roll(1, 0)])
            dims = (0, *(None for _ in rest))
            self.alike([torch.func.vmap(function, in_dims=dims)(batch, *rest)], [torch.stack([function(each, *rest) for each in batch])])
            numbers = tuple(range(len(leaves)))
            together = torch.func.vmap(torch.func.grad(function, argnums=numbers), in_dims=dims)(batch, *rest)
            for i, each in enumerate(batch):
                alone = [value.clone().requires_grad_() for value in (each, *rest)]
                self.alike([gradient[i] for gradient in together], self.grads(function(*alone), alone))

    def test_vmap_of_samples_with_one_row(self):
        hidden, weight, _, target = draw(ROWS, COLUMNS, VOCAB)
        x, w, logits = hidden.detach(), weight.detach(), 3 * torch.randn(ROWS, 2, VOCAB, device=DEVICE)[:, 0]
        self.alike([torch.func.vmap(lambda t: fusedlogp.linear_logp(x[0], w, t))(target)], [fusedlogp.linear_logp(x[:1].expand(ROWS, COLUMNS), w, target)])
        strided = torch.stack([x, x + 1], 1)[:, 0]
        self.alike([torch.func.vmap(lambda a, t: fusedlogp.linear_logp(a, w, t))(strided, torch.stack([target, target], 1)[:, 0])],
                   [fusedlogp.linear_logp(x, w, target)])  # fmt: skip
        self.alike([torch.func.vmap(lambda z: fusedlogp.logits_logp(z, target[0]))(logits)], [fusedlogp.logits_logp(logits, target[:1].expand(ROWS))])
        self.alike([torch.func.vmap(lambda a: fusedlogp.weighted_sum(a, w[0]))(x[:1].expand(3, COLUMNS))], [fusedlogp.weighted_sum(x[:1], w[0]).expand(3)])

    def test_upstream_gradients_in_a_batch(self):
        for _, function, leaves in self.each():
            expected = self.grads(function(*leaves), leaves)
            factors = torch.tensor([1.0, -2.0, 0.5], device=DEVICE)
            together = self.grads(function(*leaves), leaves, grad_outputs=factors, is_grads_batched=True)
            for i, factor in enumerate(factors):
                self.alike([gradient[i] for gradient in together], [factor * each for each in expected])

    def test_slices_and_turned_tensors(self):
        for _, function, leaves in self.each():
            expected = self.grads(function(*leaves), leaves)
            for view in (
                lambda leaf: torch.stack([leaf, leaf + 1], -1)[..., 0],
                lambda leaf: torch.cat([leaf + 1, leaf], -1)[..., leaf.shape[-1] :],
                lambda leaf: leaf.flip(-1).flip(-1) if leaf.dim() < 2 else leaf.t().contiguous().t(),
            ):
                self.alike(self.grads(function(*map(view, leaves)), leaves), expected)

    def test_only_the_gradients_that_are_wanted(self):
        for _, function, leaves in self.each():
            expected = self.grads(function(*leaves), leaves)
            for i in range(len(leaves)):
                given = [leaf if i == j else leaf.detach() for j, leaf in enumerate(leaves)]
                self.alike(self.grads(function(*given), [leaves[i]]), [expected[i]])
                self.alike(self.grads(function(*leaves), [leaves[i]]), [expected[i]])

    def test_without_grad_nothing_is_kept(self):
        for _, function, leaves in self.each():
            with torch.no_grad():
                self.assertFalse(function(*leaves).requires_grad)
            with torch.inference_mode():
                function(*leaves)

    def test_a_second_differentiation_is_refused(self):
        for _, function, leaves in self.each():
            gradients = self.grads(function(*leaves), leaves, create_graph=True)
            with self.assertRaisesRegex((NotImplementedError, RuntimeError), "a second time"):
                self.grads(sum(gradient.square().sum() for gradient in gradients), leaves)

    def test_forward_mode_is_refused(self):
        for _, function, leaves in self.each():
            for i in range(len(leaves)):
                for detached in (True, False):
                    with torch.autograd.forward_ad.dual_level(), self.assertRaisesRegex(NotImplementedError, "got a dual tensor"):
                        given = [leaf.detach() if detached else leaf for leaf in leaves]
                        given[i] = torch.autograd.forward_ad.make_dual(given[i], torch.ones_like(given[i]))
                        function(*given)
            with self.assertRaises(NotImplementedError):
                torch.func.jvp(function, tuple(leaf.detach() for leaf in leaves), tuple(torch.ones_like(leaf) for leaf in leaves))
            with torch.autograd.forward_ad.dual_level():  # no tangents, nothing to refuse
                function(*leaves)
            value = function(*leaves)
            with torch.autograd.forward_ad.dual_level(), self.assertRaisesRegex(NotImplementedError, "got a dual tensor"):
                self.grads(value, leaves, grad_outputs=torch.autograd.forward_ad.make_dual(torch.ones_like(value), torch.ones_like(value)))

    def test_numbers_that_change_between_calls_are_compiled_without_breaks(self):
        hidden, weight, _, target = draw(ROWS, COLUMNS, VOCAB)
        for name, values in (("softcap", (30.0, 50.0, 7.0, None)), ("temperature", (0.5, 0.7, 2.0)), ("logit_scale", (0.5, 0.7, 2.0))):
            torch._dynamo.reset()
            compiled = torch.compile(lambda v, name=name: fusedlogp.linear_logp(hidden, weight, target, **{name: v}), fullgraph=True, backend="aot_eager")
            for value in values:
                with self.subTest(name=name, value=value):
                    self.assert_close(compiled(value), fusedlogp.linear_logp(hidden, weight, target, **{name: value}), 1e-4, 1e-5)

    def test_a_learned_temperature_is_compiled_without_breaks(self):
        hidden, weight, _, target = draw(ROWS, COLUMNS, VOCAB)
        warm = (torch.rand(ROWS, device=DEVICE) + 0.5).requires_grad_()
        function = lambda x, w, t: with_slope(*fusedlogp.linear_logp(x, w, target, temperature=t, outputs=("logp", "lse")))
        leaves = (hidden, weight, warm)
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        self.alike(self.grads(compiled(*leaves), leaves), self.grads(function(*leaves), leaves))

    def test_main_grad(self):
        hidden, weight, _, target = draw(ROWS, COLUMNS, VOCAB)
        expected = self.grads(fusedlogp.linear_cross_entropy(hidden, weight, target), (hidden, weight))
        for name, through in (
            ("checkpointed", lambda function, x: checkpoint(function, x, use_reentrant=False)),
            ("checkpointed by a node of its own", lambda function, x: checkpoint(function, x, use_reentrant=True)),
            ("compiled", lambda function, x: torch.compile(function, fullgraph=True, backend="aot_eager")(x)),
            ("sliced", lambda function, x: function(torch.stack([x, x], -1)[..., 0])),
        ):
            with self.subTest(name):
                torch._dynamo.reset()
                main_grad, hidden.grad, weight.grad = torch.ones_like(weight), None, None
                through(lambda x, total=main_grad: fusedlogp.linear_cross_entropy(x, weight, target, accumulate_into=total), hidden).backward()
                self.alike((hidden.grad, main_grad - 1), expected)
                self.assertIsNone(weight.grad)


if __name__ == "__main__":
    unittest.main()

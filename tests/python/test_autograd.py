"""Everything that autograd does with a function: graphs kept, used twice, checkpointed, transformed."""

import itertools

import torch
from support import DEVICE, Bounds, Case, double, draw
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import fusedlogp


def plain(hidden, weight, target, bias=None):
    return torch.nn.functional.cross_entropy(torch.nn.functional.linear(hidden, weight, bias), target)


class Autograd(Case):
    def close(self, actual, expected, bounds):
        """Gradients by hidden and weight."""
        self.assert_close(actual[0], expected[0], bounds.hidden * 4)
        self.assert_close(actual[1], expected[1], bounds.weight * 4)

    def test_a_kept_graph_gives_the_same_again(self):
        hidden, weight, _, target = draw()
        loss = fusedlogp.linear_cross_entropy(hidden, weight, target)
        first = torch.autograd.grad(loss, (hidden, weight), grad_outputs=torch.tensor(3.0, device=DEVICE), retain_graph=True)
        second = torch.autograd.grad(loss, (hidden, weight), grad_outputs=torch.tensor(3.0, device=DEVICE))
        for a, b in zip(first, second):
            self.assertTrue(torch.equal(a, b))
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(loss, (hidden, weight))

    def test_an_upstream_gradient_keeps_its_digits(self):
        g = torch.tensor(1 / 3, device=DEVICE)  # in bf16 it would be off by 0.2 %
        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(dtype):
                hidden, weight, _, target = draw(dtype=dtype)
                loss = fusedlogp.linear_cross_entropy(hidden, weight, target, reduction="sum")
                ones = torch.autograd.grad(loss, (hidden, weight), retain_graph=True)
                expected = [(gradient.float() * g).to(dtype) for gradient in ones]
                kept = torch.autograd.grad(loss, (hidden, weight), g, retain_graph=True)
                batched = torch.autograd.grad(loss, (hidden, weight), g.reshape(1), is_grads_batched=True, retain_graph=True)
                last = torch.autograd.grad(loss, (hidden, weight), g)
                for i in range(2):
                    self.assertTrue(torch.equal(kept[i], expected[i]))
                    self.assertTrue(torch.equal(batched[i][0], expected[i]))
                    self.assertTrue(torch.equal(last[i], expected[i]))

    def test_a_loss_scale_protects_gradients_in_fp16(self):
        rows = 256
        hidden, weight, _, target = draw(rows=rows, columns=8, vocab=60000, dtype=torch.float16, ignored=False)
        target %= 100
        rest = slice(100, None)  # their gradients are some 1e-5, of which fp16 has steps of 6e-8
        advantages = {"advantages": torch.ones(rows, device=DEVICE)}
        x, w = (value.detach().double().requires_grad_() for value in (hidden, weight))
        torch.nn.functional.cross_entropy(x @ w.t(), target).backward()
        for name, function in (
            ("mean", lambda x, w: fusedlogp.linear_cross_entropy(x, w, target)),
            ("sum", lambda x, w: fusedlogp.linear_cross_entropy(x, w, target, reduction="sum", token_weight=torch.full((rows,), 1 / rows, device=DEVICE))),
            ("policy", lambda x, w: fusedlogp.policy_loss(x, w, target, advantages, loss="reinforce")),
        ):
            kinds = (((hidden, weight), False), ([value.detach().float().requires_grad_() for value in (hidden, weight)], True))
            for leaves, cast in kinds[name == "mean" :]:
                with self.subTest(name, cast=cast), torch.autocast(DEVICE, dtype=torch.float16, enabled=cast):
                    got = torch.autograd.grad(function(*leaves) * 4096, leaves)
                    for mine, wanted in ((got[0], x.grad), (got[1], w.grad), (got[1][rest], w.grad[rest])):
                        # Derivatives and results are rounded to fp16, by up to 2^-11 of each that is not subnormal, and by that over sqrt(3) in the mean.
                        self.assertLessEqual(float((mine.double() / 4096 - wanted).norm() / wanted.norm()), 2.0**-11 * (2 / 3) ** 0.5)

    def test_scale_multiplies_in_place(self):
        factor = torch.tensor(1 / 3, device=DEVICE)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            whole = torch.randn(9, 21, device=DEVICE).to(dtype)
            for part in ((slice(None), slice(None)), (slice(1, 8), slice(3, 20)), (2, slice(1, None)), (slice(0, 0), slice(None))):
                for transposed in (False, True):
                    with self.subTest(dtype=dtype, part=part, transposed=transposed):
                        got, expected = whole.clone(), whole.clone()
                        expected[part] = (whole[part].float() * factor).to(dtype)
                        view = got[part]
                        torch.ops.fusedlogp.scale_(view.t() if transposed else view, factor)
                        self.assertTrue(torch.equal(got, expected))

    def logp_gradients(self, hidden, weight, target, g):
        x, w = double(hidden), double(weight)
        logp = torch.log_softmax(x @ w.t(), -1).gather(-1, target.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return torch.autograd.grad((torch.where(target == -100, 0.0, logp) * g.double()).sum(), (x, w))

    def test_logps_forward_leaves_a_workspace_that_one_backward_uses_up(self):
        hidden, weight, _, target = draw()
        g = torch.randn(13, device=DEVICE)
        expected, bounds = self.logp_gradients(hidden, weight, target, g), Bounds(hidden, weight, 4.0)
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
            logp = fusedlogp.linear_logp(hidden, weight, target)
        workspaces = [tensor for tensor in saved if tensor.dtype == torch.uint8]
        self.assertEqual(len(workspaces), 1)
        before = workspaces[0].clone()
        first = torch.autograd.grad(logp, (hidden, weight), g, retain_graph=True)
        used = workspaces[0].clone()
        self.assertFalse(torch.equal(used, before))
        for _ in range(2):  # the logits anew
            again = torch.autograd.grad(logp, (hidden, weight), g, retain_graph=True)
            self.close(again, expected, bounds)
        self.assertTrue(torch.equal(workspaces[0], used))
        self.close(first, expected, bounds)
        (alone,) = torch.autograd.grad(logp, hidden, g)
        self.assert_close(alone, expected[0], bounds.hidden)

    def test_logps_workspace_may_be_moved_and_made_anew(self):
        hidden, weight, _, target = draw()
        g = torch.randn(13, device=DEVICE)
        expected, bounds = self.logp_gradients(hidden, weight, target, g), Bounds(hidden, weight, 4.0)

        def moved(tensor):
            # To where no allocator begins, of the CPU's.
            if tensor.dtype != torch.uint8 or DEVICE != "cpu":
                return tensor.clone()
            return torch.cat([tensor.new_empty(37), tensor])[37:]

        for hooks in (torch.autograd.graph.saved_tensors_hooks(moved, lambda tensor: tensor), torch.autograd.graph.save_on_cpu()):
            with hooks:
                logp = fusedlogp.linear_logp(hidden, weight, target)
            self.close(torch.autograd.grad(logp, (hidden, weight), g), expected, bounds)
            self.assertFalse(logp.grad_fn.left)
        # Other strides and alignments choose another plan.
        widen = lambda tensor: torch.cat([tensor, tensor], -1)[..., : tensor.shape[-1]] if tensor.shape == (13, 40) else tensor
        with torch.autograd.graph.saved_tensors_hooks(widen, lambda tensor: tensor):
            logp = fusedlogp.linear_logp(hidden, weight, target)
        self.close(torch.autograd.grad(logp, (hidden, weight), g), expected, bounds)
        self.assertTrue(logp.grad_fn.left)
        for reentrant in (False, True):
            hidden.grad = weight.grad = None
            logp = checkpoint(lambda x, w: fusedlogp.linear_logp(x, w, target), hidden, weight, use_reentrant=reentrant)
            logp.backward(g)
            self.close((hidden.grad, weight.grad), expected, bounds)

    def test_logp_and_lse_of_all_rows_in_any_budget(self):
        hidden, weight, _, target = draw(ignored=False)
        g = torch.randn(2, 13, device=DEVICE)
        for names, budget in itertools.product((("logp", "lse"), ("lse", "logp")), (0, 1 << 30)):
            x, w = double(hidden), double(weight)
            z = x @ w.t()
            wanted = {"logp": torch.log_softmax(z, -1).gather(-1, target.unsqueeze(-1)).squeeze(-1), "lse": torch.logsumexp(z, -1)}
            for parts in ((0, 1), (0,), (1,)):  # both, or one that the plan was not told to be alone
                results = fusedlogp.linear_logp(hidden, weight, target, outputs=names, ignore_index=None, memory_budget=budget)
                actual = torch.autograd.grad([results[i] for i in parts], (hidden, weight), [g[i] for i in parts])
                expected = torch.autograd.grad([wanted[names[i]] for i in parts], (x, w), [g[i].double() for i in parts], retain_graph=True)
                self.close(actual, expected, Bounds(hidden, weight, 8.0))
                self.assertFalse(results[0].grad_fn.left)

    def test_used_twice_and_tied(self):
        hidden, weight, _, target = draw()
        x, w = hidden.detach().clone().requires_grad_(), weight.detach().clone().requires_grad_()
        tokens = torch.randint(0, 101, (13,), device=DEVICE)

        def model(function, x, w):
            states = x + torch.nn.functional.embedding(tokens, w)
            loss = function(states, w, target)
            return loss * 2 + function(states * 0.5, w, target) + loss

        actual = torch.autograd.grad(model(fusedlogp.linear_cross_entropy, hidden, weight), (hidden, weight))
        expected = torch.autograd.grad(model(plain, x, w), (x, w))
        self.close(actual, expected, Bounds(hidden * 3, weight, 4.0))

    def test_checkpointing(self):
        hidden, weight, _, target = draw()
        bounds = Bounds(hidden, weight, 2.0)
        expected = torch.autograd.grad(plain(hidden, weight, target), (hidden, weight))
        for reentrant in (False, True):
            loss = checkpoint(lambda x, w: fusedlogp.linear_cross_entropy(x, w, target), hidden, weight, use_reentrant=reentrant)
            if reentrant:
                hidden.grad = weight.grad = None
                loss.backward()
                self.close((hidden.grad, weight.grad), expected, bounds)
            else:
                self.close(torch.autograd.grad(loss, (hidden, weight)), expected, bounds)

    def test_only_the_gradients_that_are_wanted(self):
        for wanted in ((True, False, False), (False, True, False), (False, False, True), (True, False, True)):
            for function in (
                lambda *a, **k: fusedlogp.linear_cross_entropy(*a, **k),
                lambda *a, **k: fusedlogp.linear_cross_entropy(*a, reduction="none", **k).sum(),
                lambda *a, **k: fusedlogp.linear_logp(*a, **k).sum(),
            ):
                hidden, weight, bias, target = draw(bias=True)
                for leaf, want in zip((hidden, weight, bias), wanted):
                    leaf.requires_grad_(want)
                function(hidden, weight, target, linear_bias=bias).backward()
                self.assertEqual(tuple(leaf.grad is not None for leaf in (hidden, weight, bias)), wanted)

    def test_without_grad_nothing_is_kept(self):
        hidden, weight, _, target = draw()
        with torch.no_grad():
            self.assertFalse(fusedlogp.linear_cross_entropy(hidden, weight, target).requires_grad)
        with torch.inference_mode():
            fusedlogp.linear_logp(hidden, weight, target)

    def test_main_grad_is_added_to(self):
        for layout in ("vd", "dv"):
            hidden, weight, bias, target = draw(bias=True)
            given = weight.detach().t().contiguous().requires_grad_() if layout == "dv" else weight
            main_grad = torch.randn_like(given)
            before = main_grad.clone()
            kept = main_grad.data_ptr()
            loss = fusedlogp.linear_cross_entropy(hidden, given, target, linear_bias=bias, weight_layout=layout, accumulate_into=main_grad)
            self.assertTrue(torch.equal(main_grad, before))
            (loss * 0.5).backward()
            x, w, b = (value.detach().clone().requires_grad_() for value in (hidden, weight, bias))
            (plain(x, w, target, b) * 0.5).backward()
            bounds = Bounds(hidden, weight, 2.0)
            self.assertIsNone(given.grad)
            self.assertEqual(main_grad.data_ptr(), kept)
            added = main_grad - before
            self.close((hidden.grad, added.t() if layout == "dv" else added), (x.grad, w.grad), bounds)
            self.assert_close(bias.grad, b.grad, bounds.bias)

    def test_main_grad_with_megatrons_hooks(self):
        for layout, zeros in (("vd", False), ("dv", True), ("vd", None)):
            hidden, weight, _, target = draw()
            weight = torch.nn.Parameter(weight.detach().t().contiguous() if layout == "dv" else weight.detach())
            weight.main_grad, weight.grad_added_to_main_grad = torch.zeros_like(weight), False
            if zeros is not None:
                weight.zero_out_wgrad = zeros
            seen = []

            def hook(*_, weight=weight, seen=seen):
                # As that of Megatron's DistributedDataParallel with overlap_grad_reduce.
                assert weight.grad is not None, "param.grad being None is not safe when overlap_grad_reduce is True"
                seen.append(weight.grad.abs().sum().item() if getattr(weight, "zero_out_wgrad", False) else None)
                if not weight.grad_added_to_main_grad:
                    weight.main_grad.add_(weight.grad)
                weight.grad = None

            node = weight.expand_as(weight).grad_fn.next_functions[0][0]
            node.register_hook(hook)
            fusedlogp.linear_cross_entropy(hidden, weight, target, weight_layout=layout, accumulate_into=weight.main_grad).backward()
            x, w = (value.detach().clone().requires_grad_() for value in (hidden, weight.t() if layout == "dv" else weight))
            bounds = Bounds(x, w, 2.0)
            plain(x, w, target).backward()
            self.assertEqual([0.0 if zeros else None], seen)
            self.assertTrue(weight.grad_added_to_main_grad)
            self.close((hidden.grad, weight.main_grad.t() if layout == "dv" else weight.main_grad), (x.grad, w.grad), bounds)

    def test_main_grad_in_fp32_of_a_bf16_weight(self):
        hidden, weight, _, target = draw(dtype=torch.bfloat16)
        main_grad = torch.zeros(weight.shape, device=DEVICE)
        fusedlogp.linear_cross_entropy(hidden, weight, target, accumulate_into=main_grad).backward()
        once = main_grad.clone()
        fusedlogp.linear_cross_entropy(hidden, weight, target, accumulate_into=main_grad).backward()
        x, w = hidden.detach().double(), weight.detach().double().requires_grad_()
        plain(x, w, target).backward()
        self.assert_close(once, w.grad, Bounds(hidden, weight, 1.0).weight)
        self.assert_close(main_grad, 2 * once, 4 * 2.0**-24 * float(once.abs().max()))

    def test_func_grad(self):
        hidden, weight, _, target = draw()
        bounds = Bounds(hidden, weight, 2.0)
        x, w = hidden.detach(), weight.detach()
        expected = torch.autograd.grad(plain(hidden, weight, target), (hidden, weight))
        actual = torch.func.grad(lambda x, w: fusedlogp.linear_cross_entropy(x, w, target), argnums=(0, 1))(x, w)
        self.close(actual, expected, bounds)
        actual = torch.func.grad(lambda x, w: -fusedlogp.linear_logp(x, w, target).sum() / (target != -100).sum(), argnums=(0, 1))(x, w)
        self.close(actual, expected, bounds)

    def test_func_grad_of_a_learned_temperature(self):
        hidden, weight, _, target = draw()
        x, w, warm = hidden.detach(), weight.detach(), (torch.rand(13, device=DEVICE) + 0.5).requires_grad_()
        function = lambda t: fusedlogp.linear_logp(x, w, target, temperature=t).sum()
        (expected,) = torch.autograd.grad(function(warm), warm)
        self.assert_close(torch.func.grad(function)(warm.detach()), expected, 1e-5, 1e-5)
        both = torch.stack([warm.detach(), 2 * warm.detach()])
        self.assert_close(torch.func.vmap(torch.func.grad(function))(both)[0], expected, 1e-5, 1e-5)

    def test_func_grad_of_main_grad_is_refused(self):
        hidden, weight, _, target = draw()
        function = lambda x: fusedlogp.linear_cross_entropy(x, weight, target, accumulate_into=torch.zeros_like(weight))
        with self.assertRaisesRegex(NotImplementedError, "accumulate_into: torch.func"):
            torch.func.grad(function)(hidden.detach())

    def test_vmap(self):
        batches = [draw(rows=5) for _ in range(3)]
        weight = batches[0][1].detach()
        x = torch.stack([batch[0].detach() for batch in batches])
        t = torch.stack([batch[3] for batch in batches])
        actual = torch.func.vmap(lambda x, t: fusedlogp.linear_logp(x, weight, t))(x, t)
        self.assertTrue(torch.equal(actual, torch.stack([fusedlogp.linear_logp(a, weight, b) for a, b in zip(x, t)])))
        for reduction in ("mean", "none"):
            actual = torch.func.vmap(lambda x, t: fusedlogp.linear_cross_entropy(x, weight, t, reduction=reduction))(x, t)
            expected = torch.stack([fusedlogp.linear_cross_entropy(a, weight, b, reduction=reduction) for a, b in zip(x, t)])
            self.assertTrue(torch.equal(actual, expected))
        logits = x @ weight.t()
        actual = torch.func.vmap(lambda z, t: fusedlogp.logits_logp(z, t))(logits, t)
        self.assertTrue(torch.equal(actual, torch.stack([fusedlogp.logits_logp(a, b) for a, b in zip(logits, t)])))
        self.assertTrue(torch.equal(torch.func.vmap(lambda x: fusedlogp.weighted_sum(x, weight[0]))(x), fusedlogp.weighted_sum(x, weight[0])))

    def test_upstream_gradients_in_a_batch(self):
        hidden, weight, _, target = draw()
        bounds = Bounds(hidden, weight, 4.0)
        for name, value in (
            ("mean", fusedlogp.linear_cross_entropy(hidden, weight, target)),
            ("none", fusedlogp.linear_cross_entropy(hidden, weight, target, reduction="none")),
            ("logp", fusedlogp.linear_logp(hidden, weight, target)),
        ):
            with self.subTest(name):
                upstream = torch.randn(3, *value.shape, device=DEVICE)
                together = torch.autograd.grad(value, (hidden, weight), upstream, is_grads_batched=True, retain_graph=True)
                for i in range(3):
                    alone = torch.autograd.grad(value, (hidden, weight), upstream[i], retain_graph=True)
                    self.close([gradient[i] for gradient in together], alone, bounds)
                last = torch.autograd.grad(value, (hidden, weight), upstream, is_grads_batched=True)
                self.assertTrue(all(map(torch.equal, last, together)))

    def test_scale_alone_multiplies_gradients(self):
        class Seen(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                multiplied.extend([args[0].shape] if "aten.mul" in str(function) else [])
                scaled.extend([args[0].shape] if "fusedlogp.scale_" in str(function) else [])
                return function(*args, **(kwargs or {}))

        hidden, weight, _, target = draw()
        for factor in (1.0, 2.0):
            multiplied, scaled = [], []
            loss = fusedlogp.linear_cross_entropy(hidden, weight, target)
            hidden.grad = weight.grad = None
            with Seen():
                loss.backward(torch.tensor(factor, device=DEVICE))
            self.assertEqual([], multiplied)
            self.assertEqual([hidden.shape, weight.shape], scaled)
            if factor == 1:
                expected = hidden.grad, weight.grad
        self.assertTrue(torch.equal(hidden.grad, 2 * expected[0]) and torch.equal(weight.grad, 2 * expected[1]))

    def test_vmap_of_grad(self):
        x = torch.stack([draw(rows=5)[0].detach() for _ in range(3)])
        _, weight, _, target = draw(rows=5)
        gradient = torch.func.grad(lambda w, x: fusedlogp.linear_cross_entropy(x, w, target))
        actual = torch.func.vmap(gradient, in_dims=(None, 0))(weight.detach(), x)
        expected = torch.stack([gradient(weight.detach(), a) for a in x])
        self.assertTrue(torch.equal(actual, expected))

    def test_saved_tensor_hooks(self):
        hidden, weight, _, target = draw()
        expected = torch.autograd.grad(fusedlogp.linear_cross_entropy(hidden, weight, target), (hidden, weight))
        packed = []
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: packed.append(tensor.shape) or tensor.clone(), lambda tensor: tensor):
            loss = fusedlogp.linear_cross_entropy(hidden, weight, target)
        actual = torch.autograd.grad(loss, (hidden, weight))
        self.assertTrue(packed)
        for a, b in zip(actual, expected):
            self.assertTrue(torch.equal(a, b))
        self.assertFalse(any(shape == (13, 101) for shape in packed), "logits were saved")

    def test_a_second_differentiation_is_refused(self):
        hidden, weight, _, target = draw()
        for loss in (
            fusedlogp.linear_cross_entropy(hidden, weight, target),
            fusedlogp.linear_cross_entropy(hidden, weight, target, reduction="none").sum(),
            fusedlogp.linear_logp(hidden, weight, target).sum(),
        ):
            (gradient,) = torch.autograd.grad(loss, hidden, create_graph=True)
            with self.assertRaisesRegex(NotImplementedError, "a second time"):
                torch.autograd.grad(gradient.square().sum(), weight)

    def test_a_gradient_depends_on_what_came_from_above(self):
        hidden, weight, _, target = draw()
        for outputs in ("logp", "lse", ("logp", "lse"), ("logp", "entropy")):
            with self.subTest(outputs):
                above = torch.ones(13, device=DEVICE, requires_grad=True)
                results = fusedlogp.linear_logp(hidden, weight, target.clamp(min=0), outputs=outputs, ignore_index=None)
                last = results if isinstance(outputs, str) else results[-1]
                (gradient,) = torch.autograd.grad((last * above).sum(), hidden, create_graph=True)
                with self.assertRaisesRegex(NotImplementedError, "a second time"):
                    torch.autograd.grad(gradient.square().sum(), above)
        warm = torch.ones(13, device=DEVICE, requires_grad=True)
        (gradient,) = torch.autograd.grad(fusedlogp.linear_logp(hidden, weight, target, temperature=warm).sum(), hidden, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "a second time"):
            torch.autograd.grad(gradient.square().sum(), warm)

    def test_a_penalty_on_gradients_is_refused_rather_than_dropped(self):
        hidden, weight, _, target = draw()
        warm = torch.ones(13, device=DEVICE, requires_grad=True)
        for name, function, by in (
            ("accumulate_into", lambda: fusedlogp.linear_cross_entropy(hidden, weight, target, accumulate_into=torch.zeros_like(weight)), hidden),
            ("temperature", lambda: fusedlogp.linear_logp(hidden, weight, target, temperature=warm).sum(), warm),
            ("temperature and hidden", lambda: fusedlogp.linear_logp(hidden, weight, target, temperature=warm, outputs="lse").sum(), hidden),
            ("temperature alone", lambda: fusedlogp.linear_logp(hidden.detach(), weight.detach(), target, temperature=warm).sum(), warm),
        ):
            with self.subTest(name):
                loss = function()
                (gradient,) = torch.autograd.grad(loss, by, create_graph=True)
                with self.assertRaisesRegex(NotImplementedError, "a second time"):
                    (loss + 10 * gradient.square().sum()).backward()

    def test_autocast(self):
        hidden, weight, _, target = draw()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = fusedlogp.linear_cross_entropy(hidden, weight, target)
        expected = fusedlogp.linear_cross_entropy(hidden.bfloat16(), weight.bfloat16(), target)
        self.assertEqual(loss.dtype, torch.float32)
        self.assertTrue(torch.equal(loss, expected))
        loss.backward()
        self.assertEqual(weight.grad.dtype, torch.float32)

    def test_the_same_bits_again_in_deterministic_mode(self):
        hidden, weight, _, target = draw(rows=70)
        torch.use_deterministic_algorithms(True)
        try:
            results = [torch.autograd.grad(fusedlogp.linear_cross_entropy(hidden, weight, target), (hidden, weight)) for _ in range(2)]
        finally:
            torch.use_deterministic_algorithms(False)
        for a, b in zip(*results):
            self.assertTrue(torch.equal(a, b))

    def test_sliced_and_expanded_inputs(self):
        hidden, weight, _, target = draw(rows=8)
        wide = torch.randn(8, 3, 40, device=DEVICE)
        for view, other in (
            (wide[:, 1], wide[:, 1].contiguous()),
            (wide[:, 0, ::2], wide[:, 0, ::2].contiguous()),
            (wide[:1, 0].expand(8, 40), wide[:1, 0].repeat(8, 1)),
            (wide[0, :, :8].t(), wide[0, :, :8].t().contiguous()),
        ):
            part = weight[:, : view.shape[1]]
            for function in (fusedlogp.linear_cross_entropy, fusedlogp.linear_logp):
                self.assert_same(function(view, part, target), function(other, part.contiguous(), target), 4 * Bounds(other, part, 1.0).value)

    def test_finite_differences_in_fp64(self):
        hidden, weight, bias, target = draw(rows=5, columns=8, vocab=11, bias=True)
        leaves = (hidden, weight, bias)
        directions = [torch.randn_like(leaf) for leaf in leaves]
        loss = fusedlogp.linear_cross_entropy(hidden, weight, target, linear_bias=bias, softcap=2.0, z_loss=0.01, label_smoothing=0.1)
        grads = torch.autograd.grad(loss, leaves)
        slope = sum((grad.double() * direction.double()).sum() for grad, direction in zip(grads, directions))

        def at(step):
            x, w, b = (leaf.detach().double() + step * direction.double() for leaf, direction in zip(leaves, directions))
            z = 2.0 * torch.tanh((x @ w.t() + b) / 2.0)
            kept = target != -100
            rows = torch.nn.functional.cross_entropy(z, target, reduction="none", label_smoothing=0.1) + 0.01 * torch.logsumexp(z, -1) ** 2
            return rows[kept].sum() / kept.sum()

        step = 1e-5  # fp64: the cubic term is at step^2, rounding at 1e-16 / step
        self.assert_close(slope, (at(step) - at(-step)) / (2 * step), 1e-5 * max(1.0, abs(float(slope))))

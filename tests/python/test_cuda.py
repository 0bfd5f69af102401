"""What only a GPU has: memory that torch counts, streams, graphs, several devices."""

import unittest

import torch
from support import DEVICE, Bounds, Case, draw

import fusedlogp

MIB = 1 << 20


@unittest.skipUnless(DEVICE == "cuda", "FUSEDLOGP_TEST_DEVICE is not cuda")
class Cuda(Case):
    def peak(self, function):
        """Bytes that torch's allocator had more at once than before."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    def test_memory_is_gradients_and_budget(self):
        rows, columns, vocab, budget = 4096, 512, 32000, 64 * MIB
        hidden, weight, _, target = draw(rows, columns, vocab, dtype=torch.bfloat16)
        gradients = 2 * (rows * columns + vocab * columns)
        logits = 2 * rows * vocab
        step = lambda: fusedlogp.linear_cross_entropy(hidden, weight, target, memory_budget=budget).backward()  # noqa: E731
        step()
        hidden.grad = weight.grad = None
        peak = self.peak(step)
        # A few numbers a row beside these.
        self.assertLessEqual(peak, gradients + budget + 64 * rows + 2 * MIB)
        self.assertLess(peak, logits)

    def test_scoring_stores_a_few_words_a_row(self):
        rows, columns, vocab = 4096, 512, 32000
        hidden, weight, _, target = draw(rows, columns, vocab, dtype=torch.bfloat16)
        with torch.no_grad():
            fusedlogp.linear_logp(hidden, weight, target)
            peak = self.peak(lambda: fusedlogp.linear_logp(hidden, weight, target))
        self.assertLess(peak, 2 * rows * vocab // 16)

    def test_logps_memory_is_gradients_and_budget(self):
        rows, columns, vocab, budget = 4096, 512, 32000, 64 * MIB
        hidden, weight, _, target = draw(rows, columns, vocab, dtype=torch.bfloat16)
        gradients = 2 * (rows * columns + vocab * columns)
        forward = lambda: fusedlogp.linear_logp(hidden, weight, target, memory_budget=budget)  # noqa: E731
        forward().sum().backward()
        hidden.grad = weight.grad = None
        logp = None

        def step():
            nonlocal logp
            logp = forward()
            logp.sum().backward()

        self.assertLessEqual(self.peak(step), gradients + budget + 64 * rows + 2 * MIB)
        self.assertFalse(logp.grad_fn.left)
        with self.assertRaisesRegex(ValueError, "memory_budget"):
            fusedlogp.linear_logp(hidden, weight, target, memory_budget=1)

    def test_logps_forward_and_backward_in_graphs(self):
        hidden, weight, _, target = draw(dtype=torch.bfloat16)
        step = lambda: torch.autograd.grad(fusedlogp.linear_logp(hidden, weight, target).sum(), (hidden, weight))  # noqa: E731
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step()
        with torch.no_grad():
            hidden.mul_(2)
        for _ in range(2):
            graph.replay()
            for a, b in zip(captured, step()):
                self.assertTrue(torch.equal(a, b))

    def test_a_side_stream(self):
        hidden, weight, _, target = draw()
        expected = fusedlogp.linear_logp(hidden, weight, target)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            actual = fusedlogp.linear_logp(hidden, weight, target)
        torch.cuda.current_stream().wait_stream(stream)
        self.assertTrue(torch.equal(actual, expected))

    def test_a_graph_replays_with_other_data(self):
        hidden, weight, _, target = draw(dtype=torch.bfloat16)

        def step():
            loss = fusedlogp.linear_cross_entropy(hidden, weight, target)
            return (loss, *torch.autograd.grad(loss, (hidden, weight)))

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step()
        other = draw(dtype=torch.bfloat16)[0].detach() * 2
        with torch.no_grad():
            hidden.copy_(other)
        graph.replay()
        for a, b in zip(captured, step()):
            self.assertTrue(torch.equal(a, b))

    def test_a_backward_in_autograds_thread_and_a_new_thread(self):
        import threading

        hidden, weight, _, target = draw()
        results = []
        thread = threading.Thread(target=lambda: results.append(fusedlogp.linear_logp(hidden.detach(), weight.detach(), target)))
        thread.start()
        thread.join()
        with torch.no_grad(): # one with gradients to come may take tiles of its own
            self.assertTrue(torch.equal(results[0], fusedlogp.linear_logp(hidden, weight, target)))

    def test_several_devices(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("one GPU")
        hidden, weight, _, target = draw()
        expected = fusedlogp.linear_cross_entropy(hidden, weight, target)
        there = [value.detach().to("cuda:1").requires_grad_(value.is_floating_point()) for value in (hidden, weight, target)]
        actual = fusedlogp.linear_cross_entropy(*there)  # the current device is the first
        self.assertEqual(actual.device, torch.device("cuda:1"))
        actual.backward()
        self.assertTrue(torch.equal(actual.cpu(), expected.cpu()))
        with self.assertRaisesRegex(ValueError, "linear_weight's device"):
            fusedlogp.linear_cross_entropy(there[0], weight, there[2])

    def test_main_grad_in_fp32(self):
        hidden, weight, _, target = draw(rows=200, columns=64, vocab=1000, dtype=torch.bfloat16)
        main_grad = torch.zeros(weight.shape, device=DEVICE)
        fusedlogp.linear_cross_entropy(hidden, weight, target, accumulate_into=main_grad).backward()
        x, w = hidden.detach().double(), weight.detach().double().requires_grad_()
        torch.nn.functional.cross_entropy(x @ w.t(), target).backward()
        self.assert_close(main_grad, w.grad, Bounds(hidden, weight, 4 / 200).weight)

"""The examples and the comparison with others run as programs: what each compares, it compares itself."""

import importlib.util
import json
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree

import programs
from support import DEVICE, EVERYTHING, ROOT

EXAMPLES = os.path.join(ROOT, "examples", "python")
DEVICE_OPTION = ("--device", DEVICE)


# Programs take long to start, and go through the same functions whichever way the operators are registered.
@unittest.skipUnless(EVERYTHING or os.environ.get("FUSEDLOGP_BINDING") != "ctypes", "run with the operators from C")
@unittest.skipUnless(os.path.isdir(EXAMPLES), "the examples are not beside the tests")
class Examples(unittest.TestCase):
    def output_of(self, done):
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def run_program(self, *command):
        return self.output_of(programs.run(*command))

    def run_example(self, name, *options):
        return self.run_program(os.path.join(EXAMPLES, name), *options)

    def run_ranks(self, processes, name):
        return self.output_of(programs.run_ranks(processes, os.path.join(EXAMPLES, name)))

    def score(self, processes):
        return self.run_ranks(processes, "score_corpus.py")

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_a_model_of_transformers_trains_the_same(self):
        self.assertRegex(self.run_example("train_causal_lm.py", *DEVICE_OPTION), r"loss of step 1 and 50: eager \d")

    def test_a_grpo_step_is_eager_torchs(self):
        self.run_example("grpo_step.py", *DEVICE_OPTION)

    def test_verls_function_is_eager_torchs(self):
        self.run_example("verl_linear_cross_entropy.py", *DEVICE_OPTION)

    def test_micro_batches_add_to_main_grad(self):
        self.run_example("main_grad.py", *DEVICE_OPTION)

    def test_a_corpus_scores_alike_by_one_process_and_by_two(self):
        one, two = (self.score(processes).splitlines()[-1] for processes in (1, 2))  # Gloo of torch 2.10 says before it who is connected
        self.assertRegex(one, r"documents 20, tokens \d+")
        self.assertEqual(one, two)

    @unittest.skipUnless(DEVICE == "cpu", "ranks of the CPU")
    def test_shards_take_the_place_of_megatrons_loss_and_torchtitans(self):
        self.assertRegex(self.run_ranks(2, "vocab_parallel.py"), r"ranks 2, loss \d\.\d+, beside Megatron's and torchtitan's off by at most")

    @unittest.skipUnless(EVERYTHING and os.environ.get("FUSEDLOGP_BINDING") != "ctypes", "starts Ray: run where everything is, with the operators from C")
    @unittest.skipUnless(importlib.util.find_spec("ray"), "ray is not installed")
    def test_a_corpus_scores_alike_by_rays_workers_some_of_whom_are_lost(self):
        done = programs.run(os.path.join(EXAMPLES, "score_ray.py"), "--lose", "3,11", timeout=480)
        self.assertIn(self.score(1).strip(), self.output_of(done))
        self.assertRegex(done.stderr, "(?m)^2 workers were lost$")

    def test_a_models_step_by_its_own_head_and_by_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "steps.json")
            small = ("--layers", "1", "--width", "64", "--vocab", "500", "--batch", "2", "--length", "24", "--rounds", "1", "--ways", "eager,fusedlogp")
            for frozen in ((), ("--frozen",)):
                self.run_program(os.path.join(ROOT, "bench", "model_step.py"), *small, *frozen, *DEVICE_OPTION, "--json", path)
                with open(path) as file:
                    eager, fused = json.load(file)["results"]
                self.assertEqual(("eager", "fusedlogp"), (eager["way"], fused["way"]))
                # eager's logits of up to 16 are rounded to bf16, each derivative and each gradient on its way too.
                self.assertLess(abs(fused["loss"] - eager["loss"]), 16 * 2.0**-9)
                self.assertTrue(0 < fused["gradient"] < 2.0**-5, fused)

    def test_overheads_are_measured_eager_compiled_and_as_graphs(self):
        modes = () if EVERYTHING else ("--modes", "eager" if DEVICE == "cpu" else "eager,graph")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "overheads.json")
            program = os.path.join(ROOT, "bench", "overheads.py")
            self.run_program(program, "--rounds", "1", "--calls", "2", *modes, *DEVICE_OPTION, "--json", path)
            with open(path) as file:
                rows = json.load(file)["rows"]
        for row in rows:
            self.assertEqual({"no grad", "forward", "and backward"}, set(row.get("microseconds", row)), row)
            self.assertGreater(min(row["microseconds"].values()), 0)

    def test_timelines_are_recorded_shown_and_drawn(self):
        program = os.path.join(ROOT, "bench", "timeline.py")
        with tempfile.TemporaryDirectory() as folder:
            path, drawing = os.path.join(folder, "timeline.json"), os.path.join(folder, "timeline.svg")
            if DEVICE == "cpu":
                kernels = [{"name": name, "begin": begin, "end": end} for name, begin, end in (("flp_a_b", 0, 5.5), ("void c<1>", 4, 9), ("flp_d", 9, 70))]
                with open(path, "w") as file:
                    json.dump({"steps": [{"step": "loss:8:64:500", "kernels": kernels}]}, file)
            else:
                self.run_program(program, "loss:8:64:500", "--json", path)
            text = self.run_program(program, "--read", path, "--svg", drawing)
            with open(path) as file:
                kernels = json.load(file)["steps"][0]["kernels"]
            with open(drawing) as file:
                bars = xml.etree.ElementTree.fromstring(file.read()).findall(".//{*}rect/{*}title")
            part = self.run_program(program, "--read", path, "loss:8:64:500", "--window", "0,%g" % kernels[0]["end"])
            wrong = programs.run(program, "--read", path, "pair:8:64:500")
            unread = programs.run(program, "--read", drawing)
        self.assertGreater(len(kernels), 2)
        self.assertEqual(sorted(kernel["begin"] for kernel in kernels), [kernel["begin"] for kernel in kernels])
        self.assertTrue(text.startswith("loss:8:64:500: ") and len(text.splitlines()) == 1 + len(kernels) == 1 + len(bars), text)
        self.assertIn(len(part.splitlines()), range(2, 1 + len(kernels)))
        self.assertEqual((1, True), (unread.returncode, "wanted a file that --json has written" in unread.stderr), unread.stderr)
        self.assertEqual((1, True), (wrong.returncode, "has no pair:8:64:500, but loss:8:64:500" in wrong.stderr), wrong.stderr)

    def test_peers_are_measured_or_said_to_be_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "peers.json")
            program = os.path.join(ROOT, "bench", "peers.py")
            small = ("--case", "24,32,300", "--rounds", "2", *DEVICE_OPTION)
            text = self.run_program(program, *small, "--peers", "fusedlogp,eager,torch,quack", "--json", path)
            frozen = self.run_program(program, *small, "--peers", "fusedlogp", "--frozen")
            with open(path) as file:
                results = {result["peer"]: result for result in json.load(file)["cases"][0]["results"]}
        self.assertEqual({"fusedlogp", "eager", "torch", "quack"}, set(results))
        self.assertTrue(re.search(r"(?m)^  fusedlogp +[\d.]+", text) and re.search(r"(?m)^  fusedlogp .* -$", frozen), text + frozen)
        for name in ("fusedlogp", "eager"):
            errors = results[name]["errors"]
            self.assertLess(errors["loss"], 2.0**-8)  # eager's logits are bf16
            # Two roundings to bf16 at most on the way of a derivative to a gradient, of half a unit in the last place each.
            self.assertLess(max(errors["grad_hidden"], errors["grad_weight"]), 3 * 2.0**-8)
        for name in ("torch", "quack"):
            self.assertTrue("seconds" in results[name] or results[name]["missing"].strip(), results[name])


if __name__ == "__main__":
    unittest.main()

"""What is not acceptable names the argument, what it got and what it wanted."""

import fractions
import os
import tempfile
import unittest
from unittest import mock

import torch
from support import DEVICE, Case, draw

import fusedlogp

try:
    import numpy
except ImportError:  # torch does without
    numpy = None


class Errors(Case):
    def refused(self, kind, *words, call=fusedlogp.linear_cross_entropy, **arguments):
        hidden, weight, _, target = draw()
        given = {"input": hidden, "linear_weight": weight, "target": target} | arguments
        with self.assertRaises(kind) as caught:
            call(**given)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_inputs(self):
        hidden, weight, _, target = draw()
        self.refused(TypeError, "input", "list", "torch.Tensor", input=[1.0])
        self.refused(TypeError, "input's dtype", "torch.float64", "torch.bfloat16", input=hidden.double())
        self.refused(TypeError, "linear_weight's dtype", "torch.bfloat16", "torch.float32", linear_weight=weight.bfloat16())
        self.refused(ValueError, "linear_weight's shape", "(101, 39)", "D = 40", linear_weight=weight[:, :39])
        self.refused(ValueError, "linear_weight's shape", "(40,)", linear_weight=weight[0])
        self.refused(NotImplementedError, "linear_weight", "3 dimensions", linear_weight=weight.unsqueeze(1))
        self.refused(ValueError, "target's shape", "(12,)", "(13,)", target=target[:12])
        self.refused(TypeError, "target's dtype", "torch.int16", "torch.int64", target=target.short())
        self.refused(NotImplementedError, "target", "class probabilities", "argmax(-1)", "label_smoothing", target=torch.rand(13, 101, device=DEVICE))
        self.refused(ValueError, "linear_bias's shape", "(40,)", "(101,)", linear_bias=weight[0])

    def test_options(self):
        hidden, weight, _, target = draw()
        self.refused(ValueError, "reduction", "'average'", "'mean'", reduction="average")
        self.refused(ValueError, "label_smoothing", "2", "0 to 1", label_smoothing=2.0)
        self.refused(ValueError, "softcap", "-1", "a number from 2^-60 on, or None", softcap=-1.0)
        self.refused(ValueError, "temperature", "0", "a number from 2^-60 to 2^60", temperature=0.0)
        self.refused(ValueError, "logit_scale", "0", "a number from 2^-60 to 2^60", logit_scale=0.0)
        self.refused(ValueError, "z_loss", "1e+31", "a number from -1e30 to 1e30", z_loss=1e31)
        self.refused(ValueError, "temperature / logit_scale", "a number from 2^-64 to 2^64", temperature=2.0**5, logit_scale=2.0**-60)
        self.refused(ValueError, "softcap / logit_scale", "a number from 2^-126 to 2^126", softcap=2.0**100, logit_scale=2.0**-60)
        self.refused(TypeError, "memory_budget", "got torch.Tensor", "an int", memory_budget=torch.tensor(1))
        learned = torch.ones(13, device=DEVICE, requires_grad=True)
        self.refused(NotImplementedError, "temperature", "of a loss", "linear_logp", temperature=learned)
        self.refused(NotImplementedError, "temperature", "of a loss", call=fusedlogp.policy_loss, inputs={}, temperature=learned)
        self.refused(NotImplementedError, "temperature", "of the entropy", call=fusedlogp.linear_logp, outputs=("logp", "entropy"), temperature=learned)
        self.refused(TypeError, "temperature", "str", temperature="1")
        self.refused(ValueError, "temperature's shape", "(3,)", "(13,)", temperature=torch.ones(3, device=DEVICE))
        self.refused(TypeError, "ignore_index", "float", ignore_index=1.5)
        self.refused(ValueError, "weight_layout", "'v'", weight_layout="v")
        self.refused(TypeError, "memory_budget", "float", memory_budget=1.0)
        for call in (fusedlogp.linear_cross_entropy, fusedlogp.linear_logp):
            self.refused(ValueError, "memory_budget", "-1", call=call, memory_budget=-1)
        self.refused(ValueError, "weight's shape", "(3,)", "(101,)", weight=torch.ones(3, device=DEVICE))
        self.refused(NotImplementedError, "token_weight", "gradient", token_weight=torch.ones(13, device=DEVICE, requires_grad=True))
        self.refused(ValueError, "accumulate_into's shape", "(40, 101)", "(101, 40)", accumulate_into=torch.zeros(40, 101, device=DEVICE))
        self.refused(ValueError, "outputs", "'p'", call=fusedlogp.linear_logp, outputs="p")

    @unittest.skipIf(numpy is None, "no numpy")
    def test_numbers_of_other_kinds_are_taken_or_called_by_their_full_names(self):
        self.refused(TypeError, "exact", "got numpy.bool", "a bool", exact=numpy.bool_(True))
        self.refused(TypeError, "memory_budget", "got numpy.float64", "an int", memory_budget=numpy.float64(1))
        hidden, weight, _, target = draw(ignored=False)
        plain = {"temperature": 0.5, "softcap": 3.0, "z_loss": 0.25, "logit_scale": 2.0, "ignore_index": 7, "memory_budget": 1 << 30, "label_smoothing": 0.125}
        target[3] = 7
        kinds = {float: (numpy.float16, numpy.float32, numpy.float64, fractions.Fraction), int: (numpy.int32, numpy.int64)}
        expected = fusedlogp.linear_cross_entropy(hidden, weight, target, **plain)
        for kind in range(4):
            given = {name: kinds[type(value)][kind % len(kinds[type(value)])](value) for name, value in plain.items()}
            self.assertTrue(torch.equal(fusedlogp.linear_cross_entropy(hidden, weight, target, **given), expected))

    def test_a_target_outside_the_vocabulary(self):
        hidden, weight, _, target = draw()
        target[2] = 101
        if DEVICE == "cpu":
            for call in (fusedlogp.linear_cross_entropy, fusedlogp.linear_logp):
                for how in (call, torch.compile(call, backend="aot_eager", fullgraph=True)):
                    self.refused(IndexError, "row 2", "101", call=how, target=target)
        else:
            self.assertTrue(torch.isnan(fusedlogp.linear_cross_entropy(hidden, weight, target)))

    def test_policy_loss(self):
        advantages = torch.ones(13, device=DEVICE)
        call = fusedlogp.policy_loss
        self.refused(TypeError, "inputs", "Tensor", call=call, inputs=advantages)
        self.refused(ValueError, "inputs", "advantages", "old_logp", call=call, inputs={"advantages": advantages})
        self.refused(ValueError, "loss", "'best'", call=call, inputs={}, loss="best")
        inputs = {"advantages": advantages, "old_logp": advantages}
        self.refused(ValueError, "parameters", "'clip'", "clip_low", call=call, inputs=inputs, parameters={"clip": 1.0})

    def test_a_library_that_does_not_load(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file, mock.patch.dict(os.environ, FUSEDLOGP_TORCH_LIBRARY=file.name):
            with self.assertRaisesRegex(ImportError, f"{file.name} does not load .*pip install ./python"):
                fusedlogp._library._load()

    def test_operators_look_at_what_they_get(self):
        ops = torch.ops.fusedlogp
        x = torch.ones(3, 4, device=DEVICE)
        linear = (x, x, None, torch.zeros(3, dtype=torch.int64, device=DEVICE), None, 1.0, 0.0, -100, False)
        for call, words in (
            (lambda: ops.weighted_sum(x, x), "w has 2 dimensions, wanted 1"),
            (lambda: ops.weighted_sum(x, x[0, :3]), "w has 3 elements, wanted 4"),
            (lambda: ops.weighted_sum(x.t(), x[:, 0].contiguous()), "x has stride 4 along its rows, wanted 1"),
            (lambda: ops.weighted_sum(x.double(), x[0]), "x has a dtype that is not taken"),
            (lambda: ops.scale_(x[:, ::2], x[0, 0]), "x has strides .4, 2., wanted 1 for one of them"),
            (lambda: ops.scale_(x.clone(), x[0]), "factor has 1 dimensions, wanted 0"),
            (lambda: ops.scale_(x.clone(), x[0, 0].double()), "factor has a dtype that is not taken, wanted float32"),
            (lambda: ops.linear_logp_saving(*linear, False, False, False, False, 0), "no gradient that is wanted"),
            (lambda: ops.linear_logp_backward_saved(*linear, *x.T[:3].contiguous(), None, True, True, False, 0, x[0].byte()), "workspace is not what"),
        ):
            with self.assertRaisesRegex(RuntimeError, words):
                call()

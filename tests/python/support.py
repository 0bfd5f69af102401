"""What the Python tests share: the device, the reference in fp64 and the bounds that follow from the number formats."""

import importlib.util
import os
import unittest

import torch

DEVICE = os.environ.get("FUSEDLOGP_TEST_DEVICE", "cpu")
EVERYTHING = os.environ.get("FUSEDLOGP_PYTHON_EVERYTHING", "0") == "1"  # .ci/run; make check takes a part
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
FP32_UNIT = 2.0**-24
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def loaded(program):
    """A program that is not of a package, as a module, by its path."""
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(program))[0], program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def some(cases, every):
    """All of the cases, or in `make check` each of so many; on a GPU, where most cases compile kernels of their own, half of these."""
    cases = list(cases)
    return cases if EVERYTHING else cases[:: every if DEVICE == "cpu" else 2 * every + 1]


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(self.seed())

    def seed(self):
        return sum(map(ord, self.id()))

    def assert_same(self, actual, expected, atol):
        """The same bits on the CPU; on a GPU another alignment or number of rows may take another kernel."""
        if DEVICE == "cpu":
            self.assertTrue(torch.equal(actual, expected))
        else:
            self.assert_close(actual, expected, atol)

    def assert_close(self, actual, expected, atol, rtol=0.0):
        torch.testing.assert_close(actual.detach().double().cpu(), expected.detach().double().cpu(), atol=float(atol), rtol=float(rtol))


def draw(rows=13, columns=40, vocab=101, dtype=torch.float32, bias=False, ignored=True):
    """Leaves (hidden, weight, bias) and targets, some of which are ignored."""
    hidden = torch.randn(rows, columns, device=DEVICE).to(dtype).requires_grad_()
    weight = (torch.randn(vocab, columns, device=DEVICE) / columns**0.5 * 2).to(dtype).requires_grad_()
    offset = torch.randn(vocab, device=DEVICE).to(dtype).requires_grad_() if bias else None
    target = torch.randint(0, vocab, (rows,), device=DEVICE)
    if ignored:
        target[::4] = -100
    return hidden, weight, offset, target


def double(value):
    return None if value is None else value.detach().double().requires_grad_(value.requires_grad)


def logits_of(hidden, weight, bias=None, softcap=None, logit_scale=1.0, temperature=1.0):
    z = hidden @ weight.t()
    if bias is not None:
        z = z + bias
    z = z * logit_scale
    if softcap is not None:
        z = softcap * torch.tanh(z / softcap)
    return z / (temperature.unsqueeze(-1) if isinstance(temperature, torch.Tensor) else temperature)


class Bounds:
    """What may be off. Sums of D and V terms in fp32 are off by at most (D + V) 2^-24 of their absolute terms (gamma_n of the error analysis of
    sums); derivatives by a logit are rounded to the inputs' dtype, results to their own, by half a unit in the last place each."""

    def __init__(self, hidden, weight, scale, temperature=1.0):
        h, w = hidden.detach().double().abs(), weight.detach().double().abs()
        rows, columns = h.shape
        vocab = w.shape[0]
        terms = (columns + vocab + rows) * FP32_UNIT
        logit = float((h @ w.t()).max()) + 1.0
        smallest = float(temperature.min()) if isinstance(temperature, torch.Tensor) else temperature
        unit = 0.0 if hidden.dtype == torch.float32 else torch.finfo(hidden.dtype).eps / 2
        # exp of a logit that is off by so much is off by it relatively; a derivative is at most scale / temperature.
        off = (4 * terms * logit / smallest + terms + unit) * scale / smallest
        self.value = 4 * terms * logit / smallest
        self.hidden = off * 2 * float(w.max())  # |dlogit| sums to at most 2 a row
        self.weight = off * 2 * float(h.sum(0).max())
        self.bias = off * 2 * rows
        self.relative = torch.finfo(hidden.dtype).eps

"""Token losses as values: what is wrong with one is said where it is made, and it is the same in another process."""

import copy
import os
import pickle
import tempfile

import programs
import torch
from support import DEVICE, Case, draw

import fusedlogp
from fusedlogp.token_loss import ready_made

OWN = ("-advantages * logp - scale * entropy", ("advantages",), {"scale": 0.01})
# (name, the arrays of its own beside advantages)
READY_MADE = (("reinforce", ()), ("ppo", ("old_logp",)), ("dapo", ("old_logp",)), ("grpo", ("old_logp",)), ("grpo", ("old_logp", "reference_logp")),
              ("dual_clip", ("old_logp",)), ("cispo", ("old_logp",)), ("gspo_token", ("sequence_log_ratio",)))  # fmt: skip
STATISTICS = "logp, lse, entropy, uniform, class_weight"
FUNCTIONS = ("exp", "log", "min", "max", "abs", "clamp", "where", "less", "detach")
# (what is wrong, with what inputs and parameters, words of the error)
WRONG = (
    ("logp + foo", {}, "expression:1: foo is not known", f"wanted {STATISTICS}, exp, log"),
    ("logp + foo", {"inputs": ("a",), "parameters": {"b": 1.0}}, "foo is not known", f"wanted {STATISTICS}, a, b, exp, log"),
    ("local r = exp(logp)\nreturn r * foo", {}, "expression:2: foo is not known"),
    ("nothing_of_ours(logp)", {}, "nothing_of_ours is not known"),
    ("t.logp", {}, "t is not known"),
    ("logp +", {}, "expression:1: unexpected symbol near <eof>"),
    ("logp) end", {}, "expression:1: <eof> expected near ')'"),
    ('logp "\\', {}, "expression:1: unfinished string"),
    ("logp \0", {}, "expression:1: <eof> expected"),
    ("local r = logp", {}, "expression: gives a nil", "return"),
    ("logp < 0", {}, "expression: a < b", "less(a, b)"),
    ("logp + exp", {}, "expression: got the function exp"),
    ("logp ^ 0.5", {}, "expression: x ^ n", "1 .. 8"),
    ("+".join(f"exp(lse * {i})" for i in range(2, 99)), {}, "expression: ", "operations, wanted at most 256"),
    ("while true do end", {}, "expression: ", "instructions"),
    ("logp", {"inputs": ("end",)}, "inputs: got end", "a keyword of Lua"),
    ("logp", {"parameters": {"not": 1.0}}, "parameters: got not", "a keyword of Lua"),
    ("logp", {"inputs": ("Advantages",)}, "inputs: got Advantages", "letters a to z"),
    ("logp", {"inputs": ("a", "a")}, "inputs: got a", "an input already"),
    ("logp", {"inputs": ("a",), "parameters": {"a": 1.0}}, "parameters: got a", "an input already"),
    ("logp", {"inputs": ("lse",)}, "inputs: got lse", "a statistic already"),
    *(("logp", {"inputs": (name,)}, f"inputs: got {name}", "a function already") for name in FUNCTIONS),
)
IN_ANOTHER_PROCESS = """
import pickle, sys
import torch
import fusedlogp

with open(sys.argv[1], "rb") as file:
    losses, (hidden, weight, target), inputs = pickle.load(file)
values = [fusedlogp.policy_loss(hidden, weight, target, {name: inputs[name] for name in loss.inputs}, loss=loss) for loss in losses]
with open(sys.argv[2], "wb") as file:
    pickle.dump(([repr(loss) for loss in losses], values), file)
"""
TOO_MANY = """
import fusedlogp

made = []
try:
    for i in range(300):
        made.append(fusedlogp.TokenLoss(f"logp + {i}.25"))
except RuntimeError as error:
    assert "has 256 different ones already" in str(error) and "is a parameter" in str(error), error
assert 200 < len(made) < 256, len(made)
fusedlogp.TokenLoss(made[0].expression)
try:
    fusedlogp.TokenLoss("logp +")
except RuntimeError:
    print("done")
"""
COMPILED_FIRST = """
import torch
import fusedlogp

assert "torch._dynamo" not in __import__("sys").modules
hidden, weight, target = torch.randn(5, 8, device="@DEVICE@"), torch.randn(17, 8, device="@DEVICE@"), torch.arange(5, device="@DEVICE@")
for name, others in @READY_MADE@:
    inputs = {each: torch.ones(5, device="@DEVICE@") for each in ("advantages", *others)}

    def loss(hidden):
        return fusedlogp.policy_loss(hidden, weight, target, inputs, loss=name)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(hidden)
    torch.testing.assert_close(compiled, loss(hidden), rtol=1e-5, atol=1e-5)
    torch._dynamo.reset()
print("done")
"""


def values_of(losses, problem, inputs):
    return [fusedlogp.policy_loss(*problem, {name: inputs[name] for name in loss.inputs}, loss=loss) for loss in losses]


class TokenLosses(Case):
    def run_program(self, text, *options, folder):
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(text)
        done = programs.run(program, *options)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def losses(self):
        return [fusedlogp.TokenLoss(*OWN), *(ready_made(name, dict.fromkeys(others)) for name, others in READY_MADE)]

    def test_a_token_without_an_advantage_loses_nothing(self):
        hidden, weight, _, target = draw()
        target = target.clamp(min=0)
        zero, least = torch.zeros(13, device=DEVICE), torch.full((13,), -torch.inf, device=DEVICE)
        nan = torch.full((13,), torch.nan, device=DEVICE)
        for name in ("ppo", "dapo", "grpo", "grpo_kl", "dual_clip", "gspo_token"):
            with self.subTest(name):
                ratio = {"sequence_log_ratio": -least} if name == "gspo_token" else {"old_logp": least}
                if name == "grpo_kl":
                    name, ratio["reference_logp"] = "grpo", fusedlogp.linear_logp(hidden, weight, target).detach()
                losses = fusedlogp.policy_loss(hidden, weight, target, {"advantages": zero, **ratio}, loss=name, reduction="none")
                rounding = 0.0 if "reference_logp" not in ratio else 2.0**-23 * 13  # of logp, whose divergence from itself is nearly 0
                self.assertLessEqual(float(losses.abs().max()), rounding)
                gradient = torch.autograd.grad(losses.sum(), hidden)[0]
                self.assertLessEqual(float(gradient.abs().max()), rounding)
                lost = fusedlogp.policy_loss(hidden, weight, target, {"advantages": nan, **ratio}, loss=name)
                self.assertTrue(torch.isnan(lost))
                self.assertTrue(torch.isnan(torch.autograd.grad(lost, weight)[0]).any())

    def test_what_is_wrong_is_said_where_it_is_made(self):
        for expression, given, *words in WRONG:
            with self.subTest(expression=expression[:40], given=given):
                with self.assertRaises(ValueError) as caught:
                    fusedlogp.TokenLoss(expression, **given)
                for word in words:
                    self.assertIn(word, str(caught.exception))
                self.assertNotIn("own_", str(caught.exception))

    def test_comments_and_any_other_names_are_taken(self):
        hidden, weight, _, target = draw()
        t = torch.rand(13, device=DEVICE)
        expected = fusedlogp.policy_loss(hidden, weight, target, {"advantages": t}, loss="reinforce")
        texts = ("-t * logp", "-t * logp -- what to return", "-- return\n-t * logp", "local r = -t * logp -- so far\nreturn r -- all", "return -t * logp;")
        for expression in texts:
            with self.subTest(expression):
                self.assertTrue(torch.equal(fusedlogp.policy_loss(hidden, weight, target, {"t": t}, loss=fusedlogp.TokenLoss(expression, ("t",))), expected))

    def test_ready_made_ones_are_compiled_without_breaks_at_their_first_use(self):
        text = COMPILED_FIRST.replace("@READY_MADE@", repr(READY_MADE)).replace("@DEVICE@", DEVICE)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual("done\n", self.run_program(text, folder=folder))

    def test_copies(self):
        for loss in self.losses():
            for other in (copy.copy(loss), copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
                for name in ("id", "name", "expression", "inputs", "parameters"):
                    self.assertEqual(getattr(loss, name), getattr(other, name))
        self.assertIs(ready_made("ppo", {}), copy.deepcopy(ready_made("ppo", {})))

    def test_pickled_into_another_process(self):
        hidden, weight, _, target = draw()
        problem = (hidden.detach().cpu(), weight.detach().cpu(), target.cpu())
        inputs = {name: torch.randn(13) for name in ("advantages", "old_logp", "reference_logp", "sequence_log_ratio")}
        # Nothing made it in a copy of this process: no test has this number.
        losses = [fusedlogp.TokenLoss("-advantages * logp * scale - 0.1 * lse", ("advantages",), {"scale": 0.125}), *self.losses()]
        with tempfile.TemporaryDirectory() as folder:
            given, found = os.path.join(folder, "given"), os.path.join(folder, "found")
            with open(given, "wb") as file:
                pickle.dump((losses, problem, inputs), file)
            self.run_program(IN_ANOTHER_PROCESS, given, found, folder=folder)
            with open(found, "rb") as file:
                names, values = pickle.load(file)
        self.assertEqual([repr(loss) for loss in losses], names)
        for actual, expected in zip(values, values_of(losses, problem, inputs), strict=True):
            self.assertTrue(torch.equal(actual, expected))

    def test_repr(self):
        own = "TokenLoss('-advantages * logp - scale * entropy', inputs=('advantages',), parameters={'scale': 0.01})"
        self.assertEqual(own, repr(fusedlogp.TokenLoss(*OWN)))
        self.assertEqual("<fusedlogp.TokenLoss 'dapo'>", repr(ready_made("dapo", {})))

    def test_losses_that_differ_in_defaults_alone_are_one(self):
        hidden, weight, _, target = draw()
        inputs = {"advantages": torch.randn(13, device=DEVICE)}
        one, other = (fusedlogp.TokenLoss("-advantages * logp - scale * entropy", ("advantages",), {"scale": scale}) for scale in (0.25, 0.5))
        self.assertEqual(one.id, other.id)
        self.assertEqual(({"scale": 0.25}, {"scale": 0.5}), (one.parameters, other.parameters))
        value = lambda loss, **options: fusedlogp.policy_loss(hidden, weight, target, inputs, loss=loss, **options)
        self.assertFalse(torch.equal(value(one), value(other)))
        self.assertTrue(torch.equal(value(one), value(other, parameters={"scale": 0.25})))
        for i in range(1000):  # as a schedule makes them
            fusedlogp.TokenLoss("-advantages * logp - scale * entropy", ("advantages",), {"scale": 1e-3 * i})

    def test_too_many_losses(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual("done\n", self.run_program(TOO_MANY, folder=folder))

    def test_a_number_of_losses_does_not_grow_with_refused_ones(self):
        for i in range(300):
            with self.assertRaises(ValueError):
                fusedlogp.TokenLoss(f"logp + unknown_{i}")
        fusedlogp.TokenLoss("logp + 1.25")

"""The model of communication in bench/scaling.py, against values computed by hand."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import programs
import torch.distributed as distributed
from support import ROOT, loaded

BENCH = os.path.join(ROOT, "bench")
PROGRAM = os.path.join(BENCH, "scaling.py")
ONE_NODE, TWO_NODES = {"name": "4 GPUs", "nodes": 1, "gpus_per_node": 4}, {"name": "2 x 4 GPUs", "nodes": 2, "gpus_per_node": 4}
CASE = [1000, 2000, 64000]
# Round numbers, of which the sums below are made.
NUMBERS = {
    "partial_bytes": 32, "grad_hidden_bytes": 4, "nvlink_gb_s": 100, "infiniband_gb_s": 10, "nvlink_latency_us": 10, "infiniband_latency_us": 30,
    "merge_us": 4, "memory_gb_s": 1000, "multiprocessors": 100, "multiprocessors_for_nccl": 10, "chunk_columns": 8000, "forward_tflop_s": 500,
    "step_tflop_s": 400, "shard_fixed_us": 20,
}  # fmt: skip


def bench_file(entries):
    """A results file of fusedlogp_bench with sustained medians in ms."""
    return {"cases": [{"problem": name, "regimes": {"burst": {"ours_ms": {"median": 1e9}}, "sustained": {"ours_ms": {"median": ms}}}} for name, ms in entries]}


@unittest.skipUnless(os.path.isfile(PROGRAM), "bench/ is not beside the tests")
class Scaling(unittest.TestCase):
    def setUp(self):
        self.scaling = loaded(PROGRAM)
        self.text = {"cases": [CASE], "layouts": [ONE_NODE, TWO_NODES], "published": {"4 GPUs": [0.9, 0.95]}, **{k: {"value": v} for k, v in NUMBERS.items()}}
        self.model = self.scaling.Model(self.text)

    def predict(self, what, layout, times=()):
        return self.scaling.predict(self.model, dict(times), what, CASE, layout)

    def test_a_gather_takes_the_other_ranks_bytes_at_the_links_rates(self):
        # 32 KB from each of 3 ranks at 100 GB/s: 0.96 us; of 2 x 4 ranks 6 by NVLink (1.92 us), 1 by InfiniBand (3.2 us at 10 GB/s).
        self.assertAlmostEqual(10 + 0.96, self.scaling.gather_us(self.model, ONE_NODE, 32, 1000))
        self.assertAlmostEqual(10 + 1.92 + 30 + 3.2, self.scaling.gather_us(self.model, TWO_NODES, 32, 1000))

    def test_a_reduction_moves_each_byte_twice_but_for_the_ranks_own(self):
        # 8 MB: 2 x 3/4 x 8 MB at 100 GB/s is 120 us; between two nodes 2 x 1/2 x 2 MB at 10 GB/s is 200 us.
        self.assertAlmostEqual(10 + 120, self.scaling.reduce_us(self.model, ONE_NODE, 8e6))
        self.assertAlmostEqual(10 + 120 + 30 + 200, self.scaling.reduce_us(self.model, TWO_NODES, 8e6))

    def test_a_forward_is_its_shard_the_gather_and_the_merge(self):
        line = self.predict("forward", ONE_NODE)
        # 2 x 1000 x 2000 x 64000 = 0.256 TFLOP at 500 TFLOP/s: 512 us. The merge reads 128 KB at 1 TB/s: 0.128 us.
        self.assertAlmostEqual(532, line["one_us"])
        self.assertAlmostEqual(128 + 20, line["shard_us"])
        self.assertAlmostEqual(10.96 + 4.128, line["added_us"])
        self.assertAlmostEqual(532 / (4 * 148), line["shard_efficiency"])
        self.assertAlmostEqual(532 / (4 * 163.088), line["efficiency"])
        self.assertEqual((96000, 0, "assumed"), (line["partials_bytes"], line["grad_hidden_bytes"], line["shard_from"]))

    def test_a_steps_reduction_runs_under_the_last_chunk_of_grad_weight(self):
        line = self.predict("step", ONE_NODE)
        # Four products at 400 TFLOP/s: 2560 us, 640 of a shard, and 20. 16000 entries are two chunks: room for 660 / 4 / 2 = 82.5 of the 130 us;
        # while it runs a tenth of the multiprocessors is not the product's.
        self.assertAlmostEqual(660, line["shard_us"])
        self.assertAlmostEqual(10.96 + 4.128 + (130 - 82.5) + 8.25, line["added_us"])
        self.assertAlmostEqual(2580 / (4 * (660 + line["added_us"])), line["efficiency"])
        self.assertEqual(8000000, line["grad_hidden_bytes"])
        self.assertAlmostEqual(10.96 + 4.128 + 130, self.predict("step, serial", ONE_NODE)["added_us"])

    def test_a_reduction_that_is_short_is_hidden(self):
        self.model.numbers["chunk_columns"] = 16000
        self.assertAlmostEqual(10.96 + 4.128 + 13, self.predict("step", ONE_NODE)["added_us"])

    def test_measured_shards_take_the_place_of_rates(self):
        times = self.scaling.measured_times(bench_file([
            ("linear_logp:bf16:n1000:d2000:v64000", 0.5), ("linear_logp:bf16:n1000:d2000:v16000", 0.14), ("linear_logp:bf16:n1000:d2000:v16000:argmax", 9),
            ("linear_logp_backward:bf16:n1000:d2000:v16000:gh_bf16:gw_bf16", 9), ("linear_logp+linear_logp_backward:bf16:n1000:d2000:v16000", 0.7),
        ]))  # fmt: skip
        line = self.predict("forward", ONE_NODE, times)
        self.assertEqual((500, 140, "measured"), (line["one_us"], line["shard_us"], line["shard_from"]))
        self.assertAlmostEqual(500 / 560, line["shard_efficiency"])
        # 8 ranks were not measured: half of 16000 entries' time, and 20 us. A shard without its whole is by the model's rates, as is its whole.
        line = self.predict("forward", TWO_NODES, times)
        self.assertEqual((500, 90, "from 16000 entries"), (line["one_us"], line["shard_us"], line["shard_from"]))
        line = self.predict("step", ONE_NODE, times)
        self.assertEqual((2580, 660, "assumed"), (line["one_us"], line["shard_us"], line["shard_from"]))

    def run_program(self, *options, returncode=0, cwd=None):
        done = programs.run(os.path.abspath(PROGRAM), *options, cwd=cwd, timeout=60)
        self.assertEqual(returncode, done.returncode, done.stdout + done.stderr)
        return done.stdout if returncode == 0 else done.stderr

    def test_the_program_reads_files_and_writes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            model, shards, result, plot = (os.path.join(folder, name) for name in ("model.json", "shards.json", "result.json", "plot.svg"))
            with open(model, "w") as file:
                json.dump(self.text, file)
            with open(shards, "w") as file:
                json.dump(bench_file([("linear_logp:bf16:n1000:d2000:v64000", 0.5), ("linear_logp:bf16:n1000:d2000:v16000", 0.14)]), file)
            text = self.run_program("--model", model, "--shards", shards, "--set", "merge_us=0", "--json", result, "--svg", plot)
            with open(result) as file:
                predicted = json.load(file)["predicted"]
            with open(plot) as file:
                self.assertEqual(3, file.read().count("<polyline"))
        self.assertIn("| 1000, 2000, 64000 | forward | 4 GPUs | 0.50 ms | 0.14 ms | 11 us | 0.89 | **0.83** | 0.90 to 0.95 | measured |", text)
        self.assertEqual(6, len(predicted))
        self.assertAlmostEqual(10.96 + 0.128, predicted[0]["added_us"])

    @unittest.skipUnless(distributed.is_available() and distributed.is_gloo_available(), "torch has no gloo")
    def test_it_measures_ranks_where_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "result.json")
            text = self.run_program("--measure", "--device", "cpu", "--case", "16,32,300", "--ranks", "2", "--rounds", "3", "--left", "8", "--json", result)
            with open(result) as file:
                measured = json.load(file)
        lines = measured["measured"]
        self.assertEqual(["forward", "step, serial", "step, 8 left"], [line["what"] for line in lines])
        self.assertEqual({"median": 1.0, "low": 1.0, "high": 1.0}, lines[1]["faster"])
        self.assertLessEqual(lines[2]["faster"]["low"], lines[2]["faster"]["median"])
        self.assertEqual(["case", "ranks", "shard's forward", "all-gather", "all-reduce"], list(measured["parts"][0]))
        for line in lines:
            self.assertAlmostEqual(line["one_us"] / (2 * line["ranks_us"]), line["efficiency"])
            self.assertIn(f"| 16, 32, 300 | {line['what']} | 2 |", text)
        self.assertIn("wanted N,D,V", self.run_program("--measure", "--case", "16,32", returncode=2))

    def test_the_models_own_file_is_complete_and_a_wrong_name_is_refused(self):
        self.assertEqual(2 + 24, len(self.run_program().splitlines()))
        self.assertIn("--set nvlink: wanted one of", self.run_program("--set", "nvlink=3", returncode=1))
        with open(os.path.join(BENCH, "scaling_model.json")) as file:
            text = json.load(file)
        self.assertEqual(sorted(NUMBERS), sorted(name for name, value in text.items() if isinstance(value, dict) and "value" in value))
        self.assertTrue(all(text[name]["from"].split(":")[0].split()[0] for name in NUMBERS))

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        with subprocess.Popen([sys.executable, PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            program.stdout.close()
            self.assertEqual("", program.stderr.read())

    def test_the_documents_table_is_the_programs(self):
        with open(os.path.join(BENCH, "..", "docs", "scaling.md")) as file:
            document = file.read()
        command = re.search(r"(?m)^bench/scaling.py(.*)$", document)[1].split()
        self.assertIn(self.run_program(*command, cwd=os.path.join(BENCH, "..")), document)


if __name__ == "__main__":
    unittest.main()

"""The fit of bench/row_chunks.py: to costs that are known, and to the results that the library's constants are from."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from support import ROOT, loaded

PROGRAM = os.path.join(ROOT, "bench", "row_chunks.py")
RESULTS = os.path.join(ROOT, "bench", "results", "2026-11-30-NVIDIA-H200-frozen.json")
SOURCE = os.path.join(ROOT, "runtime", "operators", "linear", "linear_budget.c")
SHAPES = [(8192, 2048, 131072), (8192, 2560, 151936), (16384, 3584, 152064)]


def report(columns, ratios):
    return {"cases": [{"product": f"matrix_product.bf16.bm128.bv{columns}.c2.sm_90a", "regimes": {
        name: {"ratio": {"median": ratio}} for name, ratio in zip(("burst", "sustained"), ratios)}}]}  # fmt: skip


@unittest.skipUnless(os.path.isfile(PROGRAM), "bench/ is not beside the tests")
class RowChunks(unittest.TestCase):
    def setUp(self):
        self.row_chunks = loaded(PROGRAM)

    def run_on(self, reports, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            with open(path, "w") as file:
                json.dump(reports, file)
            return subprocess.run([sys.executable, PROGRAM, *arguments, path], capture_output=True, text=True)

    def test_what_multiprocessors_have_work_for(self):
        # 2 parts x 4 clusters of rows x 8 tiles of 256 columns are 64 tiles for 66 clusters; 2176 columns have 17 narrow tiles of 128 in 136 of 198.
        self.assertAlmostEqual(64 / 66, self.row_chunks.filled(1024, 2048, 2, 256))
        self.assertAlmostEqual(0.98 * 136 / 198, self.row_chunks.filled(1024, 2176, 2, 128))
        # Rows and columns behind the last are no work.
        self.assertAlmostEqual(64 / 66 * (900 / 1024) * (2000 / 2048), self.row_chunks.filled(900, 2000, 2, 256))

    def test_costs_that_are_known_are_found(self):
        reports = {}
        for c, (rows, hidden, vocab) in enumerate(SHAPES):
            for parts, chunk in ((1, 512), (2, 768), (4, 1024), (7, 2048), (9, 640)):
                time = 1.2 + 0.1 * c + 0.5 / self.row_chunks.filled(chunk, hidden, parts, 256) + 80 / chunk + (900 * parts / vocab if parts > 1 else 0)
                for k, apart in ((1, 0.03), (2, -0.03)):  # rounds and regimes whose mean is the time's ratio
                    reports[f"{rows}, {hidden}, {vocab}, {parts} parts, {chunk} rows, call 1, round {k}"] = report(256, (2 / time + apart, 2 / time - apart))
        reports["8192, 2048, 131072, before"] = report(256, (1, 1))
        reports["128, 2048, 131072, 2 parts, 1024 rows, call 1, round 1"] = report(256, (0.5, 0.5))
        reports["8192, 1024, 50304, 2 parts, 1024 rows, call 1, round 1"] = report(256, (0.5, 0.5))
        reports["8192, 2048, 131072, 3 parts, 1024 rows, call 2, round 1"] = report(256, (0.1, 0.1))
        done = self.run_on(reports, "--most-call", "1")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("15 steps of 3 shapes: idle 0.500, row_chunk 80.0 rows, part 900 entries; mean residual 0.00 %", done.stdout.splitlines()[-1])
        self.assertNotIn("mean residual 0.00 %", self.run_on(reports).stdout)

    def test_results_that_cannot_be_fitted_are_refused(self):
        for reports, wanted in (
            ({}, "no result names its parts and rows"),
            ([1], "results of fusedlogp_bench are wanted"),
            ({"8192, 2048, 131072, 2 parts, 1024 rows, call 1, round 1": {}}, "results of fusedlogp_bench are wanted"),
            ({"8192, 2048, 131072, 2 parts, 1024 rows, call 1, round 1": report(256, (1, 1))}, "differ too little"),
            ({"8192, 2048, 131072, 2 parts, 1024 rows, call 1, round 1": report(256, (0, 0))}, "results of fusedlogp_bench are wanted"),
        ):
            done = self.run_on(reports)
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            self.assertIn(wanted, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_the_librarys_constants_are_those_of_the_fit(self):
        costs, _, residuals = self.row_chunks.fit(self.row_chunks.measured([RESULTS], 3, None))
        with open(SOURCE) as file:
            constants = {name: int(value) for name, value in re.findall(r"(?m)^ +([A-Z_]+) = (\d+),", file.read())}
        self.assertEqual(39, len(residuals))
        self.assertEqual([constants["IDLE_COST"], constants["ROW_CHUNK_COST"], constants["PART_COST"]],
                         [round(costs[0], 2) * 1000, round(costs[1], -1), round(costs[2], -2)])  # fmt: skip
        for name in ("CLUSTERS", "WIDE_TILE_COLUMNS", "NARROW_TILE_PERCENT"):
            self.assertEqual(constants[name], getattr(self.row_chunks, name))
        self.assertEqual(constants["PRODUCT_CLUSTER_ROWS"], self.row_chunks.CLUSTER_ROWS)


if __name__ == "__main__":
    unittest.main()

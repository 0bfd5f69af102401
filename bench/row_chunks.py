#!/usr/bin/env python3
"""Fits what a frozen head's step costs to its chunks of rows and to the parts of its product: IDLE_COST, ROW_CHUNK_COST and PART_COST in
runtime/operators/linear/linear_budget.c.

usage: row_chunks.py [--most-call C] [--regime burst|sustained] RESULTS...

RESULTS are files of labelled reports of fusedlogp_bench, {"N, D, V, P parts, R rows, call C, round K": report, ..}, of linear_cross_entropy for grad_hidden
alone with so many parts and rows. Reports with another label are left out, and so are those of fewer than 4096 rows, of vocabularies of 60000 or fewer, and of
later calls than --most-call. A step's time, in units of half the time of the two products beside it in the same run, is taken as

    c(N, D, V) + idle / f + row_chunk / R + part P / V.

f is the share of the multiprocessors' time for which grad_hidden's product has work; a narrow tile does 0.98 of a wide one's. The costs and the c are fitted
by least squares to the times of the mean ratio of all rounds and of both regimes, or of one. The table has what was measured beside the fit; residuals are in
percent of a product's time.
"""

import argparse
import json
import re
import statistics

LABEL = re.compile(r"(\d+), (\d+), (\d+), (\d+) parts, (\d+) rows, call (\d+), round \d+$")
TILE_COLUMNS = re.compile(r"\.bv(\d+)\.")
LEAST_ROWS, LEAST_VOCAB = 4096, 60000
# KEEP IN STEP: CLUSTERS, PRODUCT_CLUSTER_ROWS, WIDE_TILE_COLUMNS and NARROW_TILE_PERCENT in runtime/operators/linear/linear_budget.c.
CLUSTERS, CLUSTER_ROWS, WIDE_TILE_COLUMNS, NARROW_TILE_PERCENT = 66, 256, 256, 98


def up(count, step):
    return -(-count // step) * step


def filled(rows, hidden, parts, columns):
    """The share of the multiprocessors' time for which a chunk's product has work. What a tile has behind hidden's end is none."""
    tiles = parts * (up(rows, CLUSTER_ROWS) // CLUSTER_ROWS) * (up(hidden, columns) // columns)
    speed = 1 if columns == WIDE_TILE_COLUMNS else NARROW_TILE_PERCENT / 100
    return speed * parts * rows * hidden / (up(tiles, CLUSTERS) * CLUSTER_ROWS * columns)


def measured(paths, most_call, only_regime):
    """[(shape, (1 / f, 1 / R, P / V), time, what was measured)], shape and what was measured being (N, D, V) and (P, R)."""
    ratios = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            reports = json.load(file)
        for label, report in reports.items():
            match = LABEL.match(label)
            rows, hidden, vocab, parts, chunk, call = map(int, match.groups()) if match else (0,) * 6
            if rows < LEAST_ROWS or vocab <= LEAST_VOCAB or (most_call and call > most_call):
                continue
            (case,) = report["cases"]
            columns = int(TILE_COLUMNS.search(case["product"])[1])
            of_step = ratios.setdefault((rows, hidden, vocab, parts, chunk, columns), [])
            of_step.extend(regime["ratio"]["median"] for name, regime in case["regimes"].items() if only_regime in (None, name))
    return [
        (step[:3], (1 / filled(chunk, hidden, parts, columns), 1 / chunk, parts / vocab if parts > 1 else 0.0), 2 / statistics.mean(of_step), step[3:5])
        for step, of_step in ratios.items()
        for _, hidden, vocab, parts, chunk, columns in [step]
    ]


def solve(matrix, right):
    """The solution of matrix x = right, by Gauss and Jordan with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-12:
            raise SystemExit("row_chunks: the results differ too little from one another to fit three costs")
        for j in range(len(rows)):
            if j != i:
                times = rows[j][i] / rows[i][i]
                rows[j] = [a - times * b for a, b in zip(rows[j], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def fit(steps):
    """The costs, {shape: c} and the residuals. A shape's c takes up its means, so the costs are fitted to what differs from them."""
    shapes = {}
    for shape, features, time, _ in steps:
        shapes.setdefault(shape, []).append((*features, time))
    means = {shape: [statistics.mean(column) for column in zip(*rows)] for shape, rows in shapes.items()}
    apart = [[value - mean for value, mean in zip((*features, time), means[shape])] for shape, features, time, _ in steps]
    scale = [max(abs(row[i]) for row in apart) or 1.0 for i in range(3)]  # R is in the thousands
    apart = [[*(row[i] / scale[i] for i in range(3)), row[3]] for row in apart]
    products = [[sum(row[i] * row[j] for row in apart) for j in range(4)] for i in range(3)]
    scaled = solve([row[:3] for row in products], [row[3] for row in products])
    costs = [value / each for value, each in zip(scaled, scale)]
    constants = {shape: mean[3] - sum(cost * value for cost, value in zip(costs, mean)) for shape, mean in means.items()}
    residuals = [time - constants[shape] - sum(cost * value for cost, value in zip(costs, features)) for shape, features, time, _ in steps]
    return costs, constants, residuals


def main():
    parser = argparse.ArgumentParser(description="Fits what a frozen head's step costs to its chunks of rows and to the parts of its product.")
    parser.add_argument("results", metavar="RESULTS", nargs="+", help="labelled reports of fusedlogp_bench")
    parser.add_argument("--most-call", type=int, metavar="C", help="leave out later calls, which may have had another GPU")
    parser.add_argument("--regime", choices=("burst", "sustained"), help="fit this regime alone")
    args = parser.parse_args()
    try:
        steps = measured(args.results, args.most_call, args.regime)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise SystemExit(f"row_chunks: results of fusedlogp_bench are wanted: {error}") from None
    if not steps:
        raise SystemExit("row_chunks: no result names its parts and rows")
    costs, constants, residuals = fit(steps)
    mean = statistics.mean(abs(residual) for residual in residuals)
    print("      N      D       V  parts  rows   time    fit  residual")
    for (shape, _, time, (parts, rows)), residual in zip(steps, residuals):
        print("%7d %6d %7d %6d %5d %6.3f %6.3f %+8.2f %%" % (*shape, parts, rows, time, time - residual, 100 * residual))
    print("%d steps of %d shapes: idle %.3f, row_chunk %.1f rows, part %.0f entries; mean residual %.2f %%" % (len(steps), len(constants), *costs, 100 * mean))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks what fusedlogp tune finds on this machine's GPU: tunings beside an exhaustive search of each shape, and beside the default.

usage: tunings.py --out FILE.json [--seconds S] [--tunings N] [--tuning-seconds S] [--search-seconds S] [--problem STR]... [--fusedlogp PROGRAM]
                  [--svg FILE.svg]
       tunings.py --report FILE.json [--svg FILE.svg]

The work has parts: an exhaustive search of each problem, then tunings of all of them, each with an empty directory of records. FILE is rewritten after every
part, and a part that it holds is not done again: the same command, on the same kind of machine, goes on where the last one ended. With --seconds no part is
begun that would end later than that, if it took as long as the longest one of its kind so far. At the end, and with --report alone, a table and whether
these hold are printed:

  winners     no tuning's winner loses more than 2 % to the best that the search of its shape found
  default     no winner is more than 1 % behind the default
  left out    with the records of the other shapes alone, each shape takes a tuning that loses at most 5 % to its best: the nearest shape's winner, where
              the model, corrected by its error at that shape, says that this is worth it (as runtime/core/tuned.c does)

Exit status: 0 all of it holds, 1 something does not, 2 usage, 3 not all of it has been measured yet.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

PROBLEMS = [
    "linear_logp:bf16:n4096:d2048:v131072",
    "linear_logp:bf16:n8192:d4096:v128256",
    "linear_logp:bf16:n1024:d4096:v128256",
    "linear_logp:bf16:n64:d4096:v128256",
    "linear_logp:bf16:n128:d4096:v128256",
    "linear_logp:bf16:n4096:d2304:v256000",
    "linear_logp:bf16:n16384:d2048:v248320",
    "linear_logp:bf16:n64:d2048:v131072",
    "logits_logp_backward:bf16:n4096:v131072",
    "logits_logp_backward:bf16:n4096:v131072:fused",
    "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16",
    "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16",
]
BEHIND_BEST, BEHIND_DEFAULT, LEFT_OUT = 0.02, 0.01, 0.05
# runtime/core/tuned.c: how far a shape may be from another, in doublings, and what a tuning of another shape must promise.
FARTHEST, WORTHWHILE = 4, 0.99
UNTIMED = 0.05  # the share of candidates that may be untimed for a search's best to count as known
LEAST_ROUNDS = 5  # of a candidate that counts as timed: fewer may all lie in one state of the clocks
SIZE = re.compile(r"([a-z])(\d+)$")


# ---- measuring ----


def tune(program, problems, seconds, options=()):
    """The results of fusedlogp tune for the problems, with an empty directory of records."""
    with tempfile.TemporaryDirectory() as records:
        environment = {**os.environ, "FUSEDLOGP_RECORDS_DIR": records, "FUSEDLOGP_SYSTEM_RECORDS": ""}
        named = [word for problem in problems for word in ("--problem", problem)]
        command = [program, "tune", *named, "--budget", f"{seconds:g}", "--json", *options]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}")
    results = json.loads(done.stdout)["results"]
    for problem in problems:
        if all(result["problem"] != problem for result in results):
            print(f"{problem}: no result", file=sys.stderr)
    return results


def save(state, path):
    with open(path + ".new", "w") as file:
        json.dump(state, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def parts_of(state, options):
    """(kind, name, work) of each part that is not in the state: work() puts it there."""
    searched, tunings = state["searches"], state["tunings"]

    def search(problem):
        for result in tune(options.fusedlogp, [problem], options.search_seconds, ["--limit", "1000"]):
            if result["problem"] == problem:
                searched[problem] = result

    def tuning():
        tunings.append([brief(result) for result in tune(options.fusedlogp, state["problems"], options.tuning_seconds)])

    for problem in state["problems"]:
        if problem not in searched:
            yield "search", f"search of {problem}", lambda problem=problem: search(problem)
    for number in range(len(tunings), options.tunings):
        yield "tuning", f"tuning {number + 1} of {options.tunings}", tuning


def brief(result):
    return {name: value for name, value in result.items() if name != "candidates"}


def measure(state, options):
    """Does the parts that are missing; 1 where the time was over before they were all done."""
    begun, longest = time.monotonic(), {}
    for kind, name, work in parts_of(state, options):
        expected = longest.get(kind, options.search_seconds if kind == "search" else options.tuning_seconds)
        if options.seconds and time.monotonic() - begun + expected > options.seconds:
            return 1
        part_begun = time.monotonic()
        work()
        seconds = time.monotonic() - part_begun
        longest[kind] = max(longest.get(kind, 0), seconds)
        print(f"{name}: {seconds:.1f} s", file=sys.stderr)
        save(state, options.out)
    return 0


# ---- the results ----


def distance(one, other):
    """Doublings between the sizes of two problems, or None where they differ in more."""
    parts, others, doublings = one.split(":"), other.split(":"), 0.0
    if len(parts) != len(others):
        return None
    for part, its in zip(parts, others):
        size, its_size = SIZE.match(part), SIZE.match(its)
        if size and its_size and size[1] == its_size[1]:
            doublings += abs(math.log2(int(size[2]) / int(its_size[2])))
        elif part != its:
            return None
    return doublings


def candidates_of(search):
    return {candidate["tuning"]: candidate for candidate in search["candidates"]}


def is_timed(candidate):
    """Whether a candidate was timed often enough, or was dropped because its interval showed that it is slower."""
    return "ratio" in candidate and (candidate["fate"] == "dropped" or candidate.get("rounds", LEAST_ROUNDS) >= LEAST_ROUNDS)


def count_untimed(search):
    return sum(not is_timed(candidate) and candidate["fate"] in ("untried", "left") for candidate in search["candidates"])


def ratio_of(search, tuning):
    """The ratio of a tuning's time to the default's in the search; None: it was not timed."""
    candidate = candidates_of(search).get(tuning, {})
    return candidate["ratio"] if is_timed(candidate) else None


def predicted_ratio(search, tuning):
    candidates = candidates_of(search)
    return candidates[tuning]["predicted_seconds"] / candidates[""]["predicted_seconds"]


def best_of(search):
    return min(filter(is_timed, search["candidates"]), key=lambda candidate: candidate["ratio"])


def taken_without(searches, problem, tuning):
    """(tuning, nearest problem) that a plan of problem takes where only the records of the other shapes are there; "" is the default. What a GPU with
    slow memory takes where no shape is near is not known here. A tuning with chunks says nothing about another shape."""
    near = []
    for result in tuning:
        if any(item.startswith("chunks.") for item in result["tuning"].split(",")):
            continue
        doublings = distance(problem, result["problem"])
        if result["problem"] != problem and doublings is not None and doublings < FARTHEST and result["tuning"] in candidates_of(searches[problem]):
            near.append((doublings, result["problem"], result))
    if not near:
        return "", None
    _, name, record = min(near, key=lambda entry: entry[:2])
    if not record["tuning"] or record["tuning"] not in candidates_of(searches[name]):
        return "", name
    wrong_by = record["ratio"] / predicted_ratio(searches[name], record["tuning"])
    return record["tuning"] if predicted_ratio(searches[problem], record["tuning"]) * wrong_by < WORTHWHILE else "", name


def worst(losses):
    """The largest loss; None where one is not known, or where there is none."""
    return None if not losses or None in losses else max(losses)


def behind(search, tuning):
    """What a tuning loses to the search's best. None: it was not timed, or too many others were not timed for the best to be known."""
    ratio = ratio_of(search, tuning)
    if ratio is None or count_untimed(search) > UNTIMED * len(search["candidates"]):
        return None
    return ratio / best_of(search)["ratio"] - 1


def rows_of(state):
    """A row for each problem that was searched: what each kind of choice loses to the best. None: not known, as where nothing had rounds enough."""
    rows = []
    for problem in state["problems"]:
        search = state["searches"].get(problem)
        if not search:
            continue
        results = [result for tuning in state["tunings"] for result in tuning if result["problem"] == problem]
        winners = [result["tuning"] for result in results]
        missing = [None] * (len(state["tunings"]) - len(results))
        left_out = []
        if all(other in state["searches"] for other in state["problems"]):
            left_out = [behind(search, taken_without(state["searches"], problem, tuning)[0]) for tuning in state["tunings"]]
        rows.append({
            "problem": problem,
            "candidates": len(search["candidates"]),
            "untimed": count_untimed(search),
            "best": best_of(search)["tuning"] if any(map(is_timed, search["candidates"])) else None,
            "default": behind(search, ""),
            "winners": {name: winners.count(name) for name in sorted(set(winners))},
            "behind_best": worst([behind(search, name) for name in winners] + missing),
            "behind_default": worst([result["ratio"] - 1 if result["ratio"] else None for result in results] + missing),  # 0: there was no time
            "left_out": worst(left_out),
        })  # fmt: skip
    return rows


def percent(loss):
    return "not known" if loss is None else f"{100 * loss:.1f} %"


def table(rows):
    lines = ["| problem | candidates | winners | the default behind | winners behind | left out, behind |", "|---|---|---|---|---|---|"]
    for row in rows:
        winners = ", ".join(f"{name or 'default'} {count}" for name, count in row["winners"].items())
        untimed = f", {row['untimed']} untimed" if row["untimed"] else ""
        losses = " | ".join(percent(row[name]) for name in ("default", "behind_best", "left_out"))
        lines.append(f"| {row['problem']} | {row['candidates']}{untimed} | {winners} | {losses} |")
    return lines


LEFT, WIDTH, TOP, LINE = 430, 480, 64, 26  # of the picture, in pixels


def picture(state, rows):
    """An SVG of what each problem loses to the best of its search: by its default, by its winners, and by what it takes from the others' records."""
    kinds = (("default", "#7f7f7f", "the default"), ("behind_best", "#1f77b4", "the worst winner"), ("left_out", "#ff7f0e", "left out"))
    most = max([LEFT_OUT, *(row[name] for row in rows for name, _, _ in kinds if row[name] is not None)]) * 1.1
    at, bottom = lambda loss: LEFT + WIDTH * loss / most, TOP + LINE * len(rows)
    device = next((search["device"] for search in state["searches"].values() if "device" in search), "")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{bottom + 40}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="20" y="20" font-size="14">behind the best of an exhaustive search; {device}, {state.get("date", "")}</text>',
        '<text x="20" y="40">' + " ".join(f'<tspan fill="{color}">&#9679; {said}</tspan>' for _, color, said in kinds) + " (no dot: not known)</text>",
    ]
    for hundredth in range(int(100 * most) + 1):
        x, color = at(hundredth / 100), "#c00" if hundredth / 100 in (BEHIND_BEST, LEFT_OUT) else "#ddd"
        parts.append(f'<path d="M{x:.1f} {TOP - 8}V{bottom}" stroke="{color}"/><text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{hundredth} %</text>')
    for number, row in enumerate(rows):
        y = TOP + LINE * (number + 0.5)
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{row["problem"]}</text>')
        for place, (name, color, _) in enumerate(kinds):
            if row[name] is not None:
                parts.append(f'<circle cx="{at(row[name]):.1f}" cy="{y + 7 * (place - 1):.1f}" r="4" fill="{color}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def verdict(state, rows):
    """(lines, exit status)."""
    lines, status = [], 0
    for name, column, limit in (("winners", "behind_best", BEHIND_BEST), ("default", "behind_default", BEHIND_DEFAULT), ("left out", "left_out", LEFT_OUT)):
        losses = [row[column] for row in rows]
        unknown = losses.count(None) + len(state["problems"]) - len(rows)
        known = [loss for loss in losses if loss is not None]
        failed = sum(loss > limit for loss in known)
        missing = f"; {failed} {'problem misses' if failed == 1 else 'problems miss'} it" if failed else ""
        left = f"; {unknown} {'problem is' if unknown == 1 else 'problems are'} not known" if unknown else ""
        said = f"{name}: at most {percent(max(known, default=None))}, wanted {percent(limit)}"
        lines.append(said + missing + left)
        status = 1 if failed or status == 1 else 3 if unknown or status == 3 else 0
    lines.append(f"{len(state['tunings'])} tunings of {len(state['problems'])} problems, {len(rows)} of them searched")
    return lines, status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="FILE.json")
    parser.add_argument("--report", metavar="FILE.json")
    parser.add_argument("--svg", metavar="FILE.svg")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--tunings", type=int, default=10)
    parser.add_argument("--tuning-seconds", type=float, default=75)
    parser.add_argument("--search-seconds", type=float, default=40)
    parser.add_argument("--problem", action="append", metavar="STR")
    parser.add_argument("--fusedlogp", default="fusedlogp", metavar="PROGRAM")
    options = parser.parse_args()
    if bool(options.out) == bool(options.report):
        parser.error("wanted --out or --report")
    path = options.out or options.report
    state = {"problems": options.problem or PROBLEMS, "searches": {}, "tunings": []}
    if options.report or os.path.exists(path):
        with open(path) as file:
            state = json.load(file)
    if options.out and options.problem and options.problem != state["problems"]:
        parser.error(f"{path} is of other problems")
    if options.out and measure(state, options):
        print("the time is over: the same command goes on", file=sys.stderr)
    rows = rows_of(state)
    said, status = verdict(state, rows)
    if options.svg:
        with open(options.svg, "w") as file:
            file.write(picture(state, rows))
    print("\n".join(table(rows) + [""] + said))
    return status


if __name__ == "__main__":
    sys.exit(main())

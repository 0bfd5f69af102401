#!/usr/bin/env python3
"""Carries stale records over to new templates that make the same machine code.

usage: records/carry_over.py OLD [--new TREE] [--records DIR] [--programs DIR] [--but OPERATOR] [--dry-run]

A record is stale as soon as a word of a template that its kernels use has changed. Where NVRTC makes the same machine code of the old and of the new template,
what was measured still holds: this compiles every kernel of a stale record, those of its tuning and those that are taken without one, from both trees, and
compares their instructions, registers and shared memory. If all are the same, the record gets the new templates' digest; else it stays as it is, and its
problem has to be tuned again. It needs the NVRTC with which the record was measured, but no GPU.

OLD is a tree in which the records are sound, for example of `git worktree add OLD COMMIT`.

  --new TREE      the other tree (default: the one that the programs were built of)
  --records DIR   the records (default: this script's folder)
  --programs DIR  where fusedlogp and fusedlogp-gen are (default: build)
  --but OPERATOR  kernels of this operator may differ, be added or be left out; may be given several times. Only for a kernel that no tuning touches and
                  that takes less than half a percent of the time, because a tuning compares whole operations, and such a kernel is the same in all that
                  it compares
  --dry-run       say what would be done, and write nothing

Exit status: 0 no record is stale any more, 1 some have to be tuned again, 2 usage, 3 a program failed.
"""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

# What a record names the templates' kernels by.
IDENTITY = "numerics", "templates", "selection"


# Sections of an ELF file; the flag of those that hold instructions (elf.h).
EXECUTABLE = 4


class Failed(Exception):
    pass


def kernel_of(file):
    """(variant, manifest, cubin) of a file of the kernel cache. KEEP IN STEP: runtime/jit/cubin_cache_file.h"""
    data, at = file.read_bytes(), 56
    parts = []
    for size in struct.unpack_from("<5Q", data, 16):
        parts.append(data[at : at + size])
        at += size
    return parts[1].decode(), parts[2], parts[3]


def instructions(cubin):
    """name -> bytes of the sections of a cubin, a 64-bit ELF file, that hold instructions. What else may differ are names and unused constants."""
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<3H", cubin, 58)
    # name, type, flags, address, offset, size
    sections = [struct.unpack_from("<2I4Q", cubin, start + i * size) for i in range(count)]
    return {
        cubin[sections[names][4] + name : cubin.index(0, sections[names][4] + name)]: cubin[offset : offset + length]
        for name, _, flags, _, offset, length in sections if flags & EXECUTABLE
    }  # fmt: skip


class Tree:
    """The programs with the generator and templates of one tree; `source` None: of the one that they were built of."""

    def __init__(self, programs, source, work):
        self.programs, self.work = programs, work
        self.environment = {**os.environ, "FUSEDLOGP_SYSTEM_RECORDS": str(work / "none"), "FUSEDLOGP_SYSTEM_CACHE": str(work / "none")}
        self.environment.pop("FUSEDLOGP_SOURCE_DIR", None)
        if source is not None:
            self.environment["FUSEDLOGP_SOURCE_DIR"] = str(source)

    def run(self, program, *arguments, allowed=(0,)):
        done = subprocess.run([self.programs / program, *map(str, arguments)], env=self.environment, capture_output=True, text=True)
        if done.returncode not in allowed:
            raise Failed(f"{program} {' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr.strip()}")
        return done.stdout

    def nvrtc_build(self):
        return (json.loads(self.run("fusedlogp", "info", "--json"))["nvrtc"] or {}).get("build")

    def stale(self, path):
        """name -> what lint says of the records of a folder that are stale."""
        found = json.loads(self.run("fusedlogp", "records", "lint", "--json", path, allowed=(0, 4)))
        if found["faults"]:
            raise Failed(f"{path}: {len(found['faults'])} files are no records")
        return {record["name"]: record for record in found["stale"]}

    def selection(self, record):
        """The variants that a plan takes without a record."""
        self.environment["FUSEDLOGP_RECORDS_DIR"] = str(self.work / "none")
        return self.run("fusedlogp-gen", "--arch", record["arch"], "--problem", record["problem"], "--list").split()

    def machine_code(self, record, text):
        """variant -> manifest and instructions, of the kernels that a plan takes with the record and without. text: as it is sound in this tree."""
        folder = self.work / "records"
        folder.mkdir(parents=True)
        (folder / "one.txt").write_text(text)
        self.environment["FUSEDLOGP_RECORDS_DIR"] = str(folder)
        self.run("fusedlogp", "records", "import", "--quiet", folder / "one.txt")
        (folder / "one.txt").unlink()
        wanted = ["--arch", record["arch"], "--problem", record["problem"]]
        variants = self.run("fusedlogp-gen", *wanted, "--list").split()
        self.run("fusedlogp-gen", *wanted, "--out", self.work / "kernels", "--quiet")
        kernels = {}
        for variant, manifest, cubin in map(kernel_of, self.work.glob("kernels/*/*.flpk")):
            kernels[variant] = manifest, instructions(cubin)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        if not all(code for _, code in kernels.values()):
            raise Failed("a cubin without instructions")
        return {variant: kernels[variant] for variant in variants}


def renewed(text, record):
    for key in IDENTITY:
        text = text.replace(f"\n{key}: {record[key]}\n", f"\n{key}: {record['now'][key]}\n")
    return text


def without(but, names):
    """The variants, or the kernels' parts of numerics, that are not of an operator in `but`."""
    return [name for name in names if name.split(".")[0] not in but]


def changes(old, new, record, but):
    """What has to be as it was, apart from the templates and the operators in `but`, and is not."""
    now = record["now"]
    if now["arch"] != record["arch"]:
        yield "architecture"
    if without(but, now["numerics"].split(";")) != without(but, record["numerics"].split(";")):
        yield "arithmetic"
    if now["selection"] != record["selection"] and without(but, new.selection(record)) != without(but, old.selection(record)):
        yield "kernels without a tuning"


def why_not(old, new, record, text, but):
    """Why a record cannot be carried over; None: it can."""
    changed = list(changes(old, new, record, but))
    if changed:
        return f"other {' and '.join(changed)}"
    if all(record["now"][key] == record[key] for key in IDENTITY):
        return record["stale"]
    build = new.nvrtc_build()
    if build != record["nvrtc"]:
        return f"measured with NVRTC {record['nvrtc']}, and here is {build or 'none'}"
    before, after = old.machine_code(record, text), new.machine_code(record, renewed(text, record))
    if set(without(but, before)) != set(without(but, after)):
        return "other kernels"
    differing = [variant for variant in without(but, before) if before[variant] != after[variant]]
    return f"other machine code of {', '.join(differing)}" if differing else None


def carry_over(old, new, records, but, is_dry):
    """Prints a line for each record; returns how many have to be tuned again."""
    unsound, left = old.stale(records), 0
    for name, record in new.stale(records).items():
        path = records / name
        text = path.read_text()
        reason = "it is stale in the old tree, too" if name in unsound else why_not(old, new, record, text, but)
        print(f"{name}: {'carried over' if reason is None else 'to be tuned again: ' + reason}: {record['problem']}", flush=True)
        left += reason is not None
        if reason is None and not is_dry:
            (new.work / "renewed.txt").write_text(renewed(text, record))
            new.run("fusedlogp", "records", "import", "--quiet", "--directory", records, new.work / "renewed.txt")
            path.unlink()
    return left


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "), add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("old", nargs="?", type=pathlib.Path)
    parser.add_argument("--new", type=pathlib.Path)
    parser.add_argument("--records", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--but", action="append", default=[])
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    if options.help:
        print(__doc__.strip())
        return 0
    for name, tree in ("OLD", options.old), ("--new", options.new):
        if (tree is not None or name == "OLD") and not (tree and (tree / "gen" / "fusedlogp.lua").is_file() and (tree / "templates").is_dir()):
            parser.error(f"{name}: got {tree}, wanted a tree with gen/ and templates/")
    with tempfile.TemporaryDirectory() as work:
        trees = [Tree(options.programs.absolute(), source and source.absolute(), pathlib.Path(work) / name)
                 for name, source in (("old", options.old), ("new", options.new))]
        for tree in trees:
            tree.work.mkdir()
        try:
            return 1 if carry_over(*trees, options.records.absolute(), options.but, options.dry_run) else 0
        except (Failed, OSError) as error:
            print(f"{parser.prog}: {error}", file=sys.stderr)
            return 3


if __name__ == "__main__":
    sys.exit(main())

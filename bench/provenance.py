"""Describes where results come from, for the JSON files of the Python benchmarks, as bench/report.c does for those in C."""

import datetime
import subprocess
import sys

import torch


def add_commit(parser):
    parser.add_argument("--commit", help="recorded in the results")


def driver_version(device):
    """The GPU driver's, as nvidia-smi says it; None for a CPU, or without that program."""
    if not device.startswith("cuda"):
        return None
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def provenance(commit, device):
    """{date, commit, command, torch, device, driver}; device: torch's name of it, as "cuda:0" or "cpu"."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": commit,
        "command": sys.argv,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu",
        "driver": driver_version(device),
    }

"""Runs a Python program for its output: as a user starts it where everything is tested (.ci/run) or on a GPU, else in a copy of a process that has torch
already, which a start takes seconds of the processor to load."""

import os
import runpy
import socket
import subprocess
import sys
import tempfile
import time

import ranks
from support import DEVICE, EVERYTHING

AS_A_USER = EVERYTHING or DEVICE != "cpu"


def _become(program, options, folder, cwd, environment):
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.chdir(cwd)
    os.environ.update(environment)
    sys.argv = [program, *options]
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")


def _in_copies(program, options, cwd, timeout, environments):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        copies = [ranks.CONTEXT.Process(target=_become, args=(program, options, folder, cwd or os.getcwd(), environment)) for environment in environments]
        for copy in copies:
            copy.start()
        end = time.monotonic() + timeout
        for copy in copies:
            copy.join(max(0.0, end - time.monotonic()))
        late = any(copy.is_alive() for copy in copies)
        for copy in copies:
            copy.kill()
            copy.join()
        if late:
            raise subprocess.TimeoutExpired([program, *options], timeout)
        said = []
        for name in ("stdout", "stderr"):
            with open(os.path.join(folder, name)) as file:
                said.append(file.read())
    return subprocess.CompletedProcess([program, *options], next((copy.exitcode for copy in copies if copy.exitcode), 0), *said)


def _as_a_user(command, cwd, timeout):
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=timeout)


def run(program, *options, cwd=None, timeout=120):
    """returncode, stdout and stderr."""
    return _as_a_user([program, *options], cwd, timeout) if AS_A_USER else _in_copies(program, options, cwd, timeout, [{}])


def run_ranks(count, program, timeout=120):
    """The same of so many ranks together, as torchrun starts them."""
    if AS_A_USER:
        return _as_a_user(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), program], None, timeout)
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]  # free again when the ranks come to it
    group = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    return _in_copies(program, (), None, timeout, [{**group, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)])

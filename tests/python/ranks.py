"""Runs a function on the ranks of a gloo or nccl group, each a process of its own that begins with torch already imported."""

import atexit
import datetime
import multiprocessing
import multiprocessing.forkserver
import os
import tempfile
import time
import traceback

import torch
import torch.distributed as distributed

WAIT = 100  # seconds for a run, on a loaded machine
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "torch.distributed.tensor", "fusedlogp"])
# Who waits for it is told its seconds and its copies' (tests/slowest).
atexit.register(multiprocessing.forkserver._forkserver._stop)


def _serve(function, arguments, rank, count, folder, timeout, backend):
    torch.set_num_threads(1)
    try:
        if backend == "nccl":
            torch.cuda.set_device(rank)
        distributed.init_process_group(
            backend, init_method=f"file://{folder}/store", rank=rank, world_size=count, timeout=datetime.timedelta(seconds=timeout)
        )
        result = function(*arguments)
    except BaseException:
        result = traceback.format_exc()
    torch.save(result, os.path.join(folder, f"{rank}.part"))
    os.rename(os.path.join(folder, f"{rank}.part"), os.path.join(folder, str(rank)))
    os._exit(0)  # no farewell, which waits for ranks that are gone


def run(count, function, *arguments, timeout=WAIT, backend="gloo"):
    """What function(*arguments) returned on each rank of a group of so many; the text of its error where it raised one; None where the rank is gone."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [CONTEXT.Process(target=_serve, args=(function, arguments, rank, count, folder, timeout, backend)) for rank in range(count)]
        for process in processes:
            process.start()
        end = time.monotonic() + WAIT
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        late = [rank for rank, process in enumerate(processes) if process.is_alive()]
        for process in processes:
            process.kill()
            process.join()
        if late:
            raise TimeoutError(f"ranks {late} of {count} have not ended within {WAIT} s")
        paths = [os.path.join(folder, str(rank)) for rank in range(count)]
        return [torch.load(path, weights_only=False) if os.path.exists(path) else None for path in paths]


def error_of(function, *arguments, **named):
    """(type, text) of what it raises; None where it raises nothing."""
    try:
        function(*arguments, **named)
    except Exception as error:
        return type(error).__name__, str(error)
    return None

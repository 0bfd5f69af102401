"""Loads the library and registers its operators with torch: from C, or through ctypes."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Optional

import torch

_NAME = "libfusedlogp_torch.so"
_FIRST_FOR_C = (2, 10)  # the first torch whose stable C ABI passes lists to operators


def _path() -> Path:
    named = os.environ.get("FUSEDLOGP_TORCH_LIBRARY")
    path = Path(named) if named else Path(__file__).with_name(_NAME)
    if not path.is_file():
        raise ImportError(f"fusedlogp: {path} is not there; `pip install ./python` builds it, and FUSEDLOGP_TORCH_LIBRARY names another one")
    return path


def _offer_nvrtc() -> None:
    """Tells the library where wheels have put NVRTC: those of the extras cu12 and cu13, or the one that torch came with, are beside torch."""
    found = {str(file.parent) for file in Path(torch.__file__).parent.parent.glob("nvidia/*/lib/libnvrtc.so*")}
    if found and torch.version.cuda:
        wanted = f"cu{torch.version.cuda.split('.')[0]}"
        os.environ.setdefault("FUSEDLOGP_NVRTC_PATH", ":".join(sorted(found, key=lambda path: (wanted not in path, path))))


def _version() -> tuple[int, int]:
    major, minor = re.match(r"(\d+)\.(\d+)", torch.__version__).groups()  # type: ignore[union-attr]
    return int(major), int(minor)


def _loaded(name: str) -> Optional[str]:
    path = Path(torch.__file__).parent / "lib" / name
    return str(path) if path.is_file() else None


def _register_from_c() -> Optional[str]:
    """Registers the operators through the stable C ABI. None where that was done, else why not."""
    cpu = _loaded("libtorch_cpu.so")
    if cpu is None:
        return "libtorch_cpu.so is not where torch's libraries are"
    cuda = _loaded("libtorch_cuda.so")
    text = ctypes.create_string_buffer(256)
    if library.flp_torch_register(cpu.encode(), cuda.encode() if cuda else None, text, ctypes.c_size_t(len(text))) == 0:
        return None
    return text.value.decode()


def _register() -> tuple[str, str]:
    """Registers the operators. Returns the way that was taken, and why."""
    wanted = os.environ.get("FUSEDLOGP_BINDING", "auto")
    if wanted not in ("auto", "c", "ctypes"):
        raise ImportError(f"FUSEDLOGP_BINDING is {wanted!r}, wanted auto, c or ctypes")
    if wanted == "ctypes":
        why = "FUSEDLOGP_BINDING says so"
    elif wanted == "auto" and _version() < _FIRST_FOR_C:
        why = f"torch {torch.__version__} is older than {_FIRST_FOR_C[0]}.{_FIRST_FOR_C[1]}"
    else:
        refused = _register_from_c()
        if refused is None:
            return "c", "FUSEDLOGP_BINDING says so" if wanted == "c" else f"torch {torch.__version__} has the stable C ABI"
        if wanted == "c":
            raise ImportError(f"fusedlogp: FUSEDLOGP_BINDING is c, and {refused}")
        why = refused
    from . import _ctypes

    _ctypes.register(library)
    return "ctypes", why


def _load() -> ctypes.CDLL:
    path = _path()
    try:
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise ImportError(
            f"fusedlogp: {path} does not load ({error}); `pip install ./python` builds one for this machine, and FUSEDLOGP_TORCH_LIBRARY names another one"
        ) from error


library = _load()
library.flp_version.restype = ctypes.c_char_p
library.flp_error_message.restype = ctypes.c_char_p
library.flp_torch_schema.restype = ctypes.c_char_p
library.flp_torch_cpu_threads(torch.get_num_threads())
_offer_nvrtc()
binding, reason = _register()


def info() -> dict[str, str]:
    """What was loaded: the library's version and path, how its operators were registered with torch ("c" or "ctypes") and why, torch's version, and how
    many plans calls have made so far: one for each problem and each bucket of numbers of rows."""
    return {
        "version": library.flp_version().decode(),
        "library": str(_path()),
        "binding": binding,
        "reason": reason,
        "torch": torch.__version__,
        "plans": str(library.flp_torch_plan_count()),
    }

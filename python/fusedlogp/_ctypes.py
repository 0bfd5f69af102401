"""The operators for a torch without the stable C ABI: kernels in Python that call the library through ctypes."""

from __future__ import annotations

import ctypes
import re
from typing import Any, Callable, Optional

import torch
from torch import library as torch_library

# KEEP IN STEP: python/binding/torch_frame.h.
_NONE, _TENSOR, _NUMBER, _NUMBERS = range(4)
_DTYPES = {torch.bfloat16: 1, torch.float16: 2, torch.float32: 3, torch.int32: 4, torch.int64: 5}
_TORCH_DTYPES = {number: dtype for dtype, number in _DTYPES.items()} | {0: torch.uint8}
_INPUTS_MAX = 32
_BAD_TARGET = -8  # FLP_BAD_TARGET of fusedlogp.h


class _Value(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int),
        ("dtype", ctypes.c_int),
        ("device", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("integer", ctypes.c_int64),
        ("number", ctypes.c_double),
        ("numbers", ctypes.POINTER(ctypes.c_double)),
        ("count", ctypes.c_int64),
    ]


class _Frame(ctypes.Structure):
    pass


_Allocate = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(_Frame),
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.c_void_p),
)
_Frame._fields_ = [
    ("inputs", _Value * _INPUTS_MAX),
    ("device", ctypes.c_int32),
    ("stream", ctypes.c_void_p),
    ("caller", ctypes.c_void_p),
    ("allocate", _Allocate),
    ("status", ctypes.c_int),
    ("error", ctypes.c_char * 1024),
]

_library: Any = None
_holder: list[torch_library.Library] = []  # a Library that is freed unregisters its kernels


def _fill(value: _Value, argument: Any) -> Optional[int]:
    """Fills value in. Returns a tensor's device, -1 for the CPU; None for an argument that is no tensor."""
    if argument is None:
        value.kind = _NONE
        return None
    if isinstance(argument, torch.Tensor):
        dim = argument.dim()
        value.kind, value.dtype, value.dim = _TENSOR, _DTYPES.get(argument.dtype, 0), dim
        value.device = argument.device.index if argument.is_cuda else -1
        value.sizes = (ctypes.c_int64 * dim)(*argument.shape)
        value.strides = (ctypes.c_int64 * dim)(*argument.stride())
        value.data = argument.data_ptr()
        return value.device
    if isinstance(argument, (list, tuple)):
        value.kind, value.count = _NUMBERS, len(argument)
        value.numbers = (ctypes.c_double * len(argument))(*argument)
        return None
    value.kind, value.number = _NUMBER, float(argument)
    if not isinstance(argument, float):
        value.integer = int(argument)
    return None


def _kernel(number: int, floats: list[bool], outputs: int) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        frame = _Frame()
        frame.device = -1
        for i, argument in enumerate(arguments):
            device = _fill(frame.inputs[i], float(argument) if floats[i] and argument is not None else argument)
            if i == 0 and device is not None:
                frame.device = device
        where = torch.device("cpu") if frame.device < 0 else torch.device("cuda", frame.device)
        made: dict[int, torch.Tensor] = {}
        failed: list[BaseException] = []

        def allocate(_frame: Any, output: int, dtype: int, dim: int, sizes: Any, strides: Any, data: Any) -> int:
            try:
                tensor = torch.empty_strided(tuple(sizes[:dim]) if dim else (), tuple(strides[:dim]) if dim else (), dtype=_TORCH_DTYPES[dtype], device=where)
            except BaseException as error:  # an exception cannot pass through the C code that called this
                failed.append(error)
                return 1
            made[output] = tensor
            data[0] = tensor.data_ptr()
            return 0

        frame.allocate = _Allocate(allocate)
        if frame.device >= 0:
            frame.stream = torch.cuda.current_stream(where).cuda_stream
        if _library.flp_torch_run(number, ctypes.byref(frame)) != 0:
            if failed:
                raise failed[0]
            kind = IndexError if frame.status == _BAD_TARGET else RuntimeError
            raise kind(frame.error.decode(errors="replace"))
        if outputs == 0:
            return None
        return made[0] if outputs == 1 else tuple(made[i] for i in range(outputs))

    return run


def register(library: Any) -> None:
    """Defines the operators of the library and their kernels for the CPU and CUDA."""
    global _library
    _library = library
    target = torch_library.Library("fusedlogp", "DEF")
    _holder.append(target)
    for number in range(library.flp_torch_operator_count()):
        schema = library.flp_torch_schema(number).decode()
        target.define(schema)
        name, inputs, results = re.match(r"(\w+)\((.*)\) -> (.*)$", schema).groups()  # type: ignore[union-attr]
        floats = [re.match(r"float\??$", part.split()[0]) is not None for part in inputs.split(", ")]
        kernel = _kernel(number, floats, results.count("Tensor"))
        target.impl(name, kernel, "CPU")
        target.impl(name, kernel, "CUDA")

"""Builds the library beside the package: `pip install ./python` in a source tree, or `make wheel`.

FUSEDLOGP_TORCH_LIBRARY names a library that is built already.
"""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
NAME = "libfusedlogp_torch.so"


def library() -> Path:
    if os.environ.get("FUSEDLOGP_TORCH_LIBRARY"):
        return Path(os.environ["FUSEDLOGP_TORCH_LIBRARY"])
    source = HERE.parent
    if not (source / "configure.ac").is_file():
        raise SystemExit("fusedlogp: the package is built in its source tree (pip install ./python), or FUSEDLOGP_TORCH_LIBRARY names its library")
    if not (source / "configure").is_file():
        subprocess.run(["autoreconf", "-i"], cwd=source, check=True)
    build = source / "build-python"
    build.mkdir(exist_ok=True)
    if not (build / "config.status").is_file():
        subprocess.run(["../configure", "--disable-programs", "--disable-static"], cwd=build, check=True)
    subprocess.run(["make", f"-j{os.cpu_count() or 1}", f"python/{NAME}"], cwd=build, check=True)
    return build / "python" / NAME


def version() -> str:
    if not (HERE.parent / "configure.ac").is_file():
        raise SystemExit("fusedlogp: the package is built in its source tree (pip install ./python); an sdist of it alone cannot be")
    text = (HERE.parent / "configure.ac").read_text()
    return re.search(r"AC_INIT\(\[fusedlogp\], \[([0-9.]+)\]", text).group(1)


def platform_tag(file: Path) -> str:
    """The manylinux tag of the newest glibc whose symbols the library needs, as the library itself shows; linux_MACHINE where it needs other libraries."""
    text = subprocess.run(["objdump", "-T", str(file)], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9]+\.[0-9]+)", text)}
    newest = max(versions | {(2, 28)})
    needed = subprocess.run(["objdump", "-p", str(file)], check=True, capture_output=True, text=True).stdout
    foreign = [name for name in re.findall(r"NEEDED\s+(\S+)", needed) if not re.match(r"(lib(c|m|dl|pthread|rt|gcc_s)|ld-linux.*)\.so", name)]
    machine = platform.machine()
    if foreign:
        print(f"fusedlogp: the library needs {', '.join(foreign)}, so that the wheel is for this machine alone (linux_{machine})")
        return f"linux_{machine}"
    return f"manylinux_{newest[0]}_{newest[1]}_{machine}"


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        target = Path(self.build_lib) / "fusedlogp" / NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library(), target)


class EditableWithLibrary(editable_wheel):
    """`pip install -e`: the package stays where its sources are, and the library is copied beside them, where git ignores it."""

    def run(self):
        shutil.copy(library(), HERE / "fusedlogp" / NAME)
        super().run()


class OneWheel(bdist_wheel):
    """The wheel's tag is py3-none, because no part of the package depends on Python's ABI or on torch's."""

    def get_tag(self):
        return "py3", "none", platform_tag(library())


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": OneWheel, "editable_wheel": EditableWithLibrary})

"""Prints what is wrong with the wheel in a folder; nothing where it is right.

usage: check_wheel.py FOLDER SOURCE_TREE
"""

import base64
import csv
import email
import hashlib
import io
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIBRARY = "fusedlogp/libfusedlogp_torch.so"
# Of the C library, which every Linux has.
BASIC = re.compile(r"(lib(c|m|dl|pthread|rt|gcc_s)|ld-linux.*)\.so")


def expect(what, got, wanted):
    if got != wanted:
        print(f"{what}: got {got!r}, wanted {wanted!r}")


def objdump(option, library):
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        return subprocess.run(["objdump", option, file.name], check=True, capture_output=True, text=True).stdout


def check_contents(names, info, tree):
    package = {f"fusedlogp/{file.name}" for file in (tree / "python/fusedlogp").iterdir() if file.suffix == ".py" or file.name == "py.typed"}
    of_package = {name for name in names if not name.startswith(info)}
    expect("files of the package", sorted(of_package), sorted(package | {LIBRARY}))


def check_licences(wheel, info, tree):
    found = {Path(name).name: wheel.read(name) for name in wheel.namelist() if name.startswith(info)}
    for name in ("LICENSE", "LICENSE.GPL-3.0", "LICENSE.LGPL-3.0", "NOTICE"):
        if found.get(name) != (tree / "python" / name).read_bytes():
            print(f"{name} is not in the wheel as it is in the tree")
    expect("the package's licence", found.get("LICENSE"), (tree / "LICENSE").read_bytes())


def check_metadata(wheel, info, version):
    metadata = email.message_from_bytes(wheel.read(f"{info}METADATA"))
    expect("name", metadata["Name"], "fusedlogp")
    expect("version", metadata["Version"], version)
    expect("extras", sorted(metadata.get_all("Provides-Extra", [])), ["cu12", "cu13"])
    wanted = ("torch", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")
    required = {re.match(r"[A-Za-z0-9_.-]+", line).group() for line in metadata.get_all("Requires-Dist", [])}
    expect("what it requires", sorted(required), sorted(wanted))


def check_tag(wheel, file, info, version):
    library = wheel.read(LIBRARY)
    foreign = [name for name in re.findall(r"NEEDED\s+(\S+)", objdump("-p", library)) if not BASIC.match(name)]
    glibc = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9]+\.[0-9]+)", objdump("-T", library))}
    machine = platform.machine()
    newest = max(glibc | {(2, 28)})
    if machine == "x86_64":
        expect("newest glibc", newest, (2, 28))
    tag = f"py3-none-linux_{machine}" if foreign else f"py3-none-manylinux_{newest[0]}_{newest[1]}_{machine}"
    expect("file", file.name, f"fusedlogp-{version}-{tag}.whl")
    tags = email.message_from_bytes(wheel.read(f"{info}WHEEL")).get_all("Tag")
    expect("its own tag", tags, [tag])


def check_record(wheel, info):
    listed = {}
    for name, digest, size in csv.reader(io.StringIO(wheel.read(f"{info}RECORD").decode())):
        listed[name] = digest
        if name == f"{info}RECORD":
            continue
        data = wheel.read(name)
        expect(f"RECORD of {name}", (digest, size), ("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), str(len(data))))
    expect("RECORD's names", sorted(listed), sorted(wheel.namelist()))


def main(folder, tree):
    files = sorted(Path(folder).glob("*.whl"))
    if len(files) != 1:
        return print(f"one wheel is wanted in {folder}, got {[file.name for file in files]}")
    version = re.search(r"AC_INIT\(\[fusedlogp\], \[([0-9.]+)\]", (tree / "configure.ac").read_text()).group(1)
    info = f"fusedlogp-{version}.dist-info/"
    with zipfile.ZipFile(files[0]) as wheel:
        check_contents(wheel.namelist(), info, tree)
        check_licences(wheel, info, tree)
        check_metadata(wheel, info, version)
        check_tag(wheel, files[0], info, version)
        check_record(wheel, info)


main(sys.argv[1], Path(sys.argv[2]))

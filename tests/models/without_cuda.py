"""Lets torch from PyPI, a CUDA build, run on the CPU without the gigabytes of CUDA libraries that it is linked to.

For every library that torch needs and that is not here, an empty one is made that defines the symbols torch asks of it. None
is ever called: torch is not linked to resolve them at once, and without a GPU it takes no path that leads there. For tests only.

    python tests/models/without_cuda.py        in the environment that has torch; needs gcc and readelf
"""

import ctypes.util
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# Symbols that torch asks of these libraries carry no version.
UNVERSIONED = ("cusparseLt", "nccl", "cuFile", "cufile", "cu", "nvshmem", "nvtx")


def main():
    library = Path(importlib.util.find_spec("torch").submodule_search_locations[0]) / "lib"
    objects = sorted(path for path in library.glob("*.so*") if path.is_file() and not is_ours(path))
    needed = {name for path in objects for name in dynamic(path, "NEEDED")}
    versions = defaultdict(lambda: defaultdict(set))
    plain = set()
    for path in objects:
        collect(path, versions, plain)
    for name in sorted(needed):
        if not is_here(name, library):
            make(library / name, versions.get(name, {}), plain)
            print(f"made {name}")


def dynamic(path, tag):
    text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def is_ours(path):
    return "SCFOUNDRY_STAND_IN" in subprocess.run(["readelf", "-p", ".comment", path], capture_output=True, text=True).stdout


def is_here(name, library):
    if (library / name).exists():
        return True
    nvidia = library.parent.parent / "nvidia"
    if any(nvidia.rglob(name)):
        return True
    stem = re.sub(r"^lib|\.so.*$", "", name)
    if ctypes.util.find_library(stem):
        return True
    return name.startswith(("libc.", "libm.", "ld-linux", "libgcc_s", "libstdc++", "libpthread", "libdl", "librt"))


def collect(path, versions, plain):
    """The undefined symbols of an object: by library and version, and those without."""
    needs = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True, check=True).stdout
    library_of, library = {}, None
    for line in needs.splitlines():
        if found := re.search(r"Version: 1\s+File: (\S+)", line):
            library = found[1]
        elif found := re.search(r"Name: (\S+)\s+Flags: .*Version: (\d+)", line):
            library_of[found[1]] = library
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=True).stdout
    for line in symbols.splitlines():
        words = line.split()
        if len(words) < 8 or words[6] != "UND":
            continue
        name, _, version = words[7].partition("@")
        version = version.lstrip("@")
        if version and version in library_of:
            versions[library_of[version]][version].add(name)
        elif not version and name.startswith(UNVERSIONED):
            plain.add(name)


def make(path, versions, plain):
    named = {name for names in versions.values() for name in names}
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "stand_in.c"), Path(folder, "versions.map")
        functions = "".join(f"void {name}(void) {{}}\n" for name in sorted(named | plain) if name.isidentifier())
        source.write_text(f'__asm__(".ident \\"SCFOUNDRY_STAND_IN\\"");\n{functions}')
        nodes = "".join(f"{version} {{ global: {' '.join(f'{n};' for n in sorted(names))} }};\n" for version, names in sorted(versions.items()))
        script.write_text(nodes)
        command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}", "-o", path, source]
        if versions:
            command.append(f"-Wl,--version-script,{script}")
        subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())

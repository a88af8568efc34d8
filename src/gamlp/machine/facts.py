"""What a machine has (processors, memory, disk, vector extensions, GPUs, extras), and what memory some work needed.

The peak is the largest resident size of the process, all that it holds: the graph, hops shared with other methods,
mapped files as far as they were read. Linux sets this high-water mark back to the present size when a 5 is written to
/proc/self/clear_refs; elsewhere it cannot be set back, and is that of the whole process so far.
"""

from __future__ import annotations

import gc
import os
import platform
import shutil
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gamlp.storage.threads import available

EXTRAS = {  # extra → the package it brings, what it is for
    "pyg": ("torch_geometric", "message-passing methods, PyG's data sets"),
    "duckdb": ("duckdb", "graphs in DuckDB files"),
    "onnx": ("onnxscript", "networks as ONNX files"),
    "ray": ("ray", "propagation on a cluster"),
    "tune": ("optuna", "gamlp tune"),
    "tensorboard": ("tensorboard", "learning curves in TensorBoard"),
    "serve": ("starlette", "gamlp serve"),
    "docs": ("mkdocs-material", "building the documentation"),
}
WIDE = {"sse4.2", "avx", "avx2", "avx512f", "avx512vl", "avx512fp16", "f16c", "fma", "neon"}


def machine_facts(folder: Path) -> dict[str, Any]:
    """Return what this machine has; `folder` says which disk is meant."""
    import torch

    from gamlp.propagate.kernels import cpu_features

    huge_pages = _read("/sys/kernel/mm/transparent_hugepage/enabled").partition("[")[2].partition("]")[0]
    return {
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "threads": available(),
        "memory_bytes": memory_bytes(),
        "memory_free_bytes": free_bytes(),
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "folder": str(folder),
        "vectors": sorted(cpu_features() & WIDE),  # that the kernels are compiled for
        "huge_pages": huge_pages or None,  # always, madvise (both serve us) or never
        "gpus": [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())],
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def processor_name() -> str:
    """Return what the system calls its processor, with family and model where that says little (AMD EPYC)."""
    name = _line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    family, model = (_line("/proc/cpuinfo", word) for word in ("cpu family", "model\t"))
    return f"{name} (family {family}, model {model})" if family and model else name


def extras() -> list[dict[str, Any]]:
    """Return every optional part: its version if it is installed, else how to install it."""
    found = []
    for name, (package, purpose) in EXTRAS.items():
        try:
            installed: str | None = version(package)
        except PackageNotFoundError:
            installed = None
        command = None if installed else f"pip install 'gamlp[{name}]'"
        found.append({"extra": name, "for": purpose, "installed": installed, "install": command})
    return found


CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # versions 2, 1


def memory_bytes() -> int | None:
    """Return the machine's memory, or what a container has of it."""
    found = []
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in CGROUPS:
        with suppress(ValueError, OSError):  # there is no such file, or it says "max"
            found.append(int(path.read_text(encoding="ascii")))
    return min(found, default=None)


def free_bytes() -> int | None:
    """Return the memory that programs could still have, files in the cache included."""
    found, most = _line("/proc/meminfo", "MemAvailable:"), memory_bytes()
    return min(int(found.split()[0]) * 1024, most or sys.maxsize) if found else None


def reset_peak() -> bool:
    """Begin to count anew; tell whether the system could."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_bytes() -> int:
    """Return the largest resident size since the last reset; 0 on Windows, where Python cannot ask for it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):  # getrusage may remember the size of the process that started this one
        if sys.platform == "win32":
            return 0
        import resource

        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else size * 1024  # macOS counts bytes, others KiB


def _line(path: str, name: str) -> str:
    """Return what follows the colon in the first line of this name."""
    return next((line.partition(":")[2].strip() for line in _read(path).splitlines() if line.startswith(name)), "")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

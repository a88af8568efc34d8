"""What a machine has: processors, memory, disk, vector extensions, huge pages, GPUs, and which extras are installed."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gamlp.storage.threads import available

EXTRAS = {  # extra → the package it brings, what it is for
    "pyg": ("torch_geometric", "message-passing methods, PyG's data sets"),
    "ray": ("ray", "propagation on a cluster"),
    "tune": ("optuna", "gamlp tune"),
    "tensorboard": ("tensorboard", "learning curves in TensorBoard"),
    "docs": ("mkdocs-material", "building the documentation"),
}
WIDE = {"sse4.2", "avx", "avx2", "avx512f", "avx512vl", "avx512fp16", "f16c", "fma", "neon"}


def machine_facts(folder: Path) -> dict[str, Any]:
    """Return what this machine has; `folder` says which disk is meant."""
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "threads": available(),
        "memory_bytes": memory_bytes(),
        "memory_free_bytes": free_bytes(),
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "folder": str(folder),
        "vectors": vectors(),
        "huge_pages": huge_pages(),
        "gpus": gpus(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


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


def processor() -> str:
    """Return the processor's name."""
    text = _read("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """Return the machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def free_bytes() -> int | None:
    """Return the memory that programs could still have, files in the cache included."""
    found = [line.split() for line in _read("/proc/meminfo").splitlines() if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


def vectors() -> list[str]:
    """Return the vector extensions that the kernels are compiled for."""
    from gamlp.propagate.kernels import cpu_features

    return sorted(cpu_features() & WIDE)


def huge_pages() -> str | None:
    """Return the system's setting of transparent huge pages: always, madvise (both serve us) or never."""
    text = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    return text.partition("[")[2].partition("]")[0] or None


def gpus() -> list[str]:
    """Return the names of the GPUs that torch can use."""
    import torch

    return [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

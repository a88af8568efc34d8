"""How much memory some work needed: the largest resident size of the process since the count was last reset.

Linux keeps this high-water mark itself, and sets it back to the present size when a 5 is written to
/proc/self/clear_refs. Elsewhere it cannot be set back, and the mark is that of the whole process so far. It counts all
that the process holds: the graph, hops shared with other methods, and mapped files as far as they were read.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path


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

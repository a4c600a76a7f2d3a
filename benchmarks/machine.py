"""The machine and the settings a report must name."""

import gc
import os
import platform
from pathlib import Path


def machine() -> dict[str, str]:
    """What it ran on."""
    return {
        "Processor": _processor(),
        "Cores": str(os.cpu_count()),
        "Memory": _memory(),
        "System": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def settings() -> dict[str, str]:
    """How it ran."""
    return {
        "Time": "CPU time of the process; the least of several interleaved rounds (A B C A B C …)",
        "Threads": "1 for torch, OpenBLAS, OpenMP and XLA; JAX without asynchronous dispatch",
        "Garbage collector": "on" if gc.isenabled() else "off",
        "Allocator": "glibc as it is: no mallopt",
        "Precision": "float64 (JAX with 64 bits switched on), float32 where a table says so",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _memory() -> str:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{total / 2**30:.0f} GiB"

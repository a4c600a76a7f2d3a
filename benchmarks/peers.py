"""Which systems are installed, their versions, and their settings: one thread, 64-bit allowed."""

import importlib
import importlib.util
import platform
from importlib import metadata

NONE = "not installed"
SHOWN = ("numpy", "scipy", "torch", "jax", "jaxlib", "autograd", "rich")


def installed(package: str) -> bool:
    """Can the package be imported here?"""
    return importlib.util.find_spec(package) is not None


def prepare() -> None:
    """Load every peer that is installed and hold it to one thread."""
    if installed("torch"):
        import torch

        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
    if installed("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if installed("autograd"):
        importlib.import_module("autograd")


def versions() -> dict[str, str]:
    """Package versions, "not installed" where there is none."""
    ours = importlib.import_module("lineara").__version__ if installed("lineara") else NONE
    found = {"Python": platform.python_version(), "lineara": ours}
    return found | {package: _version(package) for package in SHOWN}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return NONE

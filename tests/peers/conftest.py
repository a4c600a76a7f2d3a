"""What torch and JAX take for a number of Python's, for each test: both keep it for the process."""

import sys

import pytest


@pytest.fixture(autouse=True)
def precision(request):
    """64 bits, or those that a module has as BITS, as the libraries come."""
    wide = getattr(request.module, "BITS", 64) == 64
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    if jax is not None:
        jax.config.update("jax_enable_x64", wide)
    if torch is not None:
        torch.set_default_dtype(torch.float64 if wide else torch.float32)

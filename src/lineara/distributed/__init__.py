"""Derivatives of sums over data, chunk by chunk: here, on this machine's cores, on a dask cluster.

    value_and_grad    of the sum of a loss over chunks
    hvp               its Hessian's product with a vector
    jacobian, vmap    rows of all chunks, one below the other
    minimizable       the sum as scipy.optimize.minimize takes it

A worker differentiates its chunk; cotangents travel as builders in the wire form, and are added by
a tree whose shape depends on the number of chunks only.  So a result is the same to the last bit
wherever, by whomever and in whatever order it was calculated.  Extra: `pip install lineara[dask]`.
"""

from lineara.distributed.sums import (
    Objective,
    Options,
    hvp,
    jacobian,
    minimizable,
    value_and_grad,
    vmap,
)

__all__ = ["Objective", "Options", "hvp", "jacobian", "minimizable", "value_and_grad", "vmap"]

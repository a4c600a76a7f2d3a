"""The public functions: compositions of a few lines over the eager engine."""

from lineara.api.gradients import grad, value_and_grad
from lineara.api.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from lineara.api.maps import jvp, linear_transpose, linearize, vjp
from lineara.api.values import ravel, stop_gradient

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "ravel",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

"""Lineara differentiates ordinary Python numeric code.

>>> import numpy as np, lineara
>>> def f(x):
...     y = np.zeros(3)
...     for i in range(3):
...         y[i] = x[0] ** i * x[1]
...     return y.sum()
>>> lineara.grad(f)(np.array([2.0, 5.0]))
array([25.,  7.])
"""

import copyreg
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import lineara.labels.frames as _frames  # declares what labelled arrays are
import lineara.numpy as numpy  # says where traced arrays have their functions
import lineara.ops as _ops  # declares the primitives
import lineara.python.ufuncs as _ufuncs  # declares NumPy's protocols on traced values
import lineara.solvers as _solvers  # declares what stands in for SciPy's solvers
from lineara.api import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    ravel,
    stop_gradient,
    value_and_grad,
    vjp,
)
from lineara.cotangent import Coo, LowRank, Rows, Zero, combine, finish, strict
from lineara.diagnose import check_grads, explain_nan
from lineara.facts.gc_pause import uncollected
from lineara.geometry import Metric, manifold
from lineara.linear_map import LinearMap
from lineara.python.function_probes import Probes
from lineara.rules import (
    checkpoint,
    custom_jvp,
    custom_linear,
    custom_vjp,
    external,
    sparse_rule,
)
from lineara.rules.probed import probed
from lineara.tape.levels import progress

if TYPE_CHECKING:
    from lineara import calculus, diagrams, policies, random
    from lineara import testing as testing  # public, but in no `import *`
    from lineara.bridges.python_and_diagrams import diagram
    from lineara.engines import engine
    from lineara.frameworks.jax_export import export_jax
    from lineara.frameworks.jax_functions import from_jax, to_jax
    from lineara.frameworks.torch_functions import from_torch, to_torch
    from lineara.rules.kinks import kinks
    from lineara.sparse import sparse_plan, sparsity
    from lineara.staging.capture import static, trace
    from lineara.staging.capture.jit import jit
    from lineara.staging.capture.report import explain
    from lineara.staging.control_flow import cond, fori_loop, function, scan, switch, while_loop
    from lineara.staging.stages import stages
    from lineara.staging.taylor import derivatives, taylor
    from lineara.staging.vmap import vmap

    explore: Callable[..., Any]  # of a package above this one, which may not be imported here

__version__ = "0.2.0"

__all__ = [
    "Coo",
    "LinearMap",
    "LowRank",
    "Metric",
    "Probes",
    "Rows",
    "Zero",
    "calculus",
    "check_grads",
    "checkpoint",
    "combine",
    "cond",
    "custom_jvp",
    "custom_linear",
    "custom_vjp",
    "derivatives",
    "diagram",
    "diagrams",
    "engine",
    "explain",
    "explain_nan",
    "explore",
    "export_jax",
    "external",
    "finish",
    "fori_loop",
    "from_jax",
    "from_torch",
    "function",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "kinks",
    "linear_transpose",
    "linearize",
    "manifold",
    "numpy",
    "policies",
    "probed",
    "progress",
    "random",
    "ravel",
    "scan",
    "sparse_plan",
    "sparse_rule",
    "sparsity",
    "stages",
    "static",
    "stop_gradient",
    "strict",
    "switch",
    "taylor",
    "to_jax",
    "to_torch",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

del _frames, _ops, _solvers, _ufuncs


_FORMS = ("cond", "fori_loop", "function", "scan", "switch", "while_loop")
_LATE = {  # the staged engine and what helps tests: loaded when it is first asked for
    **dict.fromkeys(_FORMS, "lineara.staging.control_flow"),
    **dict.fromkeys(("derivatives", "taylor"), "lineara.staging.taylor"),
    **dict.fromkeys(("sparse_plan", "sparsity"), "lineara.sparse"),
    "calculus": "lineara.calculus",
    "distributed": "lineara.distributed",
    "diagram": "lineara.bridges.python_and_diagrams",
    "diagrams": "lineara.diagrams",
    "engine": "lineara.engines",
    "explore": "lineara.explorer",
    "explain": "lineara.staging.capture.report",
    "jit": "lineara.staging.capture.jit",
    "vmap": "lineara.staging.vmap",
    "stages": "lineara.staging.stages",
    "static": "lineara.staging.capture",
    "trace": "lineara.staging.capture",
    "kinks": "lineara.rules.kinks",
    "export_jax": "lineara.frameworks.jax_export",
    **dict.fromkeys(("from_jax", "to_jax"), "lineara.frameworks.jax_functions"),
    **dict.fromkeys(("from_torch", "to_torch"), "lineara.frameworks.torch_functions"),
    "policies": "lineara.policies",
    "random": "lineara.random",
    "testing": "lineara.testing",
}


def _late(name: str) -> Any:
    """A public name of a module that `import lineara` does not load."""
    if name not in _LATE:
        raise AttributeError(f"module 'lineara' has no attribute {name!r}")
    module = uncollected(importlib.import_module)(_LATE[name])
    public = globals()[name] = getattr(module, name, module)
    return public


if not TYPE_CHECKING:  # to which a name that there is not would be Any
    __getattr__ = _late


def _as_program(L: LinearMap[Any, Any]) -> Any:
    """What a linear map pickles as."""
    from lineara.staging.linear_maps import as_program

    return as_program(L)


copyreg.pickle(LinearMap, _as_program)


def __dir__() -> list[str]:
    """Every public name, also those that are not loaded yet."""
    return sorted({*globals(), *__all__, *_LATE})

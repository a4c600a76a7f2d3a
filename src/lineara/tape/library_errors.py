"""Other libraries' errors about traced values, said as ours: what happened, and what works."""

import sys
from types import TracebackType
from typing import Any

from lineara.errors import (
    DetachError,
    LinearaError,
    describe_line,
    is_own_file,
    is_user_file,
)
from lineara.tape.swallowed_errors import met_by_traced, told

MENDS = {  # by the module that asks for a plain array
    "scipy.sparse": "of a sparse matrix A the products A @ x, x @ A, A.dot(x) and p * A have "
    "rules, and spsolve; the others have A.toarray()",
    "numpy.ma": "a masked array holds no derivatives: np.where(mask, 0.0, x) has a rule, and so "
    "have np.mean and its kin with where=~mask",
    "numpy.polynomial": "numpy.polynomial.polynomial.polyval(x, c) and its kin have rules, and "
    "numpy.polyfit",
    "pandas": "this function of pandas runs compiled code: go on in NumPy with .to_numpy()",
    "xarray": "this function of xarray needs NumPy's own arrays: go on in NumPy with .data",
    "sklearn": "an estimator of scikit-learn runs compiled code: compute from its fitted numbers "
    "(coef_, intercept_, ...) with NumPy, or give the call a derivative with lineara.external",
    "torch": "torch differentiates its own tensors only: compute with NumPy, or wrap the call with "
    "lineara.custom_vjp, whose rule may use torch.autograd.grad",
    "jax": "JAX differentiates its own arrays only: compute with NumPy, or wrap the call with "
    "lineara.custom_vjp, whose rule may use jax.vjp",
}
_MARKS = {"torch": ("Tensor", "torch", "(got Traced"), "jax": ("JAX", "jax", "jnp")}


def mend(module: str) -> str:
    """What works where code of a module wanted a plain array."""
    mends = [advice for name, advice in MENDS.items() if f"{module}.".startswith(f"{name}.")]
    return mends[0] if mends else "use NumPy functions that have a rule"


def in_place_of(error: Any) -> LinearaError | None:
    """The refusal behind an error of code that is neither the user's nor ours, if there is one."""
    cause = error
    while isinstance(cause, Exception) and not isinstance(cause, LinearaError):
        hidden = isinstance(cause, SystemError) or "element with a sequence" in str(cause)
        if not hidden and not _is_foreign(cause):
            break
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, LinearaError):
        return None if cause is error else cause
    ours = _told(error) if isinstance(error, TypeError) and "Traced" in str(error) else None
    return ours or (told(error, line_of(error)) if met_by_traced(error) else None)


def _is_foreign(error: Exception) -> bool:
    """Whether an error was raised by another library's code."""
    file = _last(error.__traceback__).tb_frame.f_code.co_filename if error.__traceback__ else ""
    return bool(file) and not is_user_file(file) and not is_own_file(file)


def _last(trace: Any) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def line_of(error: BaseException) -> str:
    """The user's line that an error came through last."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_user_file(code.co_filename):
            line = describe_line(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return line


def _told(error: TypeError) -> LinearaError | None:
    """A TypeError of torch or JAX about one of our classes, with what works."""
    line = line_of(error)
    words = f"{error} {line.partition(': ')[2]}"
    for name, marks in _MARKS.items():
        if name in sys.modules and any(mark in words for mark in marks):
            text = str(error).splitlines()[0].rstrip(".")
            return DetachError(f"{name} was given a traced value: {text}; {MENDS[name]}", line=line)
    return None

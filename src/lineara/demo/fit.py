"""The fit: maximum likelihood over the logarithms of the parameters, by BFGS from several starts.

The logarithms keep every parameter positive.  Lineara is used in three lines: the vector of a
dataclass (`ravel`), the gradient for SciPy as machine code (`jit(value_and_grad(f))`), and the
curvature (`hessian`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.optimize import minimize

import lineara
from lineara.demo.model import Parameters, negative_log_likelihood

# A guess made in advance: the centres of the priors in [Carpenter 2018]; the first pelts.
NAIVE = Parameters(
    alpha=1.0, beta=0.05, gamma=1.0, delta=0.05, hare=30.0, lynx=4.0, hare_noise=1.0, lynx_noise=1.0
)

# The means of the posterior in [Carpenter 2018], from the same pelts and nearly the same model.
PUBLISHED = {"alpha": 0.55, "beta": 0.028, "gamma": 0.80, "delta": 0.024, "hare": 34.0, "lynx": 6.0}

COMPILES = find_spec("llvmlite") is not None
"""Whether there is a compiler; without one a program is slower than the Python that it is of."""

Objective = Callable[[np.ndarray], Any]


def objective(years: np.ndarray, pelts: np.ndarray) -> tuple[Objective, np.ndarray]:
    """The function to minimise, of the logarithms of the parameters, (8,), and its naive start."""
    naive, unravel = lineara.ravel(NAIVE)

    def f(log_parameters: np.ndarray) -> Any:
        return negative_log_likelihood(unravel(np.exp(log_parameters)), years, pelts)

    return f, np.log(naive)


def starts(naive: np.ndarray, count: int, seed: int) -> list[np.ndarray]:
    """The naive start, then copies with every parameter off by a random factor, about 1.6."""
    random = np.random.default_rng(seed)
    return [naive] + [naive + random.normal(0.0, 0.5, len(naive)) for _ in range(count - 1)]


@dataclass(frozen=True)
class Descent:
    """The state of one BFGS run."""

    x: np.ndarray
    value: float
    gradient_norm: float
    iterations: int


def gradient_of(f: Objective) -> Objective:
    """The value and the gradient; it becomes machine code as soon as that pays, where it can."""
    gradient = lineara.value_and_grad(f)
    return lineara.jit(gradient) if COMPILES else gradient


def descend(
    value_and_gradient: Objective, start: np.ndarray, tell: Callable[[Descent], None]
) -> Descent:
    """Run BFGS from `start`; `tell` is called with the state after every iteration."""
    latest = np.full_like(start, np.nan)
    iterations = 0

    def finite(x: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient; infinity where a long first step made the model overflow."""
        nonlocal latest
        with np.errstate(all="ignore"):
            value, latest = value_and_gradient(x)
        if not np.isfinite(value) or not np.isfinite(latest).all():
            return np.inf, np.zeros_like(x)
        return value, latest

    def after_iteration(intermediate_result: Any) -> None:
        nonlocal iterations
        iterations += 1
        now = intermediate_result
        tell(Descent(now.x, float(now.fun), float(np.linalg.norm(latest)), iterations))

    end = minimize(finite, start, jac=True, method="BFGS", callback=after_iteration)
    return Descent(end.x, float(end.fun), float(np.linalg.norm(end.jac)), end.nit)


def is_bad(descent: Descent, best: Descent) -> bool:
    """Whether a descent ended elsewhere than the best one did."""
    return not descent.value < best.value + 0.01


def covariance(f: Objective, x: np.ndarray) -> np.ndarray:
    """The Laplace approximation: the inverse of the curvature of -log likelihood, (8, 8)."""
    return np.linalg.inv(lineara.hessian(f)(x))


def standard_errors(x: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The standard errors of the parameters, by the delta method:  d exp(x) = exp(x) dx."""
    return np.exp(x) * np.sqrt(np.diag(covariance))


def draws(x: np.ndarray, covariance: np.ndarray, count: int, seed: int) -> list[Parameters]:
    """Samples of the parameters from the Laplace approximation."""
    random = np.random.default_rng(seed)
    samples = random.multivariate_normal(x, covariance, size=count, method="cholesky")
    return [Parameters(*np.exp(sample)) for sample in samples]

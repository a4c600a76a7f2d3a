"""Operands of several dtypes: each tangent and cotangent has the dtype of what it belongs to."""

import itertools

import numpy as np
import pytest

import lineara

a = np.array([0.31, 0.72, 0.55])
b = np.array([0.83, 0.24, 0.61])
EXPRESSIONS = [
    "x + b", "b - x", "x * b", "b / x", "x ** b", "np.maximum(x, b)", "np.hypot(x, b)",
    "np.arctan2(x, b)", "np.where(x > 0.5, x, b)", "np.concatenate([x, b])", "np.stack([x, b])",
    "x @ b", "np.einsum('i,j->ij', x, b)", "np.cumsum(x + b)", "np.logaddexp(x, b)",
    "np.linalg.solve(np.diag(b), x)", "np.clip(x, 0.4, b)", "np.outer(x, b)", "x[[0, 0, 2]] + b",
]  # fmt: skip
REAL = ("maximum", "hypot", "arctan2", "> 0.5", "logaddexp", "clip")
PAIRS = list(itertools.permutations([np.float32, np.float64, np.complex64, np.complex128], 2))


def of(dtype, numbers):
    turned = numbers * (1 + 0.2j) if np.dtype(dtype).kind == "c" else numbers
    return turned.astype(dtype)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_gradient_has_its_arguments_dtype_and_the_eager_value(expression):
    for one, other in PAIRS:
        complex_ = np.dtype(one).kind == "c" or np.dtype(other).kind == "c"
        if complex_ and any(word in expression for word in REAL):
            continue
        x, fixed = of(one, a), of(other, b)
        f = eval(f"lambda x: np.sum(np.abs({expression}) ** 2)", {"np": np, "b": fixed})
        value, gradient = lineara.stages(f, x).value_and_grad(x)
        wanted, expected = lineara.value_and_grad(f)(x)
        tolerance = 1e-5 if np.float32 in (one, other) or np.complex64 in (one, other) else 1e-12
        assert np.allclose(value, wanted, tolerance)
        assert gradient.dtype == expected.dtype == x.dtype
        assert np.allclose(gradient, expected, tolerance, tolerance)

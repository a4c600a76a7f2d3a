"""Least squares: a polynomial of x's coefficients against the sign, at n places."""

import numpy as np

import lineara

SIZES = {"small": (128, 64), "medium": (128, 1024), "large": (128, 16392)}


def data(size):
    m, n = size
    return (np.random.default_rng(1).uniform(size=m), n)


def value(x, n):
    y = 0.0
    for i in range(n):
        t = -1 + 2 * i / (n - 1)
        residual, power = np.sign(t), 1.0
        for j in range(x.shape[0]):
            residual = residual - x[j] * power
            power = power * t
        y = y + 0.5 * residual * residual
    return y


gradient = lineara.grad(value)


def powers(np, m, n):
    t = np.linspace(-1, 1, n)
    return np.sign(t), t[:, None] ** np.arange(m)


def by_jax(x, n):
    import jax
    import jax.numpy as jnp

    def f(x):
        s, p = powers(jnp, x.shape[0], n)
        return 0.5 * jnp.sum((s - p @ x) ** 2)

    return jax.jit(f), jax.jit(jax.grad(f)), (jnp.asarray(x),)


def by_autograd(x, n):
    import autograd
    import autograd.numpy as anp

    def f(x):
        s, p = powers(anp, x.shape[0], n)
        return 0.5 * anp.sum((s - anp.dot(p, x)) ** 2)

    return f, autograd.grad(f), (x,)


def by_cpp(x, n):
    return "llsq", (x, x.size, n), [x.shape]

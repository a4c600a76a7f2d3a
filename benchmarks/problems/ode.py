"""The last component of a chain of equations after s steps of Runge-Kutta."""

import numpy as np

import lineara

SIZES = {"tiny": (10, 100), "small": (1_000, 10), "medium": (10_000, 100), "large": (100_000, 10)}


def data(size):
    n, s = size
    return (np.random.default_rng(3).uniform(size=n), s)


def slope(x, y):
    return np.concatenate((x[:1], x[1:] * y[:-1]))


def value(x, s):
    y, h = np.zeros(x.shape[0]), 2.0 / s
    for _ in range(s):
        k1 = slope(x, y)
        k2 = slope(x, y + h / 2 * k1)
        k3 = slope(x, y + h / 2 * k2)
        k4 = slope(x, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[-1]


gradient = lineara.grad(value)


def by_jax(x, s):
    import jax
    import jax.numpy as jnp

    def slope(x, y):
        return jnp.concatenate((x[:1], x[1:] * y[:-1]))

    def f(x):
        h = 2.0 / s

        def step(y, _):
            k1 = slope(x, y)
            k2 = slope(x, y + h / 2 * k1)
            k3 = slope(x, y + h / 2 * k2)
            k4 = slope(x, y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return jax.lax.scan(step, jnp.zeros(x.shape[0]), None, length=s)[0][-1]

    return jax.jit(f), jax.jit(jax.grad(f)), (jnp.asarray(x),)


def by_autograd(x, s):
    import autograd
    import autograd.numpy as anp

    def slope(x, y):
        return anp.concatenate((x[:1], x[1:] * y[:-1]))

    def f(x):
        y, h = anp.zeros(x.shape[0]), 2.0 / s
        for _ in range(s):
            k1 = slope(x, y)
            k2 = slope(x, y + h / 2 * k1)
            k3 = slope(x, y + h / 2 * k2)
            k4 = slope(x, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y[-1]

    return f, autograd.grad(f), (x,)


def by_cpp(x, s):
    return "ode", (x, x.size, s), [x.shape]

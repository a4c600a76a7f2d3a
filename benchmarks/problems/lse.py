"""log Σ exp, written out."""

import numpy as np

import lineara

SIZES = {"small": (2_500,), "medium": (80_000,), "large": (640_000,)}


def data(size):
    return (np.random.default_rng(2).normal(size=size[0]),)


def value(x):
    a = np.max(x)
    return a + np.log(np.sum(np.exp(x - a)))


gradient = lineara.grad(value)


def by_jax(x):
    import jax
    import jax.numpy as jnp

    def f(x):
        a = jnp.max(x)
        return a + jnp.log(jnp.sum(jnp.exp(x - a)))

    return jax.jit(f), jax.jit(jax.grad(f)), (jnp.asarray(x),)


def by_torch(x):
    import torch

    def f(x):
        a = torch.max(x)
        return a + torch.log(torch.sum(torch.exp(x - a)))

    return f, [0], (torch.tensor(x),)


def by_autograd(x):
    import autograd
    import autograd.numpy as anp

    def f(x):
        a = anp.max(x)
        return a + anp.log(anp.sum(anp.exp(x - a)))

    return f, autograd.grad(f), (x,)


def by_cpp(x):
    return "lse", (x, x.size), [x.shape]

"""The log posterior of a Gaussian mixture."""

import math

import numpy as np

import lineara

SIZES = {"small": (2, 5), "medium": (10, 25), "large": (32, 25), "largest": (64, 100)}
N, GAMMA, M = 1_000, 1.0, 0


def data(size):
    D, K = size
    rng = np.random.default_rng(4)
    alpha, q = rng.normal(size=K), rng.normal(size=(K, D))
    mu, low = rng.uniform(size=(K, D)), rng.normal(size=(K, D * (D - 1) // 2))
    return alpha, mu, q, low, rng.normal(size=(N, D))


def constants(n, D, K):
    """What depends on no variable."""
    a = 0.5 * (D + M + 1)
    log_gamma = D * (D - 1) / 4 * math.log(math.pi)
    log_gamma += sum([math.lgamma(a + (1 - j) / 2) for j in range(1, D + 1)])
    prior = K * (2 * a * D * math.log(GAMMA / math.sqrt(2)) - log_gamma)
    return prior - n * D / 2 * math.log(2 * math.pi)


def value(alpha, mu, q, low, x):
    (K, D), n = mu.shape, x.shape[0]
    columns, rows = np.triu_indices(D, 1)  # below the diagonal, column by column
    Q = np.zeros((K, D, D))
    Q[:, np.arange(D), np.arange(D)] = np.exp(q)
    Q[:, rows, columns] = low
    y = np.einsum("krc,nkc->nkr", Q, x[:, None, :] - mu)
    beta = alpha - 0.5 * np.sum(y * y, axis=2) + np.sum(q, axis=1)
    top, most = np.max(beta, axis=1), np.max(alpha)
    inner = np.sum(top + np.log(np.sum(np.exp(beta - top[:, None]), axis=1)))
    outer = most + np.log(np.sum(np.exp(alpha - most)))
    wishart = GAMMA**2 / 2 * (np.sum(np.exp(2 * q)) + np.sum(low * low)) - M * np.sum(q)
    return constants(n, D, K) - n * outer + inner - wishart


gradient = lineara.grad(value, argnums=(0, 1, 2, 3))


def posterior(np, Q, alpha, mu, q, low, x):
    """The same of other libraries, from their lower triangles on."""
    (K, D), n = mu.shape, x.shape[0]
    y = np.einsum("krc,nkc->nkr", Q, x[:, None, :] - mu)
    beta = alpha - 0.5 * np.sum(y * y, 2) + np.sum(q, 1)
    top = beta.max(1) if not hasattr(np, "amax") else np.amax(beta, 1)
    inner = np.sum(top + np.log(np.sum(np.exp(beta - top[:, None]), 1)))
    most = alpha.max() if not hasattr(np, "amax") else np.max(alpha)
    outer = most + np.log(np.sum(np.exp(alpha - most)))
    wishart = GAMMA**2 / 2 * (np.sum(np.exp(2 * q)) + np.sum(low * low)) - M * np.sum(q)
    return constants(n, D, K) - n * outer + inner - wishart


def by_jax(alpha, mu, q, low, x):
    import jax
    import jax.numpy as jnp

    (K, D), (columns, rows) = mu.shape, np.triu_indices(mu.shape[1], 1)

    def f(alpha, mu, q, low, x):
        Q = jnp.zeros((K, D, D)).at[:, np.arange(D), np.arange(D)].set(jnp.exp(q))
        return posterior(jnp, Q.at[:, rows, columns].set(low), alpha, mu, q, low, x)

    given = tuple([jnp.asarray(v) for v in (alpha, mu, q, low, x)])
    return jax.jit(f), jax.jit(jax.grad(f, (0, 1, 2, 3))), given


def by_torch(alpha, mu, q, low, x):
    import torch

    (K, D), (columns, rows) = mu.shape, np.triu_indices(mu.shape[1], 1)

    def f(alpha, mu, q, low, x):
        Q = torch.zeros((K, D, D), dtype=torch.float64)
        Q[:, np.arange(D), np.arange(D)] = torch.exp(q)
        Q[:, rows, columns] = low
        return posterior(torch, Q, alpha, mu, q, low, x)

    return f, [0, 1, 2, 3], tuple([torch.tensor(v) for v in (alpha, mu, q, low, x)])


def by_autograd(alpha, mu, q, low, x):
    import autograd
    import autograd.numpy as anp

    (K, D), (columns, rows) = mu.shape, np.triu_indices(mu.shape[1], 1)
    diagonal, below = np.zeros((D, D * D)), np.zeros((rows.size, D * D))
    diagonal[np.arange(D), np.arange(D) * (D + 1)] = 1
    below[np.arange(rows.size), rows * D + columns] = 1

    def f(alpha, mu, q, low):
        Q = anp.dot(anp.exp(q), diagonal) + anp.dot(low, below)
        return posterior(anp, Q.reshape(K, D, D), alpha, mu, q, low, x)

    g = autograd.grad(lambda p: f(*p))
    return f, lambda *p: g(p), (alpha, mu, q, low)


def by_cpp(alpha, mu, q, low, x):
    K, D = mu.shape
    c = constants(x.shape[0], D, K)
    return (
        "gmm", (alpha, mu, q, low, x, x.shape[0], D, K, GAMMA, float(M), c),
        [v.shape for v in (alpha, mu, q, low)],
    )  # fmt: skip

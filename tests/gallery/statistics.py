"""Statistics: likelihoods, regressions, resampling weights, mixtures."""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gallery.snippets import at, some

X = some(20, 3, seed=1, low=-1, high=1)
y = X @ np.array([0.5, -1.0, 2.0]) + 0.1 * some(20, seed=2, low=-1, high=1)
labels = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(float)
counts = np.array([3, 0, 2, 5, 1, 4, 2])


@at(np.array([0.1, 0.2, -0.3]), 0.4)
def linear_regression(beta, sigma):
    resid = y - X @ beta
    n = len(y)
    return 0.5 * np.sum(resid**2) / sigma**2 + n * np.log(sigma)


@at(np.array([0.1, 0.2, -0.3]))
def ridge(beta):
    return np.mean((X @ beta - y) ** 2) + 0.1 * np.sum(beta**2)


@at(np.array([0.1, 0.2, -0.3]))
def logistic_regression(w):
    p = 1 / (1 + np.exp(-(X @ w)))
    return -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p))


@at(some(3, 4, seed=3))
def softmax_regression(W):
    scores = X @ W
    scores = scores - scores.max(axis=1, keepdims=True)
    logp = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    classes = np.arange(len(X)) % 4
    return -logp[np.arange(len(X)), classes].mean()


@at(0.4)
def poisson_loglik(lam):
    total = 0.0
    for k in counts:
        total += k * math.log(lam) - lam - math.lgamma(k + 1)
    return total


@at(
    {
        "weights": np.array([0.3, 0.7]),
        "means": np.array([-1.0, 1.2]),
        "scales": np.array([0.5, 0.8]),
    }
)
def gaussian_mixture(p):
    w = p["weights"] / p["weights"].sum()
    z = (X[:, 0][:, None] - p["means"]) / p["scales"]
    dens = w * np.exp(-0.5 * z**2) / (p["scales"] * np.sqrt(2 * np.pi))
    return np.sum(np.log(dens.sum(axis=1)))


@at(some(6, seed=4))
def sample_skewness(x):
    m = x.mean()
    return ((x - m) ** 3).mean() / ((x - m) ** 2).mean() ** 1.5


@at(some(8, seed=5), some(8, seed=6))
def pearson(a, b):
    a = a - np.mean(a)
    b = b - np.mean(b)
    return (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())


@at(some(5, 3, seed=7))
def log_det_of_covariance(data):
    c = np.cov(data, rowvar=False) + 0.1 * np.eye(3)
    sign, logdet = np.linalg.slogdet(c)
    return logdet


@at(np.array([0.2, -0.1]), np.array([[1.2, 0.3], [0.3, 0.8]]))
def multivariate_normal(mu, cov):
    d = X[:, :2] - mu
    L = np.linalg.cholesky(cov)
    z = np.linalg.solve(L, d.T)
    return -0.5 * np.sum(z**2) - len(X) * np.sum(np.log(np.diag(L)))


@dataclass
class Beta:
    a: float
    b: float


@at(Beta(2.5, 1.5))
def beta_likelihood(prior):
    data = [0.2, 0.5, 0.7, 0.9]
    norm = math.lgamma(prior.a + prior.b) - math.lgamma(prior.a) - math.lgamma(prior.b)
    return sum(norm + (prior.a - 1) * math.log(d) + (prior.b - 1) * math.log(1 - d) for d in data)


@at(some(10, seed=8), 0.3)
def kernel_density(points, h):
    grid = np.linspace(0, 2, 7)
    k = np.exp(-0.5 * ((grid[:, None] - points[None, :]) / h) ** 2)
    return np.log(k.mean(axis=1) / h).sum()


@at(some(4, seed=9))
def group_means(effects):
    groups = [0, 1, 1, 2, 3, 0, 2, 2]
    values = [1.0, 0.5, 0.7, 2.0, 1.1, 0.9, 1.8, 2.2]
    by_group = defaultdict(list)
    for g, v in zip(groups, values):
        by_group[g].append((v - effects[g]) ** 2)
    return sum(sum(v) / len(v) for v in by_group.values())


@at(some(9, seed=10))
def trimmed_mean_of_squares(x):
    s = np.sort(x)
    return np.mean(s[2:-2] ** 2)


@at(np.array([0.4, 0.9]))
def huber_regression(w):
    r = X[:, :2] @ w - y
    small = np.abs(r) < 0.6
    return np.sum(np.where(small, 0.5 * r**2, 0.6 * np.abs(r) - 0.18))


@at(np.array([0.6, 0.3]), 0.2)
def autoregression(phi, s):
    series = np.cumsum(y)
    ll = 0.0
    for t in range(2, len(series)):
        pred = phi[0] * series[t - 1] + phi[1] * series[t - 2]
        ll -= 0.5 * ((series[t] - pred) / s) ** 2 + np.log(s)
    return ll

"""Finance: options, bonds, portfolios, trees."""

import math
from functools import cache, reduce

import numpy as np

from gallery.snippets import at, some


def norm_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@at(100.0, 95.0, 0.2, 0.03, 0.8)
def black_scholes_call(S, K, sigma, r, T):
    d1 = (math.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    return S * norm_cdf(d1) - K * math.exp(-r * T) * norm_cdf(d2)


@at(1.0, 0.25, 0.02)
def binomial_tree(S, sigma, r):
    n, T, K = 12, 1.0, 1.05
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(r * dt) - 1 / u) / (u - 1 / u)
    prices = S * u ** np.arange(-n, n + 1, 2)
    values = np.maximum(K - prices, 0)
    for i in range(n):
        values = np.exp(-r * dt) * (p * values[1:] + (1 - p) * values[:-1])
    return values[0]


@at(0.04)
def bond_price(rate):
    coupons = [5.0] * 9 + [105.0]
    return sum(c / (1 + rate) ** t for t, c in enumerate(coupons, start=1))


@at(np.array([0.02, 0.025, 0.03, 0.032]))
def swap_from_a_curve(zero):
    t = np.arange(1, 5)
    df = np.exp(-zero * t)
    fixed = 0.03 * df.sum()
    floating = 1 - df[-1]
    return (floating - fixed) ** 2


@at(some(4, seed=1))
def markowitz(w):
    mu = np.array([0.05, 0.07, 0.03, 0.1])
    A = some(4, 4, seed=2)
    cov = A @ A.T / 10 + 0.01 * np.eye(4)
    w = w / np.sum(w)
    return w @ mu - 2 * (w @ cov @ w)


@at(some(20, seed=3, low=-0.05, high=0.06))
def sharpe_ratio(returns):
    return returns.mean() / returns.std(ddof=1) * math.sqrt(252)


@at(some(8, seed=4, low=0.01, high=0.2))
def geometric_growth(growth):
    return reduce(lambda wealth, g: wealth * (1 + g), growth, 1.0)


@at(0.3, 0.1, 0.02)
def garch(alpha, beta, omega):
    rs = some(15, seed=5, low=-1, high=1)
    var = 0.3
    ll = 0.0
    for r in rs:
        var = omega + alpha * r**2 + beta * var
        ll += -0.5 * (np.log(var) + r**2 / var)
    return ll


@at(0.05, 0.3, 0.2)
def vasicek_by_simulation(a, b, sigma):
    rng = np.random.default_rng(7)
    rates = np.full(16, 0.03)
    integral = np.zeros(16)
    for _ in range(12):
        rates = rates + a * (b - rates) / 12 + sigma * math.sqrt(1 / 12) * rng.normal(size=16)
        integral = integral + rates / 12
    return np.exp(-integral).mean()


@at(0.3)
def implied_volatility_by_newton(target):
    sigma = 0.2 + 0 * target
    for _ in range(20):
        price = 0.4 * sigma + 0.05 * sigma**2
        vega = 0.4 + 0.1 * sigma
        sigma = sigma - (price - target) / vega
    return sigma


@at(np.array([10.0, 20.0, 30.0]), 0.08)
def net_present_value(cash, rate):
    npv = -40.0
    for year, c in enumerate(cash):
        npv += c / (1 + rate) ** (year + 1)
    return npv


@at(some(30, seed=6), kinked=True)
def expected_shortfall(losses):
    worst = np.sort(losses)[-5:]
    return worst.mean()


@at(0.1, 0.9)
def recursive_annuity(rate, growth):
    @cache
    def value(t):
        if t == 0:
            return 1.0
        return value(t - 1) * growth / (1 + rate) + 1.0

    return value(8)


@at({"spot": 1.2, "vols": [0.1, 0.2, 0.15]})
def basket(market):
    total = 0.0
    for i, v in enumerate(market["vols"]):
        total += market["spot"] * v * math.exp(-v * i)
    return math.log1p(total)


@at(100.0, 0.2)
def asian_option(S0, sigma):
    z = np.random.default_rng(3).standard_normal((50, 6))
    steps = np.exp(-0.5 * sigma**2 / 6 + sigma * np.sqrt(1 / 6) * z)
    paths = S0 * np.cumprod(steps, axis=1)
    return np.logaddexp(0, paths.mean(axis=1) - 100).mean()


@at(some(5, seed=40), kinked=True)
def knapsack(values):
    weights, capacity = [1, 3, 2, 4, 1], 7
    best = [[0.0] * (capacity + 1) for _ in range(len(values) + 1)]
    for i in range(1, len(values) + 1):
        for c in range(capacity + 1):
            best[i][c] = best[i - 1][c]
            if weights[i - 1] <= c:
                best[i][c] = max(best[i][c], best[i - 1][c - weights[i - 1]] + values[i - 1])
    return best[-1][capacity]


@at(0.6, some(7, seed=41))
def pascals_triangle_of_chances(up, payoff):
    rows = [[1.0]]
    for i in range(1, len(payoff)):
        row = [rows[i - 1][0] * (1 - up)]
        for j in range(1, i):
            row.append(rows[i - 1][j] * (1 - up) + rows[i - 1][j - 1] * up)
        row.append(rows[i - 1][-1] * up)
        rows.append(row)
    total = 0.0
    for chance, pays in zip(rows[-1], payoff, strict=True):
        total += chance * pays
    return total


@at(2.0, 1.7)
def yield_to_maturity_with_its_steps(price, coupon):
    rate, rates = 0.1, [0.1]
    while abs(sum([coupon / (1 + rate) ** k for k in range(1, 4)]) - price) > 1e-12:
        value = sum([coupon / (1 + rate) ** k for k in range(1, 4)])
        slope = sum([-k * coupon / (1 + rate) ** (k + 1) for k in range(1, 4)])
        rate = rate - (value - price) / slope
        rates.append(rate)
    return rates[-1] + 0.1 * rates[1] * len(rates)

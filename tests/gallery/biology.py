"""Biology: populations, epidemics, kinetics, sequences, neurons."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from gallery.snippets import at, some


@at(0.3, 2.0)
def logistic_growth(r, K):
    n = 0.1
    for _ in range(30):
        n += 0.2 * r * n * (1 - n / K)
    return n


@dataclass
class Epidemic:
    beta: float
    gamma: float
    start: float


@at(Epidemic(0.6, 0.2, 0.01))
def sir_model(p):
    s, i, r = 1 - p.start, p.start, 0.0
    peak = 0.0
    for _ in range(60):
        new, gone = p.beta * s * i, p.gamma * i
        s, i, r = s - new, i + new - gone, r + gone
        peak = max(peak, i)
    return peak + 0.5 * r


@at(1.0, 0.1, 0.075, 1.5)
def predator_prey(alpha, beta, delta, gamma):
    x = np.array([1.0, 0.5])

    def rate(x):
        return np.array([alpha * x[0] - beta * x[0] * x[1], delta * x[0] * x[1] - gamma * x[1]])

    for _ in range(20):
        k1 = rate(x)
        k2 = rate(x + 0.05 * k1)
        x = x + 0.1 * k2
    return x[0] * x[1]


@at(1.2, 0.4)
def michaelis_menten(vmax, km):
    s = [0.1, 0.3, 0.6, 1.0, 2.0]
    v = [0.25, 0.5, 0.7, 0.85, 1.0]
    return sum((vmax * a / (km + a) - b) ** 2 for a, b in zip(s, v))


@at(0.8, 2.5)
def hill_curve(k, n):
    dose = np.logspace(-1, 1, 8)
    return (dose**n / (k**n + dose**n)).mean()


@at(0.1, 0.5)
def fitzhugh_nagumo(current, a):
    v, w = -1.0, 1.0
    trace = []
    for _ in range(40):
        v, w = v + 0.1 * (v - v**3 / 3 - w + current), w + 0.1 * 0.08 * (v + a - 0.8 * w)
        trace.append(v)
    return np.mean(np.array(trace) ** 2)


@at(some(4, 4, seed=1))
def felsenstein_pruning(raw):
    Q = raw - np.diag(np.diag(raw))
    Q = Q - np.diag(Q.sum(axis=1))
    P = np.eye(4)
    term = np.eye(4)
    for k in range(1, 12):
        term = term @ Q * 0.1 / k
        P = P + term
    leaf = {"left": P[:, 0], "right": P[:, 2]}
    return np.log(0.25 * np.sum(leaf["left"] * leaf["right"]))


@at(1.0, -0.5, -0.3)
def needleman_wunsch(match, mismatch, gap):
    a, b = "GATTACA", "GCATGCU"
    score = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, len(a) + 1):
        score[i, 0] = i * gap
    for j in range(1, len(b) + 1):
        score[0, j] = j * gap
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            diagonal = score[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            score[i, j] = max(diagonal, score[i - 1, j] + gap, score[i, j - 1] + gap)
    return score[-1, -1] ** 2


@at(some(3, 3, seed=2))
def leslie_matrix(L):
    population = np.array([10.0, 5.0, 2.0])
    for _ in range(6):
        population = L @ population / 2
    return np.log(population.sum())


@at(np.array([0.9, 0.3, 0.1]))
def codon_frequencies(f):
    f = f / f.sum()
    expected = np.array([0.5, 0.3, 0.2])
    return np.sum(expected * np.log(expected / f))


@dataclass
class Neuron:
    g_leak: float = 0.3
    e_leak: float = -54.4
    capacity: float = 1.0


@at(Neuron())
def leaky_integration(cell):
    v = -65.0
    for t in range(25):
        i = 10.0 if t > 5 else 0.0
        v += 0.1 * (-cell.g_leak * (v - cell.e_leak) + i) / cell.capacity
    return v / 50


@at(0.4, 0.7)
def gating_variable(rate_up, rate_down):
    m = 0.05
    for v in (-60.0, -40.0, -20.0, 0.0):
        alpha = rate_up * (v + 45) / (1 - math.exp(-(v + 45) / 10))
        beta = rate_down * math.exp(-(v + 70) / 18)
        m = m + 0.05 * (alpha * (1 - m) - beta * m)
    return m


@at(some(5, seed=3))
def shannon_diversity(abundance):
    p = abundance / np.sum(abundance)
    return -np.sum(p * np.log(p))


@at(0.05, 0.5)
def coalescent_likelihood(theta, growth):
    times = [0.1, 0.25, 0.7]
    ll, lineages, before = 0.0, 4, 0.0
    for t in times:
        pairs = lineages * (lineages - 1) / 2
        ll -= pairs * (math.exp(growth * t) - math.exp(growth * before)) / (theta * growth * 10)
        ll += math.log(pairs / (theta * 10)) + growth * t
        lineages, before = lineages - 1, t
    return ll


@at({"ka": 1.1, "ke": 0.3, "volume": 5.0})
def one_compartment_pharmacokinetics(p):
    t = np.array([0.5, 1.0, 2.0, 4.0])
    factor = p["ka"] / (p["volume"] * (p["ka"] - p["ke"]))
    conc = 100 * factor * (np.exp(-p["ke"] * t) - np.exp(-p["ka"] * t))
    auc = sum((a + b) / 2 * h for a, b, h in zip(conc, conc[1:], np.diff(t)))
    return auc + conc.max()


@at(Neuron(0.2, -50.0, 1.5))
def parameters_as_a_dict(cell):
    values = asdict(cell)
    return sum(v * v for v in values.values()) / 1000

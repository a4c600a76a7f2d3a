"""Lynx and hare: the predator-prey model and its likelihood, in plain Python.

    hare' = (alpha - beta lynx) hare          hares are born, and eaten
    lynx' = (delta hare - gamma) lynx         lynx live on hares, and starve

The pelts that the Hudson's Bay Company took in a year stand for the populations, up to log-normal
noise [Howard 2009; Carpenter 2018].  Nothing here knows of derivatives: it is ordinary NumPy.
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np


@dataclass
class Parameters:
    """The eight positive numbers to find; rates are per year, populations in thousands of pelts."""

    alpha: float  # births of hares
    beta: float  # hares lost to one unit of lynx
    gamma: float  # deaths of lynx
    delta: float  # lynx won from one unit of hares
    hare: float  # hares in the first year
    lynx: float  # lynx in the first year
    hare_noise: float  # standard deviation of log(pelts)
    lynx_noise: float


def hudson_bay() -> tuple[np.ndarray, np.ndarray]:
    """The years, (21,), and the pelts of hare and lynx in them, (21, 2), in thousands."""
    with (files("lineara.demo") / "hudson-bay.csv").open(encoding="utf-8") as lines:
        year, lynx, hare = np.loadtxt(lines, delimiter=",", skiprows=2, unpack=True)
    return year, np.column_stack([hare, lynx])


def growth(p: Parameters, population: np.ndarray) -> np.ndarray:
    """The derivative of (hare, lynx) with respect to time."""
    hare, lynx = population
    return np.array([(p.alpha - p.beta * lynx) * hare, (p.delta * hare - p.gamma) * lynx])


def simulate(p: Parameters, times: np.ndarray, steps: int = 5) -> np.ndarray:
    """The populations at `times`, (n, 2), by `steps` Runge-Kutta steps from time to time."""
    y = np.zeros((len(times), 2))
    y[0] = p.hare, p.lynx
    for i in range(len(times) - 1):
        h = (times[i + 1] - times[i]) / steps
        now = y[i]
        for _ in range(steps):
            k1 = growth(p, now)
            k2 = growth(p, now + h / 2 * k1)
            k3 = growth(p, now + h / 2 * k2)
            k4 = growth(p, now + h * k3)
            now = now + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        y[i + 1] = now
    return y


def negative_log_likelihood(p: Parameters, years: np.ndarray, pelts: np.ndarray) -> float:
    """How badly `p` explains the pelts:  log(pelts) ~ normal(log(population), noise)."""
    noise = np.array([p.hare_noise, p.lynx_noise])
    error = (np.log(pelts) - np.log(simulate(p, years))) / noise
    return np.sum(error**2 / 2 + np.log(noise) + np.log(pelts) + np.log(2 * np.pi) / 2)

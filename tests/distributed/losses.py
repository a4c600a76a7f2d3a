"""Losses of one chunk, at the top of a module, so that workers can import them."""

import os
import signal
import time
from pathlib import Path

import numpy as np


def logistic(p, chunk):
    """A logistic regression with an offset."""
    x, y = chunk
    z = x @ p["w"] + p["b"]
    return np.sum(np.logaddexp(0, z) - y * z)


def lookups(table, chunk):
    """A loss that reads a few rows of a table."""
    return np.sum(np.sin(table[chunk]) ** 2)


def layers(p, chunk):
    """A loss whose gradient has a matrix of low rank."""
    return sum([np.sum(np.tanh(p["W"] @ x)) for x in chunk])


def cubes(w, chunk):
    """A loss over numbers."""
    return np.sum((np.asarray(chunk) - w) ** 3)


def kills_its_worker_once(p, chunk):
    """`logistic`, in a process that dies at a chunk, the first time."""
    marker = Path(os.environ["LINEARA_TEST_MARKER"])
    if chunk[0][0, 0] == 7.0 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return logistic(p, chunk)


def slow_at_one_chunk(p, chunk):
    """`logistic`, which waits at a chunk."""
    if chunk[0][0, 0] == 7.0:
        time.sleep(0.5)
    return logistic(p, chunk)


def raises_at_one_chunk(p, chunk):
    """`logistic`, which fails at a chunk."""
    x, _ = chunk
    if x[0, 0] == 7.0:
        raise ValueError("seven is no number for a chunk to begin with")
    return logistic(p, chunk)

"""`python -m benchmarks.sums_over_data`: what moves between processes; writes SUMS_OVER_DATA.md.

A logistic regression with a million features of which each row has a few: what its gradient takes
as builders, as whole arrays, and by torch's DistributedDataParallel (gloo, two processes of this
machine).  Then a plan for a thousand workers, beside a simulation of its thousand chunks.
Extra: `pip install lineara[dask] torch`.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import torch
import torch.distributed
import torch.multiprocessing
from distributed import Client, LocalCluster

import lineara.distributed as over
from lineara.distributed import runs, sums, work

from .side_by_side import table

REPORT = Path(__file__).with_name("SUMS_OVER_DATA.md")
FEATURES, IN_A_ROW = 1_000_000, 20
HOPS = 1e-3  # seconds until a message begins to arrive
WIRE = 10e9 / 8  # bytes a second


def read(i: int, rows: int) -> Any:
    """A chunk: the features that each row has, their values, and the labels."""
    rng = np.random.default_rng(i)
    at = rng.integers(FEATURES, size=(rows, IN_A_ROW))
    return at, rng.normal(size=(rows, IN_A_ROW)), rng.integers(2, size=rows) * 1.0


def loss(w: Any, chunk: Any) -> Any:
    """The loss of a chunk."""
    at, x, y = chunk
    z = np.sum(w[at] * x, 1)
    return np.sum(np.logaddexp(0, z) - y * z)


def loss_of_all(w: Any, chunk: Any) -> Any:
    """The same, with a gradient that is a whole array."""
    return loss(w, chunk) + np.sum(w * np.zeros(FEATURES))


def dense(i: int, rows: int) -> Any:
    """A chunk of normal numbers."""
    return np.random.default_rng(i).normal(size=(rows, 20))


def rounds_of_tanh(w: Any, x: Any) -> Any:
    """A loss that takes a while."""
    z = x @ w
    for _ in range(20):
        z = np.tanh(z) + x[:, 0]
    return np.sum(z * z)


def scaling(client: Any, chunks: int, rows: int, rounds: int) -> tuple[float, float]:
    """(seconds with one worker of two, seconds with both), in turn."""
    workers, w = list(client.scheduler_info(n_workers=-1)["workers"]), np.linspace(-1, 1, 20)

    def run() -> Any:
        load = partial(dense, rows=rows)
        return over.value_and_grad(rounds_of_tanh, w, range(chunks), client, load=load)

    def on(some: Any) -> Any:
        with dask.annotate(workers=some):
            return run()

    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for k in times:
            seconds, (value, g) = least(partial(on, workers[:k]), 1)
            times[k].append(seconds)
            if k == 1:
                first = value, g
            assert value == first[0]
            assert np.array_equal(g, first[1])
    print("scaling", times, flush=True)
    return min(times[1]), min(times[2])


def evaluate(f: Callable[..., Any], w: Any, chunks: int, rows: int, client: Any) -> Any:
    """(value, gradient, notes) of a sum over chunks that the workers make."""
    options = {"load": partial(read, rows=rows), "progress": False}
    asked = sums._asked("value_and_grad", f, range(chunks), client, None, options)
    total, notes = runs.summed(asked[0], (w,), *asked[1:])
    return total[0], total[1], notes


def least(call: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """The least time of a few calls, and what the last gave."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


# --- torch ----------------------------------------------------------------------------------------


class Regression(torch.nn.Module):
    """The same regression in torch; `sparse`: the gradient of the table is a sparse tensor."""

    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(FEATURES, 1, sparse=sparse, dtype=torch.float64)
        with torch.no_grad():
            self.table.weight[:] = torch.from_numpy(weights())[:, None]

    def forward(self, at: Any, x: Any, y: Any) -> Any:
        """The loss of a chunk."""
        z = (self.table(at)[..., 0] * x).sum(1)
        return (torch.nn.functional.softplus(z) - y * z).sum()


def weights() -> Any:
    """Where the gradient is taken."""
    return np.random.default_rng(99).normal(size=FEATURES)


def member(
    rank: int, port: int, chunks: int, rows: int, sparse: bool, rounds: int, out: Any
) -> None:
    """A process of torch's: its half of the chunks, as one batch."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(Regression(sparse))
    parts = zip(*[read(i, rows) for i in range(rank, chunks, 2)], strict=True)
    batch = [torch.from_numpy(np.concatenate(part)) for part in parts]

    def step() -> Any:
        model.zero_grad()
        value = model(*batch)
        value.backward()
        return value

    step()
    seconds, _ = least(step, rounds)
    g = model.module.table.weight.grad
    if rank == 0:
        norm = float(2 * torch.linalg.vector_norm(g.to_dense() if sparse else g))
        out.put((seconds, norm))  # DistributedDataParallel gives the mean of both
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def by_torch(chunks: int, rows: int, sparse: bool, rounds: int, port: int) -> tuple[float, float]:
    """(seconds a step, the norm of the gradient of the sum)."""
    out = torch.multiprocessing.get_context("spawn").SimpleQueue()
    given = (port, chunks, rows, sparse, rounds, out)
    context = torch.multiprocessing.spawn(member, given, nprocs=2, join=False)
    result = out.get()
    while not context.join():
        pass
    return result


# --- a thousand workers ---------------------------------------------------------------------------


def distinct(terms: int) -> float:
    """How many features so many draws touch, on average."""
    return FEATURES * -np.expm1(terms * np.log1p(-1 / FEATURES))


def plan(chunks: int, rows: int) -> list[tuple[int, int, float, float]]:
    """By level: (messages, chunks below one, bytes of one, seconds until the level is done).

    A message has 12 bytes a touched feature (a place in 32 bits, a number), and is an array of 8
    bytes a feature where that is less.  A node waits for eight messages, which share its wire.
    """
    levels, below, messages, done = [], 1, chunks, 0.0
    while True:
        size = min(12 * distinct(below * rows * IN_A_ROW), 8.0 * FEATURES)
        levels.append((messages, below, size, done))
        if messages == 1:
            return levels
        done += HOPS + min(runs.FAN, messages) * size / WIRE
        messages, below = -(-messages // runs.FAN), min(below * runs.FAN, chunks)


def simulate(chunks: int, rows: int) -> dict[int, list[int]]:
    """The bytes of all messages of one tree of sums, by level; run in one process."""
    w = weights()
    todo = work.Work("value_and_grad", loss, partial(read, rows=rows), None, 0, None, chunks)
    pickled, sizes = work.dumps(todo), defaultdict(list)

    def leaf(i: int) -> tuple[int, bytes]:
        message = work.of_chunk(pickled, (w,), i, i)
        sizes[0].append(len(message))
        return 0, message

    def node(*parts: tuple[int, bytes]) -> tuple[int, bytes]:
        level = 1 + max(level for level, _ in parts)
        message = work.added(pickled, *[message for _, message in parts])
        sizes[level].append(len(message))
        return level, message

    runs.tree(chunks, leaf, node)
    return sizes


def thousand(chunks: int, rows: int) -> str:
    """The plan's table, with what the simulation has counted."""
    sizes = simulate(chunks, rows)
    lines = []
    for level, (messages, below, size, done) in enumerate(plan(chunks, rows)):
        seen = sizes[level]
        mean = sum(seen) / max(len(seen), 1)
        lines.append(
            [
                str(level),
                f"{messages:,}",
                f"{len(seen):,}",
                f"{below:,}",
                f"{size / 1e3:,.0f}",
                f"{mean / 1e3:,.0f}",
                f"{done * 1e3:,.1f}",
            ]
        )
        print(*lines[-1], flush=True)
    head = ["level", "messages", "counted", "chunks below", "kB, planned", "kB, counted", "ms"]
    return table(head, lines)


PAGE = """# Sums over data, between processes

Written by `python -m benchmarks.sums_over_data` on a machine of two cores{note}.

{date}, NumPy {numpy}, torch {torch}.

A logistic regression with 1,000,000 features in float64, of which each row has {in_a_row}: {chunks}
chunks of {rows:,} rows, which the workers make themselves. A gradient as an array has 8 MB.

## What one gradient takes

Times are the least of {rounds}. Ours has a scheduler, two workers and the process that asks; the
bytes are those of all messages between tasks, some of which stay on a worker. torch's two processes
have their data and parameters in memory and add their arrays by a ring, by which each sends an
array; where the gradient is a sparse tensor each sends its own touched rows. Ours makes the chunks
anew, and gets the parameters (8 MB, not counted) each time, as an evaluation for SciPy does.

{gradients}

With chunks of one row the same call takes {sent:,.0f} ms: that is what the scheduler and the
parameters take. {same}

## One process and two

A sum whose chunks have work to do: {chunks} chunks of {dense:,} rows of 20 numbers, through twenty
rounds of tanh. One cluster, of which one worker or both are given the tasks, in turn: with one
{one:,.0f} ms, with both {two:,.0f} ms, {ratio:.2f} times as fast. The same bits.

## A thousand workers

The plan: {many:,} chunks of {few:,} rows on as many workers; a message takes 1 ms until it begins
to arrive, and a worker's wire carries 10 Gbit/s. A node adds eight messages, so the tree is four
levels deep. A level's time is when its messages are ready, after the slowest chunk, without the
adding; the parameters (8 MB) reach all workers by the same tree backwards, in at most
{out:,.0f} ms. Beside it, a simulation of all {many:,} chunks and sums in one process.

{thousand}

In sum {moved:,.0f} MB move, and a worker gets at most {most:,.0f} MB at a time; as arrays they
would be {whole:,.0f} MB. A ring of 1,000 workers adds an array of 8 MB in 2 · 999 steps: 2.0 s at
1 ms a step.
"""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small, and written nowhere")
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    given = parser.parse_args()
    chunks, rows, rounds = (4, 100, 2) if given.quick else (16, 2_000, 5)
    many, few = (20, 10) if given.quick else (1000, 100)
    w, lines = weights(), []
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
    with LocalCluster(n_workers=2, **options) as two, Client(two) as client:
        norms = []
        for name, f in (("builders", loss), ("arrays", loss_of_all)):
            evaluate(f, w, chunks, rows, client)
            seconds, (value, g, notes) = least(
                partial(evaluate, f, w, chunks, rows, client), rounds
            )
            here = evaluate(f, w, chunks, rows, None)
            assert value == here[0]
            assert np.array_equal(np.asarray(g), np.asarray(here[1]))
            norms.append(float(np.linalg.norm(np.asarray(g))))
            lines.append([name, f"{seconds * 1e3:,.0f}", f"{notes['moved'] / 1e6:,.1f}"])
            print(*lines[-1], flush=True)
        tall = 1_000 if given.quick else 100_000
        one_worker, both = scaling(client, chunks, tall, rounds)
        idle, _ = least(partial(evaluate, loss, w, chunks, 1, client), rounds)
    for sparse, name in ((False, "torch, arrays"), (True, "torch, sparse tensors")):
        seconds, norm = by_torch(chunks, rows, sparse, rounds, 29_511 + sparse)
        norms.append(norm)
        half = chunks // 2 * rows * IN_A_ROW
        sent = 2 * 8 * FEATURES if not sparse else 2 * 16 * half
        lines.append([name, f"{seconds * 1e3:,.0f}", f"{sent / 1e6:,.1f} (reckoned)"])
        print(*lines[-1], flush=True)
    np.testing.assert_allclose(norms, norms[0], rtol=1e-9)
    levels = plan(many, few)
    page = PAGE.format(
        note=given.note and f"; {given.note}",
        date=date.today().isoformat(),
        numpy=np.__version__,
        torch=torch.__version__,
        in_a_row=IN_A_ROW,
        chunks=chunks,
        rows=rows,
        rounds=rounds,
        gradients=table(["", "ms", "MB moved"], lines),
        sent=idle * 1e3,
        same="Values and gradients are those without a client, to the last bit.",
        dense=tall,
        one=one_worker * 1e3,
        two=both * 1e3,
        ratio=one_worker / both,
        many=many,
        few=few,
        out=4 * (HOPS + 8 * 8e6 / WIRE) * 1e3,
        thousand=thousand(many, few),
        moved=sum(n * size for n, _, size, _ in levels[:-1]) / 1e6,
        most=8 * max(size for _, _, size, _ in levels[:-1]) / 1e6,
        whole=sum(n for n, *_ in levels[:-1]) * 8,
    )
    if given.quick:
        print(page)
    else:
        REPORT.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

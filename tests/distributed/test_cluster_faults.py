"""What goes wrong on a cluster: workers that die, are slow, lack memory; Ctrl-C; no scheduler.

Each run that ends has the bits of the same call without a client.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import losses
import numpy as np
import pytest

from lineara import distributed as over
from lineara.errors import DistributedError

dask = pytest.importorskip("dask", reason="the extra dask: make test-distributed")
cluster = pytest.importorskip("distributed", reason="the extra dask: make test-distributed")
pytestmark = [
    pytest.mark.slow("clusters are started, and processes of them killed"),
    pytest.mark.filterwarnings("default"),  # dask's own are not ours to mend
]

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(90, 40)), RNG.random(90)
X[36, 0] = 7.0  # where the losses fail
P = {"w": RNG.normal(size=40), "b": 0.5}
HERE = Path(__file__).parent


def two(**options):
    """A cluster of two processes."""
    return cluster.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, **options
    )


def until(done):
    """Wait, as long as a loaded machine may take."""
    end = time.monotonic() + 300
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def same(a, b):
    """Whether two values and gradients have the same bits."""
    return (
        np.array_equal(a[0], b[0])
        and np.array_equal(a[1]["w"], b[1]["w"])
        and np.array_equal(a[1]["b"], b[1]["b"])
    )


def test_a_worker_that_is_killed_and_one_that_is_slow(tmp_path, monkeypatch):
    monkeypatch.setenv("LINEARA_TEST_MARKER", str(tmp_path / "killed"))
    expected = over.value_and_grad(losses.logistic, P, (X, Y), chunks=4)
    with two() as workers, cluster.Client(workers) as client:
        result = over.value_and_grad(losses.kills_its_worker_once, P, (X, Y), client, 4)
        assert (tmp_path / "killed").exists()
        assert same(result, expected)
        assert same(over.value_and_grad(losses.slow_at_one_chunk, P, (X, Y), client, 4), expected)


def test_memory_that_runs_short_is_written_to_disk():
    def block(i):
        return np.random.default_rng(i).normal(size=(250_000, 4))  # 8 MB

    def loss(w, chunk):
        return np.sum((chunk @ w) ** 2)

    w, lazy = np.arange(4.0), [dask.delayed(block)(i) for i in range(24)]
    limits = {"distributed.worker.memory.target": 0.05, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(limits),
        two(memory_limit="1GB") as workers,
        cluster.Client(workers) as client,
    ):
        kept = client.persist(lazy)  # 192 MB, where 100 MB may stay in memory
        value, g = over.value_and_grad(loss, w, kept, client)

        def written(dask_worker):
            return sum(dask_worker.data.spilled_total)

        assert sum(client.run(written).values()) > 10_000_000
    expected = over.value_and_grad(loss, w, lazy)
    assert value == expected[0]
    assert np.array_equal(g, expected[1])


def test_ctrl_c_takes_everything_back(tmp_path):
    started, go = tmp_path / "started", tmp_path / "go"

    def waits(p, chunk):
        started.touch()
        until(go.exists)
        return losses.logistic(p, chunk)

    def names(dask_scheduler):
        return [str(k) for k in dask_scheduler.tasks if str(k).startswith("value_and_grad")]

    def interrupt():
        until(started.exists)
        os.kill(os.getpid(), signal.SIGINT)

    # a process that a shell started in the background ignores Ctrl-C, and so would the test
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with two() as workers, cluster.Client(workers) as client:
            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                over.value_and_grad(waits, P, (X, Y), client, 1)
            thread.join()
            until(lambda: not client.run_on_scheduler(names))
            go.touch()
            expected = over.value_and_grad(losses.logistic, P, (X, Y), chunks=4)
            assert same(over.value_and_grad(losses.logistic, P, (X, Y), client, 4), expected)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_chunk_that_kills_every_worker_is_an_error_in_words():
    def dies(p, chunk):
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        two() as workers,
        cluster.Client(workers) as client,
        pytest.raises(DistributedError, match="a task was given up, since the workers that it ran"),
    ):
        over.value_and_grad(dies, P, (X, Y), client, 45)


def test_a_scheduler_that_is_gone_is_an_error_in_words(tmp_path):
    address = tmp_path / "scheduler.json"
    started = tmp_path / "started"

    def waits(p, chunk):
        started.touch()
        threading.Event().wait()  # for as long as the worker lives

    command = [sys.executable, "-m", "dask", "scheduler", "--port", "0", "--no-dashboard"]
    command += ["--host", "127.0.0.1", "--scheduler-file", str(address)]
    worker = [sys.executable, "-m", "dask", "worker", "--scheduler-file", str(address)]
    worker += ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "300"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": HERE}
    patience = {"distributed.comm.timeouts.connect": "2s"}
    with subprocess.Popen(command, **quiet) as scheduler, subprocess.Popen(worker, **quiet) as one:
        try:
            until(lambda: address.exists() and address.read_text())
            with dask.config.set(patience):
                client = cluster.Client(scheduler_file=str(address), timeout=300)

                def kill():
                    until(started.exists)
                    scheduler.kill()

                thread = threading.Thread(target=kill)
                thread.start()
                with pytest.raises(
                    DistributedError, match=r"the scheduler at tcp.* is gone, or has"
                ):
                    over.value_and_grad(waits, P, (X, Y), client, 4)
                thread.join()
                client.close(timeout=1)
        finally:
            scheduler.kill()
            one.kill()

"""The same bits from threads, processes and a cluster, and what dask's objects become.

One cluster of two processes serves the file.
"""

import time

import losses
import numpy as np
import pytest

import lineara
from lineara import distributed as over
from lineara.cotangent import LowRank, Rows
from lineara.errors import DistributedError

dask = pytest.importorskip("dask", reason="the extra dask: make test-distributed")
arrays = pytest.importorskip("dask.array", reason="the extra dask: make test-distributed")
bags = pytest.importorskip("dask.bag", reason="the extra dask: make test-distributed")
cluster = pytest.importorskip("distributed", reason="the extra dask: make test-distributed")
pytestmark = pytest.mark.filterwarnings("default")  # dask's own are not ours to mend

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(90, 40)), RNG.random(90)
P = {"w": RNG.normal(size=40), "b": 0.5}


def same(a, b):
    """Whether two values and gradients have the same bits."""
    return (
        np.array_equal(a[0], b[0])
        and np.array_equal(a[1]["w"], b[1]["w"])
        and np.array_equal(a[1]["b"], b[1]["b"])
    )


@pytest.fixture(scope="module")
def client():
    """A client of two processes of this machine."""
    with (
        cluster.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as two,
        cluster.Client(two) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def reference():
    """The same call without a client."""
    return over.value_and_grad(losses.logistic, P, (X, Y), chunks=4)


def ours(client):
    """The names of our tasks that the scheduler knows."""

    def names(dask_scheduler):
        return [str(key) for key in dask_scheduler.tasks if "-" in str(key)]

    return client.run_on_scheduler(names)


def test_a_cluster_of_processes(client, reference):
    assert same(over.value_and_grad(losses.logistic, P, (X, Y), client, 4), reference)


def test_threads(reference):
    assert same(over.value_and_grad(losses.logistic, P, (X, Y), "threads", 4), reference)


@pytest.mark.slow("dask starts processes for the call, and each imports the library")
def test_processes(reference):
    assert same(over.value_and_grad(losses.logistic, P, (X, Y), "processes", 4), reference)


@pytest.mark.slow("a third and a fourth process are started")
def test_the_number_of_workers_does_not_count(client, reference):
    names = client.cluster.workers.keys()
    client.cluster.scale(4)
    client.wait_for_workers(4)
    try:
        assert same(over.value_and_grad(losses.logistic, P, (X, Y), client, 4), reference)
    finally:
        client.cluster.scale(2)
    assert len(names) >= 2


def test_exact_sums(client):
    there = over.value_and_grad(losses.logistic, P, (X, Y), client, 13, sum="exact")
    assert same(there, over.value_and_grad(losses.logistic, P, (X, Y), None, 90, sum="exact"))


def test_dask_arrays(client, reference):
    x = arrays.from_array(X, chunks=(4, 10))
    y = arrays.from_array(Y, chunks=4)
    assert same(over.value_and_grad(losses.logistic, P, (x, y), client), reference)
    assert same(over.value_and_grad(losses.logistic, P, (x, y)), reference)
    y = arrays.from_array(Y, chunks=45)
    assert same(over.value_and_grad(losses.logistic, P, (x, y), "threads", chunks=4), reference)


def test_bags_delayed_objects_and_futures(client):
    numbers = X[:, 0].tolist()
    expected = over.value_and_grad(losses.cubes, 0.5, numbers, chunks=9)
    bag = bags.from_sequence(numbers, partition_size=9)
    lazy = [dask.delayed(numbers[i : i + 9]) for i in range(0, 90, 9)]
    there = client.scatter([numbers[i : i + 9] for i in range(0, 90, 9)])
    for data in (bag, lazy, there):
        assert over.value_and_grad(losses.cubes, 0.5, data, client) == expected
        assert over.value_and_grad(losses.cubes, 0.5, data) == expected


def test_xarray_with_chunks(client):
    xarray = pytest.importorskip("xarray", reason="the extra frames")
    data = xarray.Dataset({"x": (("time", "place"), X)}).chunk({"time": 9})
    f = lambda w, c: np.sum((c["x"].values - w) ** 2)  # noqa: E731
    expected = over.value_and_grad(lambda w, c: np.sum((c - w) ** 2), 0.5, X, chunks=9)
    assert over.value_and_grad(f, 0.5, data, client) == expected
    assert over.value_and_grad(f, 0.5, data) == expected


def test_sparse_gradients_and_factors(client):
    table, places = RNG.normal(size=(100_000, 2)), [RNG.integers(0, 9, 5) for _ in range(20)]
    _, g = over.value_and_grad(losses.lookups, table, places, client, out="builder")
    _, expected = over.value_and_grad(losses.lookups, table, places, out="builder")
    assert isinstance(g, Rows)
    assert np.array_equal(g.values, expected.values)
    W, columns = {"W": RNG.normal(size=(20, 300))}, [*RNG.normal(size=(3, 2, 300))]
    _, g = over.value_and_grad(losses.layers, W, columns, client, out="builder")
    _, expected = over.value_and_grad(losses.layers, W, columns, out="builder")
    assert isinstance(g["W"], LowRank)
    assert np.array_equal(g["W"].U, expected["W"].U)


def test_second_derivatives_rows_and_lanes(client):
    v = {"w": np.ones(40), "b": 1.0}
    there = over.hvp(losses.logistic, P, v, (X, Y), client, 4)
    here = over.hvp(losses.logistic, P, v, (X, Y), None, 4)
    assert np.array_equal(there["w"], here["w"])
    linear = lambda p, c: c[0] @ p["w"] + p["b"]  # noqa: E731
    assert np.array_equal(over.jacobian(linear, P, (X, Y), client, 4)["w"], X)
    each = over.vmap(lineara.grad(linear), P, (X, Y), client, 4)
    assert np.array_equal(each["w"], X)


def test_a_loss_is_compiled_once_a_worker(client):
    def programs():
        from lineara.distributed.work import compiled

        return compiled.cache_info().misses

    before = client.run(programs)
    data = [X[i : i + 9, 0].copy() for i in range(0, 90, 9)]
    first = over.value_and_grad(losses.cubes, 0.5, data, client, engine="interpreter")
    again = over.value_and_grad(losses.cubes, 0.25, data, client, engine="interpreter")
    made = [now - before[worker] for worker, now in client.run(programs).items()]
    assert set(made) <= {0, 1}
    assert sum(made) >= 1
    assert first == over.value_and_grad(losses.cubes, 0.5, data, engine="interpreter")
    assert again == over.value_and_grad(losses.cubes, 0.25, data, engine="interpreter")


def test_scipy_minimizes_files(client, tmp_path):
    scipy = pytest.importorskip("scipy.optimize", reason="SciPy has the minimizer")
    for i in range(9):
        np.savez(tmp_path / f"{i}.npz", x=X[10 * i : 10 * i + 10], y=Y[10 * i : 10 * i + 10])
    names = [str(tmp_path / f"{i}.npz") for i in range(9)]

    def read(name):
        with np.load(name) as file:
            return file["x"], file["y"]

    runs = [over.minimizable(losses.logistic, P, names, who, load=read) for who in (client, None)]
    there, here = [scipy.minimize(m.fun, m.x0, jac=True, method="L-BFGS-B").x for m in runs]
    assert np.array_equal(there, here)


# --- what is refused, and what is left behind -----------------------------------------------------


def test_a_chunk_that_raises_is_named_with_the_line_of_the_worker(client):
    x = X.copy()
    x[8, 0] = 7.0
    with pytest.raises(DistributedError) as error:
        over.value_and_grad(losses.raises_at_one_chunk, P, (x, Y), client, 4)
    assert error.value.message.partition(" (on tcp://")[0] == (
        "value_and_grad: chunk 2 of 23 raised ValueError: seven is no number for a chunk to begin "
        "with"
    )
    assert error.value.line.startswith("losses.py:")
    assert error.value.line.endswith(
        'raise ValueError("seven is no number for a chunk to begin with")'
    )


def test_a_chunk_that_raised_is_tried_again(client, tmp_path):
    def late(chunk):
        marker = tmp_path / "seen"
        if chunk[0] == 7.0 and not marker.exists():
            marker.touch()
            raise FileNotFoundError(marker)
        return chunk

    chunks = [np.full(2, 7.0 * (i == 2)) for i in range(4)]
    again = over.value_and_grad(losses.cubes, 0.5, chunks, client, load=late, retries=1)
    assert (tmp_path / "seen").exists()
    assert again == over.value_and_grad(losses.cubes, 0.5, chunks)


def test_code_that_was_sent_has_its_line_too(client):
    def loss(w, chunk):
        return np.sum(w / chunk["no such key"])

    with pytest.raises(DistributedError, match="raised KeyError: 'no such key'") as error:
        over.value_and_grad(loss, 0.5, [{"x": 1.0}], client)
    assert error.value.line.startswith("test_cluster.py:")
    assert error.value.line.endswith('in loss: return np.sum(w / chunk["no such key"])')


def test_a_chunk_with_nan_is_named(client):
    chunks = [np.ones(2)] * 9 + [np.array([np.nan])]
    with pytest.raises(DistributedError, match="NaN came from chunk 9 of 10"):
        over.value_and_grad(losses.cubes, 0.5, chunks, client)


def test_mixed_workers_are_named(client):
    def pretend(version):
        from lineara.distributed.machines import machine

        machine.cache_clear()
        machine()["numpy"] = version

    first, second = client.scheduler_info(n_workers=-1)["workers"]
    client.run(pretend, "1.26.0", workers=[second])
    try:
        with pytest.raises(DistributedError) as error:
            over.value_and_grad(losses.cubes, 0.5, [np.ones(2)] * 64, client)
    finally:
        client.run(pretend, np.__version__, workers=[second])
    assert "numpy: " in error.value.message
    assert f"1.26.0 ({second})" in error.value.message
    assert f"{np.__version__} ({first})" in error.value.message
    assert "scipy" not in error.value.message


def test_tasks_have_names_of_ours_and_none_is_left(client):
    names = cluster.Variable("names", client)

    def loss(w, chunk):
        if chunk[0] == 7.0:
            scheduler = cluster.get_client()
            names.set(scheduler.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.tasks]))
        return np.sum(w * chunk)

    over.value_and_grad(loss, 0.5, [np.full(2, 7.0 * (i == 8)) for i in range(9)], client)
    steps = {dask.utils.key_split(key) for key in names.get()}
    assert {f"value_and_grad-{step}" for step in ("chunk", "sum", "parameters")} <= steps
    run = [key.rpartition("-")[2] for key in names.get() if key.startswith("value_and_grad-chunk")]
    assert wait_until(lambda: not [key for key in ours(client) if key.endswith(run[-1])])


def wait_until(done, seconds=300.0):
    """Whether something is so, now or as soon as a loaded machine has it."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.05)
    return done()

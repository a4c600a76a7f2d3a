"""Tasks on a cluster: sent, waited for, and taken back whole if anything goes wrong."""

from collections.abc import Callable, Sequence
from typing import Any

from lineara.cotangent.interop import library
from lineara.errors import DistributedError


def on_a_cluster(
    name: str,
    client: Any,
    retries: int,
    tasks: Sequence[Any],
    last: Sequence[Any],
    done: Callable[[], None],
) -> list[bytes]:
    """The results of the last tasks, by a client.

    A lost worker's tasks are run again by dask.  Of whatever ends this early, Ctrl-C or an error,
    nothing is left on the cluster.  Raises DistributedError for a chunk that raised, for workers
    that are lost again and again, and where the scheduler is gone.
    """
    distributed = library(f"distributed.{name}", "distributed", "lineara[dask]")
    futures = client.compute([*tasks, *last], retries=retries, optimize_graph=False)
    left = {future.key: future for future in futures[: len(tasks)]}
    results = futures[len(tasks) :]
    del futures
    try:
        for future in distributed.as_completed(left.values()):
            if future.status == "error":
                future.result()
            del left[future.key]  # so that its message is freed as soon as it was added
            done()
        return client.gather(results)
    except BaseException as error:
        _take_back(client, [*left.values(), *results])
        told = _told(name, client, distributed, error)
        if told is None:
            raise
        raise told from None


def _take_back(client: Any, futures: Sequence[Any]) -> None:
    """Cancel what was sent; of a client whose scheduler is gone there is nothing to cancel."""
    try:
        client.cancel([*futures], force=True)
    except Exception:
        return


def _told(name: str, client: Any, distributed: Any, error: BaseException) -> Exception | None:
    """The error in our words; None for one that stays as it is."""
    kinds = library("distributed", "distributed.client", "lineara[dask]")
    if isinstance(error, DistributedError):
        return error
    if isinstance(error, distributed.KilledWorker):
        return DistributedError(
            f"{name}: a task was given up, since the workers that it ran on died ({error}); a "
            "chunk may need more memory than a worker has: take smaller chunks, or fewer threads"
        )
    gone = (kinds.CancelledError, distributed.comm.CommClosedError, OSError, TimeoutError)
    if isinstance(error, gone):
        where = getattr(client.scheduler, "address", None) or client
        return DistributedError(
            f"{name}: the scheduler at {where} is gone, or has dropped the tasks "
            f"({type(error).__name__}: {error}); nothing was returned or written: connect a new "
            "Client and call again"
        )
    return None

"""A sum over chunks, run: here, by dask's schedulers on this machine, or by a client of a cluster.

The sum is a tree whose shape depends on the number of chunks only.  A node adds up to eight, in
their order; with 20 chunks there are

    chunks      0 .. 7      8 .. 15     16 .. 19
    sums           a           b            c
    sum                     a + b + c

Dask decides who works on what, and when; a task gives the same bytes wherever it runs.
"""

import inspect
import pickle
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress

from lineara.cotangent.interop import library
from lineara.distributed.cluster import on_a_cluster
from lineara.distributed.machines import differences, one_blas_thread
from lineara.distributed.messages import unpacked
from lineara.distributed.work import Work, added, dumps, of_chunk
from lineara.errors import DistributedError, TypeMismatchError, describe_line
from lineara.facts.types import show_type

FAN = 8  # messages that are added in one task
LOCAL = ("threads", "processes")


class How(NamedTuple):
    """Who runs it: a client, dask's "threads" or "processes", or None; and what is told of it."""

    client: Any
    retries: int
    progress: bool | None
    nan: str


class Plain:
    """A chunk that is here, and that dask is to leave as it is."""

    def __init__(self, value: object) -> None:
        self.value = value


def summed(work: Work, given: tuple[Any, ...], chunks: Sequence[Any], how: How) -> Any:
    """(the tree of the sum over all chunks, the notes)."""
    pickled = dumps(work)
    (message,) = _run(work, pickled, given, chunks, how, reduce=True)
    tree, notes = unpacked(message)
    _sound(work, notes, how)
    return tree, notes


def listed(work: Work, given: tuple[Any, ...], chunks: Sequence[Any], how: How) -> list[Any]:
    """The trees of all chunks, in their order."""
    pickled = dumps(work)
    pairs = [*map(unpacked, _run(work, pickled, given, chunks, how, reduce=False))]
    machines = [m for _, notes in pairs for m in notes["machines"]]
    nans = [i for _, notes in pairs for i in notes["nans"]]
    _sound(work, {"machines": _distinct(machines), "nans": nans}, how)
    return [tree for tree, _ in pairs]


def _distinct(machines: Sequence[Any]) -> list[Any]:
    kept: list[Any] = []
    for description, workers in machines:
        if description not in [d for d, _ in kept]:
            kept.append([description, workers])
    return kept


def _sound(work: Work, notes: dict[str, Any], how: How) -> None:
    """Refuse NaN, and machines that do not round alike."""
    if notes["nans"] and how.nan == "error":
        which = ", ".join(map(str, notes["nans"][:8])) + ", .." * (len(notes["nans"]) > 8)
        raise DistributedError(
            f"{work.name}: NaN came from chunk {which} of {work.chunks} (counted from 0); "
            "nan='keep' adds it, and lineara.explain_nan(loss)(params, chunk) says where it began"
        )
    if len(notes["machines"]) > 1:
        lines = "".join(f"\n    {line}" for line in differences(notes["machines"]))
        raise DistributedError(
            f"{work.name}: the workers do not round alike, so the same call would give other bits "
            f"on another day; they differ in{lines}\n  start all workers in one environment on "
            "machines of one type"
        )


def tree(count: int, leaf: Callable[[int], Any], node: Callable[..., Any]) -> Any:
    """The tree of sums over leaves 0 .. count - 1.

    >>> tree(20, str, lambda *parts: f"({' '.join(parts)})")
    '((0 1 2 3 4 5 6 7) (8 9 10 11 12 13 14 15) (16 17 18 19))'
    """

    def over(first: int, end: int) -> Any:
        if end - first == 1:
            return leaf(first)
        width = 1
        while width * FAN < end - first:
            width *= FAN
        return node(*[over(i, min(i + width, end)) for i in range(first, end, width)])

    return over(0, count)


def _run(
    work: Work,
    pickled: bytes,
    given: tuple[Any, ...],
    chunks: Sequence[Any],
    how: How,
    reduce: bool,
) -> Sequence[bytes]:
    """The message of the sum; without `reduce`, those of the chunks."""
    with _progress(work, how) as done, _at_the_users_line(work):
        if how.client is None:
            with one_blas_thread():
                return _here(pickled, given, chunks, reduce, done)
        tasks, last = _tasks(work, pickled, given, chunks, reduce)
        if isinstance(how.client, str):
            return _on_this_machine(how.client, tasks, last, done)
        return on_a_cluster(work.name, how.client, how.retries, tasks, last, done)


def _here(
    pickled: bytes,
    given: tuple[Any, ...],
    chunks: Sequence[Any],
    reduce: bool,
    done: Callable[[], None],
) -> list[bytes]:
    """One after the other: the reference for all others."""

    def leaf(i: int) -> bytes:
        message = of_chunk(pickled, given, _computed(chunks[i]), i)
        done()
        return message

    if not reduce:
        return [leaf(i) for i in range(len(chunks))]
    return [tree(len(chunks), leaf, lambda *messages: added(pickled, *messages))]


def _computed(chunk: Any) -> Any:
    """A chunk; what is lazy in it is computed here."""
    if type(chunk) in (tuple, list):
        return type(chunk)([_computed(v) for v in chunk])
    if type(chunk) is dict:
        return {k: _computed(v) for k, v in chunk.items()}
    if hasattr(type(chunk), "__dask_graph__") and chunk.__dask_graph__() is not None:
        return chunk.compute(scheduler="sync")
    return chunk.result() if type(chunk).__module__ == "distributed.client" else chunk


@contextmanager
def _at_the_users_line(work: Work) -> Iterator[None]:
    """A context in which the line that an error names is shown, if it is of code that was sent.

    Such code has lost its file, which is here, and is that of the function.
    """
    try:
        yield
    except DistributedError as error:
        sent = re.fullmatch(r"<dynamic-code>:(\d+) in (.*)", error.line)
        code = getattr(inspect.unwrap(work.f), "__code__", None)
        if sent is None or code is None:
            raise
        line = describe_line(code.co_filename, int(sent[1]), sent[2])
        raise DistributedError(error.message, line=line) from None


# --- by dask --------------------------------------------------------------------------------------


def _tasks(
    work: Work, pickled: bytes, given: tuple[Any, ...], chunks: Sequence[Any], reduce: bool
) -> tuple[list[Any], list[Any]]:
    """(the tasks of the chunks, those whose results are asked for), with names of ours."""
    dask = library(f"distributed.{work.name}", "dask", "lineara[dask]")
    run = uuid.uuid4().hex
    count = iter(range(len(chunks)))

    def task(f: Callable[..., Any], step: str, *args: Any) -> Any:
        name = f"{work.name}-{step}-{run}"
        return dask.delayed(f, pure=False)(*args, dask_key_name=name)

    function = task(_handed, "function", pickled)
    params = task(pickle.loads, "parameters", dumps(given))
    leaves = [
        task(_of_chunk, f"chunk-{i}", function, params, _handed_over(chunk), i)
        for i, chunk in enumerate(chunks)
    ]
    if not reduce:
        return leaves, leaves
    with dask.annotate(priority=1):  # a sum frees what it has added, so it goes before chunks
        root = tree(
            len(leaves),
            leaves.__getitem__,
            lambda *parts: task(added, f"sum-{next(count)}", function, *parts),
        )
    return leaves, [root]


def _handed(x: bytes) -> bytes:
    return x


def _of_chunk(pickled: bytes, given: tuple[Any, ...], chunk: object, index: int) -> bytes:
    return of_chunk(pickled, given, chunk.value if isinstance(chunk, Plain) else chunk, index)


def _handed_over(chunk: object) -> object:
    """A chunk as an argument of a task: dask looks into one for what is lazy only if there is."""
    return chunk if _is_lazy(chunk) else Plain(chunk)


def _is_lazy(chunk: Any) -> bool:
    if isinstance(chunk, tuple | list):
        return any(map(_is_lazy, chunk))
    if isinstance(chunk, dict):
        return any(map(_is_lazy, chunk.values()))
    return hasattr(type(chunk), "__dask_graph__") or type(chunk).__module__ == "distributed.client"


def _on_this_machine(
    scheduler: str, tasks: Sequence[Any], last: Sequence[Any], done: Callable[[], None]
) -> Sequence[bytes]:
    """By one of dask's own schedulers."""
    dask = library("distributed", "dask", "lineara[dask]")
    callbacks = library("distributed", "dask.callbacks", "lineara[dask]")
    keys = {task.key for task in tasks}

    def seen(key: Any, *_: Any) -> None:
        if key in keys:
            done()

    with callbacks.Callback(posttask=seen):
        return dask.compute(*last, scheduler=scheduler)


@contextmanager
def _progress(work: Work, how: How) -> Iterator[Callable[[], None]]:
    """What is called as chunks are done: it moves a line in the terminal, if there is one."""
    console = Console(stderr=True)
    if not (console.is_terminal if how.progress is None else how.progress):
        yield lambda: None
        return
    with Progress(console=console, transient=console.is_terminal) as line:
        task = line.add_task(f"{work.name}, chunks", total=work.chunks)
        yield lambda: line.advance(task)


def check_client(client: object, name: str) -> None:
    """Raise TypeMismatchError for what is no client."""
    if (
        client is None
        or (isinstance(client, str) and client in LOCAL)
        or hasattr(client, "scheduler_info")
    ):
        return
    raise TypeMismatchError(
        f"{name}: client={show_type(client)}; give a distributed.Client, 'threads', "
        "'processes', or None for one chunk after the other"
    )

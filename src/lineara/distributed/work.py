"""What a worker does: differentiate a chunk, and add the cotangents of a few.

Both give a message (messages.py), whose notes say which chunks gave NaN, which machines took part,
and how many bytes were moved.  Nothing here depends on who does it, and when.
"""

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import lineara
from lineara.cotangent import Builder, Coo, Dense, Record, Rows, combine
from lineara.cotangent.monoid import fields
from lineara.distributed.chunks import pieces_of, rows_of
from lineara.distributed.exact_sums import cells_of, compressed, rounded_cells
from lineara.distributed.machines import machine, one_blas_thread
from lineara.distributed.messages import packed, unpacked
from lineara.errors import (
    DistributedError,
    LinearaError,
    ProgramError,
    StagingError,
    StructureError,
    describe_line,
    is_user_file,
)
from lineara.facts.hints import Leaf, Tree
from lineara.facts.types import is_label
from lineara.trees import flatten, map_leaves


class Work(NamedTuple):
    """What is asked for of every chunk."""

    name: str  # of the public function
    f: Callable[..., Any]
    load: Callable[[Any], Any] | None  # gives the chunk, of what stands for it
    engine: str | None  # that runs f as a program, compiled once a worker
    piece: int  # for exact sums: the rows that are differentiated together; else 0
    dim: Any  # the dimension of xarray's that rows are along
    chunks: int  # how many there are


def dumps(x: object) -> bytes:
    """A pickle; by cloudpickle, which writes functions with their code, where it is installed."""
    try:
        return import_module("cloudpickle").dumps(x)
    except ImportError:
        return pickle.dumps(x)


def settled(x: Any) -> Any:
    """The same value, with its arrays in one layout, from wherever it came.

    The order of a sum depends on how an array lies in memory, and that on the way it has travelled.
    """
    if type(x) in (tuple, list):
        return type(x)([settled(v) for v in x])
    if type(x) is dict:
        return {k: settled(v) for k, v in x.items()}
    if type(x) is np.ndarray and not x.dtype.hasobject:
        return np.require(x, requirements=["C", "ALIGNED"])
    if x is None or type(x) in (bool, int, float, complex, str, bytes) or isinstance(x, np.generic):
        return x
    return pickle.loads(dumps(x))


# --- one chunk ------------------------------------------------------------------------------------


def of_chunk(pickled: bytes, given: tuple[Any, ...], chunk: object, index: int) -> bytes:
    """The message of a chunk; `given` are the parameters, and for a product the vector."""
    work = read(pickled)
    try:
        with one_blas_thread():
            given, chunk = settled(given), settled(chunk)
            if work.load is not None:
                chunk = settled(work.load(chunk))
            if work.piece:
                tree, nans = _exactly(work, pickled, given, chunk, index)
            else:
                tree = _compact(derivative(pickled, given, chunk), work)
                nans = _nans(tree, index)
    except Exception as error:
        raise _of_the_worker(work, index, error) from error
    return packed(tree, {"nans": nans, "machines": _here(), "moved": 0, "messages": 1})


@lru_cache(maxsize=16)
def read(pickled: bytes) -> Work:
    """The work that a pickle holds: read once a process."""
    return pickle.loads(pickled)


@lru_cache(maxsize=64)
def compiled(pickled: bytes, form: object) -> Callable[..., Any]:
    """The derivative of a loss, as a program for chunks of one form: made once a process.

    It depends on the form only, and not on which chunks came before.
    """
    work = read(pickled)
    assert work.engine is not None
    plain = WAYS[work.name](work.f)
    return _or_plain(lineara.jit(plain, engine=work.engine), plain)


def _or_plain(program: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """A program; the function as it is where it cannot be one."""
    refused = False

    def run(*args: Any) -> Any:
        nonlocal refused
        if not refused:
            try:
                return program(*args)
            except (ProgramError, StagingError):
                refused = True
        return plain(*args)

    return run


def derivative(pickled: bytes, given: tuple[Any, ...], chunk: object) -> Any:
    """What is asked for, of one chunk: a tree of cotangents."""
    work = read(pickled)
    if work.engine is None:
        return WAYS[work.name](work.f)(*given, chunk)
    return compiled(pickled, _form((given, chunk)))(*given, chunk)


def _form(args: Tree) -> object:
    """What a program is made for: containers and types, and the values of what is no number."""
    leaves, structure = flatten(args)
    return (str(structure), *[_kind(v) for v in leaves])


def _kind(v: Leaf) -> object:
    if isinstance(v, np.ndarray | np.generic):
        return type(v).__name__, v.dtype.str, v.shape
    return type(v).__name__ if type(v) in (float, complex) else (type(v).__name__, repr(v))


def _gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    return lineara.value_and_grad(f, sparse=True)


def _product(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, v, chunk: lineara.hvp(lambda p: f(p, chunk))(params, v)


def _rows(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, chunk: lineara.jacobian(f)(params, chunk)


def _lanes(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, chunk: lineara.vmap(f, in_axes=(None, 0))(params, chunk)


WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "value_and_grad": _gradient,
    "hvp": _product,
    "jacobian": _rows,
    "vmap": _lanes,
}


def _compact(tree: Tree, work: Work) -> Any:
    """Sums made, and each leaf in its smallest form.

    Programs and products give arrays, of which the rows that are not 0 are searched for.
    """
    search = work.name == "hvp" or (work.name == "value_and_grad" and work.engine is not None)
    return _mapped(partial(_small, search=search), tree)


def _mapped(f: Callable[[Any], Any], tree: Tree) -> Any:
    if isinstance(tree, Record):
        return tree.map(f)
    return map_leaves(f, tree, is_leaf=lambda v: isinstance(v, Builder))


def _small(x: Any, search: bool = False) -> Any:
    if isinstance(x, Builder):
        whole = x.coalesce()
        return whole if whole.nbytes < whole.size * whole.dtype.itemsize else Dense(whole.finish())
    if search and isinstance(x, np.ndarray) and x.ndim:
        touched = np.flatnonzero(x.any(axis=tuple(range(1, x.ndim))))
        if 2 * len(touched) < len(x):
            return Rows(touched, x[touched], x.shape, coalesced=True)
    return x


def _nans(tree: Tree, index: int) -> list[Any]:
    """The number of the chunk, if there is NaN in what it gave."""
    leaves: list[Any] = []
    _mapped(leaves.append, tree)
    arrays = [a for v in leaves for a in (v.arrays() if isinstance(v, Builder) else (v,))]
    return [index] if any(_has_nan(a) for a in arrays) else []


def _has_nan(a: Any) -> bool:
    if is_label(a) or np.asarray(a).dtype.kind not in "fc":
        return False
    return bool(np.isnan(a).any())


def _here() -> list[Any]:
    """This machine, and the name of the worker."""
    return [[machine(), [worker_name()]]]


def worker_name() -> str:
    """The address of dask's worker; elsewhere the number of the process."""
    module = sys.modules.get("distributed")
    try:
        return module.get_worker().address if module else f"process {os.getpid()}"
    except ValueError:
        return f"process {os.getpid()}"


def _of_the_worker(work: Work, index: int, error: Exception) -> DistributedError:
    """The error of a chunk, with the line of the user's code that raised it."""
    line, tb = getattr(error, "line", ""), error.__traceback__
    while tb is not None and not isinstance(error, LinearaError):
        code = tb.tb_frame.f_code
        if is_user_file(code.co_filename):
            line = describe_line(code.co_filename, tb.tb_lineno, code.co_name)
        tb = tb.tb_next
    text, name = getattr(error, "message", str(error)), worker_name()
    where = f" (on {name})" if "://" in name else ""
    return DistributedError(
        f"{work.name}: chunk {index} of {work.chunks} raised {type(error).__name__}: {text}{where}",
        line=line,
    )


# --- sums -----------------------------------------------------------------------------------------


def added(pickled: bytes, *messages: bytes) -> bytes:
    """The message of the sum of a few, added in their order."""
    work = read(pickled)
    trees, notes = zip(*map(unpacked, messages), strict=True)
    with one_blas_thread():
        total = combine(trees)
        total = _mapped(_compressed if work.piece else _small, total)
    return packed(total, _joined([*notes, {"machines": _here()}], sum(map(len, messages))))


def _joined(notes: Sequence[dict[str, Any]], moved: int) -> dict[str, Any]:
    machines: dict[Any, Any] = {}
    for description, workers in (pair for note in notes for pair in note["machines"]):
        known = machines.setdefault(tuple(sorted(description.items())), (description, set()))
        known[1].update(workers)
    return {
        "nans": sorted(i for note in notes for i in note.get("nans", [])),
        "machines": [[description, sorted(who)[:8]] for description, who in machines.values()],
        "moved": moved + sum(note.get("moved", 0) for note in notes),
        "messages": sum(note.get("messages", 0) for note in notes) + 1,
    }


# --- exact sums -----------------------------------------------------------------------------------

_PENDING = 1 << 16  # numbers that are collected before they are compressed


def _exactly(
    work: Work, pickled: bytes, given: tuple[Any, ...], chunk: object, index: int
) -> tuple[Any, list[Any]]:
    """The true sum of the cotangents of the pieces of a chunk."""
    if rows_of(chunk, work.dim) % work.piece and index < work.chunks - 1:
        raise StructureError(
            f"{work.name}: sum='exact' with piece={work.piece} needs chunks of a multiple of so "
            f"many rows, but chunk {index} of {work.chunks} has {rows_of(chunk, work.dim)}"
        )
    total, nans, pending = None, [], 0
    for piece in pieces_of(chunk, work.piece, work.dim):
        tree = _mapped(_as_cells, derivative(pickled, given, settled(piece)))
        nans = nans or _nans(tree, index)
        total = combine([total, tree])
        pending += sum(v.nbytes for v in flatten(tree)[0] if isinstance(v, Builder)) // 8
        if pending > _PENDING:
            total, pending = _mapped(_compressed, total), 0
    return _mapped(_compressed, total), nans


def _as_cells(x: Any) -> Any:
    """The numbers of a leaf that are not 0, in float64, each at its place."""
    x = Dense(x) if isinstance(x, np.ndarray) else x
    if not isinstance(x, Builder):
        return x
    flat, values = x.coalesce().cells()
    shape = (*x.shape, 2) if x.dtype.kind == "c" else x.shape
    return Coo(*cells_of(flat, values), shape)


def _compressed(x: Any) -> Any:
    return Coo(*compressed(x.flat, x.values), x.shape) if isinstance(x, Coo) else x


def rounded_tree(x: Any, like: Any) -> Any:
    """Exact sums as builders of numbers that are rounded once, in the dtypes of the leaves."""
    if isinstance(x, Record):
        below = fields(like) or {}
        parts = {k: rounded_tree(v, below.get(k)) for k, v in x.fields.items()}
        return Record(parts, x.like, x.shell)
    if not isinstance(x, Coo):
        return x
    dtype = np.result_type(like)
    real = np.finfo(dtype).dtype
    places, sums = rounded_cells(x.flat, x.values, real)
    if dtype.kind != "c":
        return Coo(places, sums, x.shape)
    cells = np.unique(places // 2)
    numbers = np.zeros((len(cells), 2), real)
    numbers[np.searchsorted(cells, places // 2), places % 2] = sums
    return Coo(cells, numbers.view(dtype)[:, 0], x.shape[:-1])

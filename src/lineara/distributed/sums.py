"""The public functions: derivatives of sums over data, chunk by chunk."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

import lineara
from lineara.cotangent import finish
from lineara.distributed.chunks import Chunks, chunks_of
from lineara.distributed.chunks import dimension as dimension_of
from lineara.distributed.runs import How, check_client, listed, summed
from lineara.distributed.work import Work, rounded_tree
from lineara.errors import TypeMismatchError
from lineara.facts.hints import Tree
from lineara.trees import flatten, unflatten


class Options(TypedDict, total=False):
    """What every function here takes beside its arguments.

    load        called where the chunk is worked on, with what stands for it (the name of a file):
                gives the chunk; it is not differentiated
    engine      "native" or "interpreter": the derivative is captured by `lineara.jit`, once for
                each form of chunk on each worker; None: f runs as it is
    retries     how often a chunk that raised is tried again, as where files are slow to appear
    progress    a line in the terminal; None: if there is a terminal
    nan         "error": a DistributedError names the chunks that gave NaN; "keep": NaN is added
    """

    load: Callable[[Any], Any] | None
    engine: Literal["native", "interpreter"] | None
    retries: int
    progress: bool | None
    nan: Literal["error", "keep"]


def value_and_grad(
    loss: Callable[[Any, Any], Any],
    params: Tree,
    data: Iterable[Any],
    client: Any = None,
    chunks: Chunks = None,
    *,
    sum: Literal["fast", "exact"] = "fast",
    piece: int = 1,
    out: Literal["builder"] | None = None,
    **options: Unpack[Options],
) -> tuple[Any, Any]:
    """(value, gradient) of the sum of loss(params, chunk) over all chunks of the data.

    data     a list of chunks, or an iterator of names of files (`load=` reads them); an array,
             dask array or xarray object (`chunks=` rows, or {dimension: size}); a dask bag or
             dataframe; delayed objects; a tuple or a dict of these, whose chunks go together
    client   None: one chunk after the other, here; "threads" or "processes": on this machine; a
             `distributed.Client`: on its cluster
    sum      "fast": chunks are added by a tree whose shape depends on their number only.  "exact":
             every `piece` rows are differentiated by themselves, and what they give is added
             without rounding, and rounded once
    out      "builder": gradients stay sparse: Rows, Coo, LowRank or Dense in place of arrays

    The gradient has the containers of params.  It is the same to the last bit for every client,
    however many workers there are and whichever are lost, on machines of one type with one set of
    versions; with sum="exact" for other chunks, too, if they begin at multiples of `piece`.

    Raises DistributedError for a chunk that raises or gives NaN, for workers of different versions
    or processors, and where the scheduler is gone; TypeMismatchError for data that is not known.

    >>> def loss(w, chunk):
    ...     x, y = chunk
    ...     return np.sum((x @ w - y) ** 2)
    >>> x, y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, 0.0, 2.0])
    >>> value_and_grad(loss, np.array([1.0, -1.0]), (x, y), chunks=2)
    (14.0, array([-40., -52.]))
    """
    work, sources, how = _asked("value_and_grad", loss, data, client, chunks, options)
    if sum not in ("fast", "exact") or not isinstance(piece, int) or piece < 1:
        raise TypeMismatchError(
            f"value_and_grad: sum={sum!r} and piece={piece!r}; sum is 'fast' or 'exact', and piece "
            "a number of rows, 1 or more"
        )
    if sum == "exact":
        work = work._replace(piece=piece)
    total, _ = summed(work, (params,), sources, how)
    like: Any = params
    value, gradient = total[0], total[1]
    if sum == "exact":
        gradient = rounded_tree(gradient, params)
    value = finish(value)
    return value, (gradient if out == "builder" else finish(gradient, like))


def hvp(
    loss: Callable[[Any, Any], Any],
    params: Tree,
    v: Tree,
    data: Iterable[Any],
    client: Any = None,
    chunks: Chunks = None,
    **options: Unpack[Options],
) -> Any:
    """The Hessian of the sum of loss(params, chunk) over all chunks, times v, which is like params.

    Arguments, errors and bits are as in `value_and_grad`.

    >>> hvp(lambda w, x: np.sum((w * x) ** 2), 3.0, 1.0, [np.ones(2), np.ones(3)])
    10.0
    """
    work, sources, how = _asked("hvp", loss, data, client, chunks, options)
    like: Any = params
    return finish(summed(work, (params, v), sources, how)[0], like)


def jacobian(
    f: Callable[[Any, Any], Any],
    params: Tree,
    data: Iterable[Any],
    client: Any = None,
    chunks: Chunks = None,
    **options: Unpack[Options],
) -> Any:
    """The Jacobian of the results of f(params, chunk), one chunk's rows below the other's.

    f gives an array of which the first axis counts rows, as residuals of the rows of a chunk.  The
    result is like params, with the axes of all results before those of each leaf; it is whole here.
    Arguments, errors and bits are as in `value_and_grad`.

    >>> jacobian(lambda w, x: x @ w, np.ones(2), np.arange(6.0).reshape(3, 2), chunks=2)
    array([[0., 1.],
           [2., 3.],
           [4., 5.]])
    """
    work, sources, how = _asked("jacobian", f, data, client, chunks, options)
    return _stacked(listed(work, (params,), sources, how), params)


def vmap(
    f: Callable[[Any, Any], Any],
    params: Tree,
    data: Iterable[Any],
    client: Any = None,
    chunks: Chunks = None,
    **options: Unpack[Options],
) -> Any:
    """f(params, row) for every row of every chunk, in order: arrays that are whole here.

    A row is what `lineara.vmap` gives of a chunk's arrays.  f may be a gradient:
    `vmap(lineara.grad(loss), ...)` has one a row.  Arguments and errors are as in `value_and_grad`.

    >>> vmap(lambda w, x: w * x * x, 2.0, np.arange(4.0), chunks=2)
    array([ 0.,  2.,  8., 18.])
    """
    work, sources, how = _asked("vmap", f, data, client, chunks, options)
    return _stacked(listed(work, (params,), sources, how), None)


class Objective(NamedTuple):
    """A sum over chunks as `scipy.optimize.minimize` takes it; see `minimizable`."""

    fun: Callable[[np.ndarray], tuple[float, np.ndarray]]
    x0: np.ndarray
    hessp: Callable[[np.ndarray, np.ndarray], np.ndarray]
    unravel: Callable[[Any], Any]


def minimizable(
    loss: Callable[[Any, Any], Any],
    params: Tree,
    data: Iterable[Any],
    client: Any = None,
    chunks: Chunks = None,
    *,
    sum: Literal["fast", "exact"] = "fast",
    piece: int = 1,
    **options: Unpack[Options],
) -> Objective:
    """The sum of loss(params, chunk) over all chunks, for `scipy.optimize.minimize`.

    fun        a flat vector -> (value, gradient): give jac=True beside it
    x0         params as a flat vector
    hessp      (a flat vector, a direction) -> the Hessian's product
    unravel    a flat vector -> a container like params

    Chunks are read anew in each call, so data that is larger than the memory is never whole in it.
    Arguments and errors are as in `value_and_grad`.

    >>> from scipy.optimize import minimize
    >>> m = minimizable(lambda w, x: np.sum((x - w["at"]) ** 2), {"at": 0.0}, [[1.0, 2.0], [6.0]],
    ...                 load=np.array)
    >>> at = m.unravel(minimize(m.fun, m.x0, jac=True, method="L-BFGS-B").x)
    >>> abs(at["at"] - 3.0) < 1e-6
    True
    """
    sources = chunks_of(data, chunks, "minimizable")
    x0, unravel = lineara.ravel(params)

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, g = value_and_grad(
            loss, unravel(x), sources, client, sum=sum, piece=piece, **options
        )
        return float(value), lineara.ravel(g)[0]

    def hessp(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return lineara.ravel(hvp(loss, unravel(x), unravel(v), sources, client, **options))[0]

    return Objective(fun, x0, hessp, unravel)


# --- what they have in common ---------------------------------------------------------------------


def _asked(
    name: str,
    f: Callable[..., Any],
    data: Iterable[Any],
    client: Any,
    chunks: Chunks,
    options: Options,
) -> tuple[Work, list[Any], How]:
    """The work on each chunk, the chunks, and who runs it."""
    if not callable(f):
        raise TypeMismatchError(f"{name}: takes a function of (params, chunk), not {f!r}")
    check_client(client, name)
    engine, nan = options.get("engine"), options.get("nan", "error")
    if engine not in (None, "native", "interpreter"):
        raise TypeMismatchError(
            f"{name}: engine={engine!r}; give 'native' or 'interpreter', whose values do not "
            "depend on what ran before, or None"
        )
    if nan not in ("error", "keep"):
        raise TypeMismatchError(f"{name}: nan={nan!r}; give 'error' or 'keep'")
    sources = chunks_of(data, chunks, name)
    dim = dimension_of(data, chunks, name)[0] if hasattr(data, "isel") else None
    work = Work(name, f, options.get("load"), engine, 0, dim, len(sources))
    return work, sources, How(client, options.get("retries", 0), options.get("progress"), nan)


def _stacked(trees: list[Any], like: Tree) -> Any:
    """The arrays of all chunks along the first axis, in containers like those of `like`."""
    finished = [finish(t) for t in trees]
    leaves = [flatten(t)[0] for t in finished]
    structure = flatten(finished[0] if like is None else like)[1]
    return unflatten(structure, [np.concatenate(column) for column in zip(*leaves, strict=True)])

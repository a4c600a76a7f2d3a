"""The value of a call is NumPy's or SciPy's own: its bits, dtype, strides and exceptions.

Where our function is composed of others (a median, a covariance, an interpolation) the derivative
comes from the composition, and NumPy's function is asked for the value.  Both must agree up to
rounding.  Where ours fails, NumPy's is asked whether it would have, and with what.
"""

import copy
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import LinearaError, LinearityError, NoRuleError, StagingError
from lineara.facts.hints import Shaped, Tree
from lineara.facts.primitive import Box, Joint, Primitive, op, registry
from lineara.facts.types import type_of
from lineara.ops.lapack import worth_factoring
from lineara.python.numpy_layout import KNOWN, NoSignature, sample, signature
from lineara.tape.node import Array, Scalar, Traced, plain, staged
from lineara.tape.number_kinds import numpys, valued
from lineara.tape.numpy_errors import foreign_name
from lineara.tape.sketches import Unplanned
from lineara.tape.strides import laid_out, strides_of
from lineara.tape.swallowed_errors import Told, told

# Functions whose value is NumPy's by nature: they move elements, or are one primitive, which
# NumPy's function evaluates.
_EXACT = """
reshape ravel transpose permute_dims swapaxes matrix_transpose moveaxis rollaxis expand_dims squeeze
broadcast_to broadcast_arrays flip flipud fliplr rot90 roll repeat tile take
compress extract diagonal diag diagflat tril triu einsum matmul dot vdot outer
concatenate concat stack append atleast_1d atleast_2d atleast_3d vstack hstack
dstack column_stack block array_split split vsplit hsplit dsplit unstack sum prod max amax min amin
mean sort cumsum cumprod where clip positive meshgrid astype asarray_chkfinite require
linspace ndenumerate real imag solve inv det
"""
# Functions that write to an argument, or call a function of the user's.
_ONCE = """
copyto put putmask place put_along_axis fill_diagonal apply_along_axis apply_over_axes piecewise
vectorize from_dlpack fromiter fromfunction
"""
_FACTORED = (np.linalg.solve, np.linalg.det)
_CANCELLED = 1e-6  # of the largest argument: a result may be a difference of such numbers
_CLOSE = {"f": 1e-3, "F": 1e-3, "e": 1e-1}  # relative to the largest element, by dtype
_IDENTITY = Joint(lambda tangents: tangents[0], lambda y_bar: [y_bar])


_PLAIN_OPTIONS = frozenset({"axis", "axes", "keepdims", "shape", "offset", "axis1", "axis2"})


@functools.cache
def is_composed(func: Any) -> bool:
    """Whether NumPy's own function gives the value, since ours is a composition of others."""
    return _may_ask(func) and not (_is_numpys(func) and func.__name__ in _EXACT.split())


def is_asked(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: object
) -> bool:
    """`is_composed` of one call, or its options: NumPy checks casts and what is written where."""
    if func is np.einsum and len(args) > 3:
        return True
    if func is np.mean and [getattr(a, "dtype", None) for a in args[:1]] == [np.float16]:
        return True
    if func is np.dot and max([getattr(a, "ndim", 0) for a in args]) > 2:
        return True
    if func in _FACTORED and args and not staged(args):  # our factors round differently
        t = type_of(args[0])
        return bool(t.ndim) and worth_factoring(t)
    unusual = out is not None or not _PLAIN_OPTIONS.issuperset(kwargs)
    return is_composed(func) or (unusual and _may_ask(func))


@functools.cache
def _may_ask(func: Any) -> bool:
    """Whether NumPy's function may be called once more, as it has no side effects."""
    name, module = getattr(func, "__name__", ""), str(getattr(func, "__module__", None))
    theirs = _is_numpys(func) or module.partition(".")[0] in ("scipy", "statistics")
    return theirs and not module.startswith("numpy.random") and name not in _ONCE.split()


def _is_numpys(func: Callable[..., Any]) -> bool:
    """Whether a function is NumPy's, or any ufunc."""
    module = str(getattr(func, "__module__", None)).partition(".")[0]
    return module == "numpy" or isinstance(getattr(func, "__self__", func), np.ufunc)


def judged(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Raise Unplanned if a call has side effects; returns the check of a composition, else None."""
    place = place_of_out(func)
    if "out" in kwargs or (place is not None and len(args) > place):
        raise Unplanned("the result is written into an argument")
    if not _may_ask(func):
        raise Unplanned("the function does more than to calculate")
    if isinstance(func, np.ufunc) and isinstance(registry.ours(func), Primitive):
        return None
    return _alike if is_asked(func, args, kwargs, None) else None


class _Unasked(Exception):
    """The arguments are not all plain data."""


def _as_plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """A plain argument for NumPy; arrays as read-only views."""
    kind = type(value)
    if issubclass(kind, list | tuple):
        parts = [_as_plain(v, arrays) for v in value]
        return parts if issubclass(kind, list) else tuple(parts)
    if kind is slice:
        return slice(*[_as_plain(v, arrays) for v in (value.start, value.stop, value.step)])
    if isinstance(value, Traced):
        try:
            value = _sampled(value) if staged(value) else _plainly(value)
        except LinearityError:  # a linear value has a type only
            raise _Unasked("a linear value has a type, and no value to compute with") from None
    if isinstance(value, Box):
        raise _Unasked("a value with a batch axis stands for many arrays")
    if isinstance(value, np.inexact):
        arrays.append(np.asarray(value))
    elif type(value) is np.ndarray and value.dtype.kind == "O":
        value = np.array([plain(v) for v in value.ravel()] + [None], object)[:-1].reshape(
            value.shape
        )
    elif type(value) is np.ndarray:
        arrays.append(value)
        value = value.view()
        value.flags.writeable = False
    elif callable(value) and not isinstance(value, type):
        raise _Unasked("NumPy would call a function of the caller")
    return value


def _plainly(value: Traced) -> Any:
    numpys = issubclass(type(value), Scalar) and not value.weak
    return value.dtype.type(plain(value)) if numpys else plain(value)


def _sampled(value: Box) -> Any:
    """A sample value of the type of a staged value."""
    number = sample(type_of(value), strides_of(value))
    return number.item() if issubclass(type(value), Scalar) and value.weak else number


def _scratch(out: Any) -> Any:
    """An array like `out` for NumPy to write into, so that `out` is not changed."""
    if isinstance(out, tuple):
        return tuple(map(_scratch, out))
    if isinstance(out, Array):
        return laid_out(np.empty(out.shape, out.dtype), out.lay).view(_Scratch)
    return plain(out) if isinstance(out, Traced) else copy.copy(out)


class _Scratch(np.ndarray):
    """An array that is no argument."""


def asked(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: object,
    arrays: list[np.ndarray],
) -> Any:
    """The result of NumPy's function on plain arguments, which are appended to `arrays`."""
    given = _as_plain(args, arrays)
    options = {name: _as_plain(v, arrays) for name, v in kwargs.items()}
    if out is not None:
        place = place_of_out(func)
        if place is None or len(given) <= place:
            options["out"] = _scratch(out)
        else:
            given = (*given[:place], _scratch(out), *given[place + 1 :])
    return func(*given, **options)


@functools.cache
def place_of_out(func: Any) -> int | None:
    """Where a function of NumPy's takes `out` among its arguments by position."""
    try:
        parameters = inspect.signature(func).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return None
    parameter = parameters.get("out")
    by_position = parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    return list(parameters).index("out") if by_position else None


UNANSWERED = object()


def of_constants(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of NumPy's function where all arrays among the arguments hold only constants.

    UNANSWERED where that is not so, or where the result is more than fresh arrays and numbers.
    """
    if not _may_ask(func):
        return UNANSWERED
    outs = kwargs.get("out")
    place = place_of_out(func) if outs is None else None
    if place is not None and len(args) > place:
        outs = args[place]
    targets = outs if isinstance(outs, tuple) else () if outs is None else (outs,)
    if not all([isinstance(out, Array) for out in targets]):
        return UNANSWERED
    arrays: list[tuple[Array, np.ndarray]] = []
    try:
        given = [_memory(a, targets, arrays) for a in args]
        options = {name: _memory(v, targets, arrays) for name, v in kwargs.items()}
    except _Unasked:
        return UNANSWERED
    if not arrays:
        return UNANSWERED
    level = max([a.level for a, _ in arrays], key=lambda level: level.depth)
    try:
        y = func(*given, **options)
    except FloatingPointError:  # NumPy has written the result before it raises
        y = UNANSWERED
        if targets:
            raise
    except Exception:  # the general way raises a clearer error
        return UNANSWERED
    finally:
        for a, _ in arrays:
            if any([a is out for out in targets]):
                a.rewritten()
    if targets:
        return outs if isinstance(y, tuple) else targets[0]
    return _fresh(y, arrays, level)


def _memory(value: Any, targets: tuple[Any, ...], arrays: list[tuple[Array, np.ndarray]]) -> Any:
    """An argument for NumPy: the values of an array, writable only if it is a target."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind([_memory(v, targets, arrays) for v in value])
    if isinstance(value, Array):
        to_write = any([value is out for out in targets])
        values = value.memory(to_write) if value.level.kinks is None else None
        if values is None:
            raise _Unasked("the array has no memory that NumPy may read")
        if not to_write:
            values = values.view()
            values.flags.writeable = False
        arrays.append((value, values))
        return values
    if kind is np.ndarray and value.dtype.kind != "O":
        return value
    if isinstance(value, Box):
        raise _Unasked("a traced value that is no array is not handed to NumPy")
    if value is None or value is Ellipsis or isinstance(value, _DATA):
        return value
    raise _Unasked(f"NumPy is not asked with a {kind.__name__} of the caller")


_DATA = (int, float, complex, str, np.generic, np.dtype, type, type(np._NoValue))


def _fresh(y: Tree, arrays: list[tuple[Array, np.ndarray]], level: Any) -> Any:
    """A result of plain arrays, to be written by traced values too."""
    if type(y) is np.ndarray:
        shares = any([np.may_share_memory(y, values) for _, values in arrays])
        return UNANSWERED if shares or y.dtype.kind == "O" else level.own(y)
    if isinstance(y, tuple | list):
        parts = [_fresh(v, arrays, level) for v in y]
        if any([part is UNANSWERED for part in parts]):
            return UNANSWERED
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    return y if isinstance(y, np.generic | int | float | complex) else UNANSWERED


def failed(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
    out: object = None,
) -> Exception:
    """The exception that NumPy's function raises where ours has failed; else a refusal."""
    if isinstance(error, Told):
        return told(error)
    written = staged((*args, *kwargs.values(), out))
    if not _may_ask(func) or (written and isinstance(error, StagingError)):
        return error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked(func, args, kwargs, out, [])
    except _Unasked:
        return error
    except Exception as plainly:
        if "read-only" in str(plainly) or isinstance(plainly, LinearaError):
            return error
        return _like(error, plainly)
    if isinstance(error, LinearaError):
        known = error.refuses
        return error if known else _as_both(NoRuleError(error.message, line=error.line), error)
    return _as_both(
        NoRuleError(
            f"{foreign_name(func)}: NumPy has a value here, and its derivative has failed with "
            f"{type(error).__name__}: {error}; write it with functions that have a rule"
        ),
        error,
    )


def _like(error: Exception, plainly: Exception) -> Exception:
    """NumPy's exception; where ours says more, one that is an instance of both classes."""
    if not isinstance(error, LinearaError):
        return plainly.with_traceback(None)
    return error if isinstance(error, type(plainly)) else _as_both(error, plainly, refuses=False)


def _as_both(ours: LinearaError, theirs: Exception, **names: Any) -> Exception:
    """An error of ours that is an instance of another exception's class, too."""
    both = _both(type(ours), type(theirs), **names)
    error = both.__new__(both)
    error.args = ours.args
    vars(error).update(vars(theirs) | vars(ours))
    return error


@functools.cache
def _both(ours: type, theirs: type, **names: Any) -> Any:
    names |= {"__module__": ours.__module__, "__str__": ours.__str__}
    return type(ours.__name__, (ours, theirs), names)


def own_value(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ours: Callable[..., Any],
    out: object = None,
    given: tuple[Any, ...] | None = None,
) -> Any:
    """The result of `ours(*args, **kwargs)`, with the value that NumPy's own function gives.

    The array `out` is not written here; NumPy says whether it may hold the result.
    """
    if staged((*args, *kwargs.values(), out)):
        numpys_own = checked_types(func, args, kwargs, out)
        result = numpys(ours(*args, **kwargs))
        parts = result if isinstance(result, tuple | list) else (result,)
        if len(numpys_own) != len(parts) or not any(map(_differs, parts, numpys_own)):
            return result
        parts = [_as_numpys(p, own) for p, own in zip(parts, numpys_own, strict=True)]
        if not isinstance(result, tuple | list):
            return parts[0]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    arrays: list[np.ndarray] = []
    try:
        value = asked(func, args if given is None else given, kwargs, out, arrays)
    except _Unasked:
        return numpys(ours(*args, **kwargs))
    except Exception as e:
        result = _quietly(ours, args, kwargs)  # our function may raise a clearer error
        if "read-only" in str(e):  # the function overwrites its argument
            return numpys(result)
        raise
    return _valued(func, numpys(_quietly(ours, args, kwargs)), value, arrays)


Own = tuple[bool, np.dtype | None]
"""Whether a result of NumPy's is a number, and its dtype."""


def _is_wrapped(part: Shaped, own: Own) -> bool:
    """Whether a result is an array without axes where NumPy's is a number."""
    return own[0] and isinstance(part, Array) and not part.shape


def _is_of_another_kind(part: Shaped, own: Own) -> bool:
    """Whether a result is of whole numbers where NumPy's is of floats, or the like."""
    dtype = own[1]
    if dtype is None or not isinstance(part, Traced):
        return False
    kinds = {part.dtype.kind, dtype.kind}
    return len(kinds) == 2 and kinds <= {*"biuf"}


def _differs(part: Shaped, own: Own) -> bool:
    return _is_wrapped(part, own) or _is_of_another_kind(part, own)


def _as_numpys(part: Any, own: Own) -> Any:
    """A result as a number, or in the dtype, that NumPy's function gives of such arguments."""
    if _is_of_another_kind(part, own):
        part = op("astype")(part, dtype=own[1])
    return part[()] if _is_wrapped(part, own) else part


_answers: dict[Any, Exception | tuple[Own, ...]] = {}


def checked_types(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: object
) -> tuple[Own, ...]:
    """For each result of NumPy's on values of these types what it is, if known.

    Raises what NumPy's function raises of such values, whatever they are.
    """
    try:
        kind = [str(getattr(o, "dtype", "")) for o in (out if isinstance(out, tuple) else (out,))]
        key = func, signature(args), signature(kwargs), signature((out,)), *kind
        known = key in _answers
    except (NoSignature, TypeError):  # or a signature that has no hash
        return ()
    if not known:
        if len(_answers) >= KNOWN:
            _answers.clear()
        _answers[key] = _answer(func, args, kwargs, out)
    answer = _answers[key]
    if isinstance(answer, Exception):
        raise answer.with_traceback(None)
    return answer


def _answer(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: object) -> Any:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            y = asked(func, args, kwargs, out, [])
    except (TypeError, np.exceptions.AxisError) as e:
        return () if isinstance(e, LinearaError) else e
    except Exception as e:  # the values may be the reason
        return e if "output array is not acceptable" in str(e) else ()
    parts = y if isinstance(y, tuple | list) else (y,)
    return tuple(
        [(isinstance(p, np.generic | float | complex), getattr(p, "dtype", None)) for p in parts]
    )


def _quietly(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(*args, **kwargs)


def _valued(func: Callable[..., Any], y: Any, value: Any, arrays: list[np.ndarray]) -> Any:
    """y with NumPy's value; in tuples and lists, for each part."""
    if isinstance(value, tuple | list) and isinstance(y, tuple | list) and len(y) == len(value):
        parts = [_valued(func, *pair, arrays) for pair in zip(y, value, strict=True)]
        if all([p is q for p, q in zip(parts, y, strict=True)]):
            return y
        made = type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
        if hasattr(y, "__dict__"):  # fields of a named tuple that are not among its elements
            vars(made).update(vars(y))
        return made
    if isinstance(value, np.ndarray) and any([np.may_share_memory(value, a) for a in arrays]):
        return y
    if not isinstance(y, Traced):
        return value if type(value) is type(y) else y
    if isinstance(value, int | np.integer | np.bool_):  # one of mixed numbers, as of a median
        return value
    y = _with_its_signs(y, value)
    if not _is_like(plain(y), value, arrays):
        raise NoRuleError(
            f"{foreign_name(func)}: its value, {type_of(value)}, is another than that of the "
            "composition that the derivative would come from; write it with functions that have a "
            "rule"
        )
    if isinstance(y, Array) and isinstance(value, np.ndarray) and value.ndim:
        return y if _same(plain(y), value) else carried(y, value)
    y = y[()] if isinstance(y, Array) else y
    if not isinstance(y, Traced):  # a function that is staged made it of constants
        return value
    if type(value) is np.ndarray and value.dtype.kind in "fc":
        return y.level.buffer(valued(y, value[()]))
    if not isinstance(value, np.inexact | float | complex):
        return y
    return valued(y, value)


def _with_its_signs(y: Traced, value: Any) -> Any:
    """Eigenvectors as columns, with the signs that SciPy's have."""
    own = plain(y)
    if np.ndim(value) != 2 or np.shape(own) != np.shape(value) or own.dtype.kind != "f":
        return y
    with np.errstate(all="ignore"):
        turned = np.sum(own * value, axis=0) < 0
        if not turned.any() or not np.allclose(np.abs(own), np.abs(value), rtol=1e-6, atol=1e-9):
            return y
    return y * np.where(turned, -1.0, 1.0).astype(own.dtype)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same bits and lie in memory alike."""
    alike = type(a) is np.ndarray and a.dtype == b.dtype and a.strides == b.strides
    return alike and a.tobytes() == b.tobytes()


def carried(y: Shaped, value: np.ndarray) -> Any:
    """The node y with another value."""
    node = y.now() if isinstance(y, Traced) else y
    if not isinstance(node, Traced):
        return value
    if node.dtype != value.dtype:
        node = node.astype(value.dtype).now()
    below = carried(node.v, value)
    return node.level.record(below, (node,), _IDENTITY, "astype", value.size)


def _alike(y: Shaped, value: Any, given: list[Any]) -> bool:
    """Whether `_valued` may put NumPy's value in place of the composition's."""
    if type(y) is np.ndarray and y.ndim:
        if _same(y, value):
            return True
        if y.ndim == 2:  # columns may have other signs
            return False
    elif y == value:
        return True
    return _is_like(y, value, [a for a in given if a.dtype.kind in "fc"])


def _is_like(y: Shaped, value: Any, arrays: list[np.ndarray]) -> bool:
    """Whether the value of a composition agrees with NumPy's up to rounding."""
    if np.shape(y) != np.shape(value):
        return False
    with np.errstate(all="ignore"):
        a, b = np.asarray(y), np.asarray(value)
        if a.dtype.kind not in "fc" or (a == b).all():
            return True
        close = max([_CLOSE.get(t.char, 1e-8) for t in [x.dtype for x in (a, b, *arrays)]])
        if a.size and np.abs(a - b).max() <= close * np.abs(b).max() < np.inf:
            return True  # what follows would say so, too, and takes longer
        within = close * max(_largest(b), _CANCELLED * max(map(_largest, arrays), default=0.0))
        return bool(np.allclose(a, b, rtol=close, atol=within, equal_nan=True))


def _largest(a: np.ndarray) -> Any:
    return np.abs(a[np.isfinite(a)]).max(initial=0.0)

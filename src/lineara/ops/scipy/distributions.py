"""scipy.stats: stand-ins for its distributions, whose methods accept traced arguments.

A method passes plain arguments on to SciPy, and evaluates the table's formula for traced ones.
Outside of the support the density is a structural zero, its logarithm -inf.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.primitive import Box, op, registry, stands_for
from lineara.facts.types import type_of
from lineara.ops.elementwise import exp, log, sqrt, where
from lineara.ops.scipy.distribution_formulas import CONTINUOUS, DISCRETE, Law
from lineara.ops.scipy.special_composed import only_plain
from lineara.ops.shape import as_array, real_only

INF = np.inf


def any_traced(values: Any) -> bool:
    """Whether one of the values is traced, also inside lists and tuples."""
    return any(
        [isinstance(v, Box) or (isinstance(v, list | tuple) and any_traced(v)) for v in values]
    )


def in_double(v: Leaf) -> Any:
    """A value in double precision, as SciPy's distributions convert it."""
    v = as_array(v) if isinstance(v, list | tuple) and any_traced(v) else v
    real_only("scipy.stats", v)
    if not isinstance(v, Box):
        return np.asarray(v, float)[()]
    return v if type_of(v).dtype == np.float64 else op("astype")(v, dtype=np.dtype(float))


def everywhere(condition: Shaped) -> bool:
    """Whether a condition is known to be true in all lanes."""
    return not isinstance(condition, Box) and bool(np.all(condition))


def chosen(condition: Shaped, a: Value, b: Value) -> Any:
    """a where the condition is true, else b; a itself if it is known to be true everywhere."""
    return a if everywhere(condition) else where(condition, a, b)


def law_ends(law: Law, shapes: list[Any]) -> Any:
    """(low, high), the ends of the support."""
    return [e(*shapes) if callable(e) else e for e in (law.low, law.high)]


class At:
    """A distribution at values: masks of where they lie, and values safe to evaluate at."""

    z: Any

    def __init__(
        self, law: Law, x: Any, shapes: Any, loc: Value, scale: Value, whole: bool
    ) -> None:
        x, loc, scale = in_double(x), in_double(loc), in_double(scale)
        shapes = [in_double(s) for s in shapes]
        self.good: Any = op("greater")(scale, 0) * law.good(*shapes)
        self.shapes: list[Any] = [chosen(self.good, s, 1.0) for s in shapes]
        self.scale: Any = chosen(self.good, scale, 1.0)
        self.z = z = x - loc if whole else (x - loc) / self.scale
        low, top = law_ends(law, self.shapes)
        self.below: Any = op("less_equal" if law.open else "less")(z, low)
        self.above: Any = op("greater")(z, top)
        self.unknown: Any = op("isnan")(z)
        beyond = op("logical_or")(self.below, self.above)
        self.inside: Any = op("logical_not")(op("logical_or")(beyond, self.unknown))
        self.safe: Any = chosen(self.inside, z, law.inside)  # inside of the support in every lane

    def result(self, y: Value, below: float, above: float) -> Any:
        """`y` inside of the support, `below` and `above` outside; NaN for bad parameters."""
        if not everywhere(self.inside):
            outside = where(self.above, above, where(self.unknown, np.nan, below))
            y = where(self.inside, y, outside)
        return chosen(self.good, y, np.nan)


def log_density(law: Law, at: At) -> Any:
    """The logarithm of the density."""
    return at.result(law.log(at.safe, *at.shapes) - log(at.scale), -INF, -INF)


def density(law: Law, at: At) -> Any:
    """The density; exp of the log density if it has no formula of its own."""
    rule = law.density or (lambda *v: exp(law.log(*v)))
    return at.result(rule(at.safe, *at.shapes) / at.scale, 0.0, 0.0)


def cumulative(name: str, below: float, above: float, of: str = "") -> Callable[[Law, At], Any]:
    """The method `name`: by the formula of that name, or as the logarithm of formula `of`."""

    def method(law: Law, at: At) -> Any:
        rule = getattr(law, name)
        if rule is None and of and getattr(law, of) is not None:
            return at.result(log(getattr(law, of)(at.safe, *at.shapes)), below, above)
        return None if rule is None else at.result(rule(at.safe, *at.shapes), below, above)

    return method


AT = {
    "cdf": cumulative("cdf", 0.0, 1.0),
    "sf": cumulative("sf", 1.0, 0.0),
    "logcdf": cumulative("logcdf", -INF, 0.0, "cdf"),
    "logsf": cumulative("logsf", 0.0, -INF, "sf"),
}
DENSITY = {"pdf": density, "logpdf": log_density}
MASS = {"pmf": density, "logpmf": log_density}


def _infinite(end: float) -> bool:
    """Whether an end of the support is known to be infinite."""
    return not isinstance(end, Box) and bool(np.all(np.isinf(end)))


def quantile(law: Law, name: str, q: Any, shapes: Any, loc: Shaped, scale: Shaped) -> Any:
    """The method ppf or isf; None without a formula. q = 0 and 1 give the ends of the support."""
    rule = getattr(law, name)
    if rule is None:
        return None
    q, loc, scale = in_double(q), in_double(loc), in_double(scale)
    shapes = [in_double(s) for s in shapes]
    inner = op("greater")(q, 0) * op("less")(q, 1)
    y = loc + scale * rule(chosen(inner, q, 0.5), *shapes)
    if not everywhere(inner):
        ends = [e if _infinite(e) else loc + scale * e for e in law_ends(law, shapes)]
        first, last = ends if name == "ppf" else ends[::-1]
        edge = where(op("equal")(q, 0), first, where(op("equal")(q, 1), last, np.nan))
        y = where(inner, y, edge)
    return chosen(op("greater")(scale, 0) * law.good(*shapes), y, np.nan)


def moment(law: Law, name: str, shapes: tuple[Any, ...], loc: Shaped, scale: Shaped) -> Any:
    """The method mean, var, std, entropy or median; None without a formula."""
    if name == "median":
        return quantile(law, "ppf", 0.5, shapes, loc, scale)
    rule = getattr(law, "var" if name == "std" else name)
    if rule is None:
        return None
    loc, scale = in_double(loc), in_double(scale)
    y = rule(*map(in_double, shapes))
    if name == "mean":
        y = loc + scale * y
    elif name == "entropy":
        y = y + log(scale)
    else:
        y = scale * sqrt(y) if name == "std" else scale * scale * y
    good = op("greater")(scale, 0) * law.good(*map(in_double, shapes))
    return chosen(good, y, np.nan)


def no_rule(name: str, method: str, why: str = "") -> NoRuleError:
    """The error for a method without a formula."""
    return NoRuleError(
        f"scipy.stats.{name}.{method} of a traced value has no derivative rule; "
        + (
            why
            or "write it with functions that have one, or declare it with lineara.custom_jvp or "
            "lineara.custom_vjp"
        )
    )


DRAWS = "draw with plain parameters and move what was drawn: loc + scale * rvs()"
MOMENTS = ("mean", "var", "std", "entropy", "median")
REFUSED = ("moment", "stats", "expect", "fit", "fit_loc_scale", "nnlf", "support", "rvs")


def _method(name: str, plain: Callable[..., Any]) -> Any:
    """The method `name` of the stand-in: SciPy's `plain` for plain arguments."""

    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        if not any_traced(args) and not any_traced(kwds.values()):
            return plain(self, *args, **kwds)
        y = _traced(self, name, args, kwds)
        if y is None:
            raise no_rule(self.name, name, DRAWS if name == "rvs" else "")
        return y

    return call


def _traced(dist: Any, name: str, args: Any, kwds: Any) -> Any:
    """The method's value by the table's formulas, or None without one."""
    whole = hasattr(dist, "pmf")
    law = (DISCRETE if whole else CONTINUOUS).get(dist.name)
    if law is None or name in REFUSED:
        return None
    if name == "interval":
        return _interval(dist, *args, **kwds)
    takes = name not in MOMENTS
    x = None if not takes else args[0] if args else _first(kwds)
    kwds = {k: v for k, v in kwds.items() if args or k not in ("x", "k", "q")}
    shapes, loc, scale = dist._parse_args(*args[1 if takes and args else 0 :], **kwds)
    full = f"scipy.stats.{dist.name}.{name}"
    if whole:
        for i in law.whole:
            only_plain(shapes[i], full, "a whole number")
    if not takes:
        return moment(law, name, shapes, loc, scale)
    if name in ("ppf", "isf"):
        return quantile(law, name, x, shapes, loc, scale)
    if name in MASS:
        only_plain(x, full, "a whole number")
        only_plain(loc, full, "loc, which is a whole number")
        k = np.asarray(x, float) - loc
        at = At(law, np.floor(k), shapes, 0.0, 1.0, True)
        return where(k == np.floor(k), MASS[name](law, at), 0.0 if name == "pmf" else -INF)
    if whole:
        x, loc = op("floor")(in_double(x) - in_double(loc)), 0.0
    return (AT | DENSITY)[name](law, At(law, x, shapes, loc, scale, whole))


def _first(kwds: Any) -> Any:
    return next(kwds[k] for k in ("x", "k", "q") if k in kwds)


def _interval(dist: object, confidence: float, *args: Any, **kwds: Any) -> Any:
    """The interval with equal tails on both sides."""
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    quantiles = [_traced(dist, "ppf", (q, *args), kwds) for q in ends]
    return None if quantiles[0] is None else tuple(quantiles)


# --- the objects ---------------------------------------------------------------------------------


def _call(self: Any, *args: Any, **kwds: Any) -> Any:
    """A frozen distribution, whose parameters may be traced."""
    own = vars(self)["_plain"]
    if not any_traced(args) and not any_traced(kwds.values()):
        return traced_frozen(own(*args, **kwds))
    self._parse_args(*args, **kwds)  # raises SciPy's error
    infrastructure: Any = sys.modules["scipy.stats._distn_infrastructure"]
    whole = hasattr(self, "pmf")
    base = infrastructure.rv_discrete_frozen if whole else infrastructure.rv_continuous_frozen
    frozen = object.__new__(subclass(base))
    vars(frozen).update(args=args, kwds=kwds, dist=self)
    return frozen


@functools.cache
def subclass(base: type) -> type:
    """A subclass of SciPy's class with methods that accept traced values."""
    if not hasattr(base, "freeze"):  # a frozen distribution calls its own
        return type(f"Traced{base.__name__}", (base,), {})
    named = [*AT, *DENSITY, *MASS, "ppf", "isf", "interval", *MOMENTS, *REFUSED]
    methods = {n: _method(n, getattr(base, n)) for n in named if hasattr(base, n)}
    return type(f"Traced_{base.__name__}", (base,), {**methods, "__call__": _call, "freeze": _call})


def traced_distribution(dist: object) -> Any:
    """The stand-in for a distribution."""
    traced = object.__new__(subclass(type(dist)))
    vars(traced).update(vars(dist), _plain=dist)
    return traced


def traced_frozen(frozen: Any) -> Any:
    """The stand-in for a frozen distribution."""
    traced = object.__new__(subclass(type(frozen)))
    dist = frozen.dist
    vars(traced).update(vars(frozen), dist=traced_distribution(dist))
    return traced


for _kind in ("continuous", "discrete"):
    stands_for(f"scipy.stats._distn_infrastructure.rv_{_kind}_frozen")(traced_frozen)


def _every_distribution(example: object) -> None:
    """Declare stand-ins for all distributions in the module of `example`."""
    module = sys.modules[type(example).__module__]
    for value in vars(module).values():
        if hasattr(value, "_parse_args") and not isinstance(value, type):
            registry.declare(type(value), of_object=traced_distribution)


registry.await_("scipy.stats._continuous_distns.norm", _every_distribution)
registry.await_("scipy.stats._discrete_distns.poisson", _every_distribution)

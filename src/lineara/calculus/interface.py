r"""Values of Python and of the calculus: numbers, tuples for products, lists, functions.

    R, Int, Bool    float, int, bool         R * R * R    (x, y, z)         List R    [x, ...]
    R -> R -> R     f(x, y)                  R^           float             R * R -> R    f((x, y))

A function of the calculus, called from Python, runs on the machine with whatever numbers it gets:
those of the eager engine too, so `lineara.grad` goes through it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lineara.calculus import terms as tm
from lineara.calculus.closure_conversion import converted, sample
from lineara.calculus.machine import FUEL, Machine
from lineara.calculus.program import as_term
from lineara.calculus.python_calls import foreign
from lineara.calculus.readback import read_back
from lineara.calculus.types import BOOL, INT, Arrow, Dual, ListOf, Product, R, Type, is_ground, show
from lineara.calculus.values import Both, Items, Nothing, Number, is_number, items, listed
from lineara.errors import CalculusError, StagingError
from lineara.facts.types import is_number as calculates
from lineara.staging.capture import trace
from lineara.staging.tracing import Staged


def run(term: tm.Term | str, fuel: int = FUEL) -> tm.Term:
    r"""The value of a closed term or of a text, by the machine.

    >>> from lineara.calculus.show import show as text
    >>> text(run("fold (\\x. \\y. x * y) 1 [2, 3, 4]"))
    '24'
    """
    t = as_term(term, "run")
    return read_back(Machine(fuel).value(t), t.type)


def type_of(term: tm.Term | str) -> str:
    r"""The type of a term or of a text.

    >>> type_of("\\x. sin(x) * x")
    'R -> R'
    """
    return show(as_term(term, "type_of").type)


def gradient(term: tm.Term | str) -> tm.Term:
    r"""The term of the gradient of a function to R: \x. pull(f; \_. covec(1)) x.

    Raises CalculusError for what is no function to R.

    >>> from lineara.calculus.show import show as text
    >>> text(gradient("\\x. x * x"))
    'pull(\\x:R. multiply(x, x); \\_:R. covec(1))'
    """
    f = as_term(term, "gradient")
    if not isinstance(f.type, Arrow) or f.type.target != R:
        raise CalculusError(
            f"a gradient is of a function to R, but this is {show(f.type)}; pull(f; w) takes a "
            "1-form w for any result"
        )
    return tm.Pull((f, tm.constant_form(R, tm.Covec((tm.num(1),)))))


def function(term: tm.Term | str, fuel: int = FUEL) -> Callable[..., Any]:
    r"""A function of the calculus as one of Python; arguments may be given one by one.

    Raises CalculusError for a term that is no function; called, for arguments of other types.

    >>> import lineara
    >>> f = function("\\x. \\y. x * sin(y)")
    >>> f(2.0, 0.0), lineara.grad(f, argnums=1)(2.0, 0.0)
    (0.0, 2.0)
    """
    t = as_term(term, "function")
    if not isinstance(t.type, Arrow):
        raise CalculusError(f"the term is no function but {show(t.type)}")
    machine = Machine(fuel)
    held = machine.value(t)

    def called(*args: Any) -> Any:
        machine.fuel = fuel
        value, left = held, t.type
        for a in args:
            if not isinstance(left, Arrow):
                raise CalculusError(f"{len(args)} arguments are given to {show(t.type)}")
            value = machine.apply_to(value, to_machine(a, left.source))
            left = left.target
        return to_python(value, left)

    called.__name__ = "calculus_function"
    called.__doc__ = f"A function of the pullback calculus: {show(t.type)}."
    return called


def linear_a(term: tm.Term | str, fuel: int = FUEL) -> Staged:
    r"""A function of numbers as a Linear A program.

    The machine runs once on the variables of a program: functions and pulls leave the operations
    on numbers that they come to.  Where numbers decide a choice, so that this cannot be, closures
    are converted: functions are sums of environments, choices are `cond`, recursions call
    themselves, and derivatives are those of the passes.

    CalculusError for what has no counterpart in a program: functionals on functions, and a function
    that differentiates itself.

    >>> print(linear_a("\\x. let f = \\g y. g (g y) in f (\\z. z * x) 3"))
    def calculus_function(x0: f64;) -> (f64;) =
      let k: f64 = 3.0 in
      let v: f64 = k * x0 in
      let v2: f64 = v * x0 in
      (v2;)
    <BLANKLINE>
    >>> f = linear_a("\\x. (rec f y. if less(y, 1) then y else f (y / 2) * x) x")
    >>> f(3.0), sorted(f.program.defs)
    (6.75, ['calculus_function', 'else1', 'fn1_0', 'then1'])
    """
    closed = as_term(term, "linear_a")
    f, t = function(closed, fuel), closed.type
    samples = []
    while isinstance(t, Arrow):
        if not is_ground(t.source):
            raise CalculusError(
                f"linear_a: an argument of a program is made of numbers, not {show(t.source)}"
            )
        samples.append(sample(t.source))
        t = t.target
    try:
        return trace(f, *samples)
    except StagingError:  # a choice that numbers decide
        return converted(closed, f, samples)


def to_machine(value: Any, t: Type) -> Any:
    """A value of Python as the machine holds it."""
    match t:
        case Product(a, b):
            flat = list(value) if isinstance(value, tuple | list) else None
            if flat is None or len(flat) < 2:
                raise CalculusError(f"{show(t)} is a tuple, but {value!r} is given")
            rest = flat[1] if len(flat) == 2 else tuple(flat[1:])
            return to_machine(flat[0], a), to_machine(rest, b)
        case ListOf(item):
            if not isinstance(value, Iterable):
                raise CalculusError(f"{show(t)} is a list, but {value!r} is given")
            return listed([to_machine(v, item) for v in value])
        case Arrow() | Dual():
            if isinstance(value, tm.Term):
                if value.type != t:
                    raise CalculusError(
                        f"{show(t)} is asked for, and the term is {show(value.type)}"
                    )
                return Machine().value(value)
            if callable(value) and isinstance(t, Arrow):
                return Machine().value(foreign(value, t))
            raise CalculusError(
                f"{show(t)} is asked for, and {value!r} is given: give a function, or a term of "
                r"the calculus, such as calculus.term(r'\x. x * x')"
            )
    if isinstance(value, tuple | list) or not (calculates(value) or isinstance(value, bool)):
        raise CalculusError(f"{show(t)} is a number, but {value!r} is given")
    if t in (INT, BOOL):
        exact = int(value) if t == INT else bool(value)
        if exact != value:
            raise CalculusError(f"{show(t)} is asked for, but {value!r} is given")
        return exact
    return float(value) if isinstance(value, int | float) else value


def to_python(value: Any, t: Type) -> Any:
    """A value of the machine in Python; a functional is its numbers, anything else a term."""
    match t:
        case Product(_, b):
            left, right = to_python(value[0], t.left), to_python(value[1], b)
            return (left, *right) if isinstance(b, Product) else (left, right)
        case ListOf(item):
            return [to_python(v, item) for v in items(value)]
        case Dual(of) if is_ground(of) and isinstance(value, Number | Both | Nothing):
            return _numbers(value, of)
        case Dual(ListOf(item)) if isinstance(value, Items):
            return [to_python(v, Dual(item)) for v in value.parts]
    return value if is_number(value) else read_back(value, t)


def _numbers(k: Any, t: Type) -> Any:
    if isinstance(k, Nothing):
        return 0.0 if not isinstance(t, Product) else _numbers(Both(k, k), t)
    if isinstance(t, Product):
        left, right = _numbers(k.left, t.left), _numbers(k.right, t.right)
        return (left, *right) if isinstance(t.right, Product) else (left, right)
    return k.r

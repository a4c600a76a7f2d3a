"""The forms that structured code calls: Python's own, unless a staged value decides.

`lineara.python.structured_code` says what it makes of branches and loops.  Each form here does what
the statement does in Python where that is known while the program is written, and else writes the
structured form.
"""

import builtins
import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence, Sized
from types import GeneratorType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from lineara.errors import LinearaError, MutationError, StagingError, user_frame, user_line
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.python.number_classes import constructor
from lineara.python.user_code import input_level, reading
from lineara.staging import texts
from lineara.staging.capture import (
    choices,
    folds,
    lists,
    output,
    outside,
    regions,
    sequences,
    tries,
    whole_numbers,
)
from lineara.staging.capture.branches import (
    branch,
    follow,
    is_staged,
    result,
    truth,
    truth_of,
    without,
)
from lineara.staging.capture.calls import called
from lineara.staging.capture.choices import OneOf, Told, is_perhaps, tell, told_by
from lineara.staging.capture.comprehensions import collected, map_
from lineara.staging.capture.containers import Consumed, Given, Snapshot
from lineara.staging.capture.list_items import Wanted
from lineara.staging.capture.lists import Row, Stacked
from lineara.staging.capture.loops import ChoiceNeeded, Loop
from lineara.staging.capture.raises import check, level_of_trace, raised_by_python
from lineara.staging.capture.regions import unwound
from lineara.staging.capture.sequences import Items, items_of, went_on
from lineara.staging.capture.variables import (
    BREAK,
    BROKEN,
    CONTINUE,
    CONTINUED,
    UNSET,
    Mixed,
    Return,
    Variables,
    Way,
)
from lineara.staging.control_flow import tracing
from lineara.tape.levels import threads
from lineara.tape.node import Traced

WRITTEN_OUT = 3  # rounds; a loop of so few is written out
FORM, BRANCH = "form", "branch"  # what statements became that are forms of the program
ATTEMPTS = 2  # how often a loop is tried as a form before its rounds are written out

ENDLESS = 100_000  # operations of a loop that Python runs, after which it counts as endless
Block: TypeAlias = Callable[[], Any] | None  # of statements, where there are any


def _as_form(
    body: Callable[..., Any],
    write: Callable[[], Way],
    must: object = False,
    chooses: bool = True,
) -> tuple[bool, Way]:
    """Try to write a loop as a form; if that cannot be done all is as it was.

    One that has been tried often is tried again only if it `must` be a form, or `chooses` what it
    carries.  Before its first round it does not: None may be there, and a number ever after.
    """
    level, now = tracing(), reading()
    if level is None or now is None:
        return False, None
    refusals, attempt = _refusals(body), lists.Attempt(level)
    again = must or (chooses and body.__code__ in now.choosing)
    if len(refusals) >= ATTEMPTS and not again:
        return False, None
    while True:
        refused, mark, bindings = [*threads.refused], level.mark(), len(level.out.bindings)
        try:
            way = write()
        except (Wanted, Exception) as e:  # whatever comes of it: the rounds in Python tell what
            if isinstance(e, StagingError) and e.final:
                raise
            if isinstance(e, Wanted | LinearaError):
                e.__traceback__ = None  # its frames hold arrays, which would not be alone
            threads.refused[:] = refused
            level.back_to(mark)
            level.forget(bindings)
            why = attempt.stack(e) if isinstance(e, Wanted) else e
            if why is None:
                continue
            refusals.append(why)
            if not must:
                attempt.undo()
            often = len(refusals) >= ATTEMPTS or must
            if not (isinstance(why, ChoiceNeeded) and often and chooses):
                return False, None
            now.choosing.add(body.__code__)
        else:
            if refusals:  # of its first round
                refusals.pop()
            note(body, FORM)
            return True, way


def note(block: Callable[..., Any], what: object) -> None:
    """Remember what a statement became, of which this is a block: a form in one call is one."""
    now = reading()
    if now is not None and now.statements.get(block.__code__) is not FORM:
        now.statements[block.__code__] = what


def _refusals(body: Callable[..., Any]) -> list[Exception]:
    """Why a loop could not be a form in this trace."""
    now = reading()
    assert now is not None, "forms are called where functions are read"
    return now.refusals[body.__code__]


def _refuse(body: Callable[..., Any]) -> NoReturn:
    """Refuse a loop that must be a form and cannot be one."""
    level, why = level_of_trace(), _refusals(body)[-1]
    if not isinstance(why, LinearaError):
        level.uncaught("what a round of a staged loop does", [type(why)])
    raise why


def if_(
    test: object,
    then: Block,
    orelse: Block,
    rest: Block,
    names: tuple[str, ...],
) -> Way:
    """`if test: then else: orelse`, and what follows where one of them may leave the block."""
    t = truth(test)
    variables = Variables(names, then, orelse, rest)
    then, orelse = then or _nothing, orelse or _nothing
    if not is_staged(t):
        way = (then if t else orelse)()
    else:
        note(then if then is not _nothing else orelse, BRANCH)
        way = branch(t, then, orelse, variables)
    return _followed(way, rest, variables)


def _followed(way: Way, rest: Block, variables: Variables) -> Way:
    """What follows a statement; exceptions of one that is not the block's last leave that."""
    return unwound(way, variables) if rest is None else follow(way, rest, variables)


def _nothing() -> Way:
    return None


def while_(
    test: Callable[..., Any],
    body: Callable[..., Any],
    orelse: Block,
    rest: Block,
    names: tuple[str, ...],
    changed: tuple[str, ...],
) -> Way:
    """`while test(): body() else: orelse()`, and what follows where the function may be left."""
    variables = Variables(names, test, body, orelse, rest, changed=changed)
    body = body or _nothing
    note(body, None)
    way = _rounds_while(test, body, variables)
    return _after(way, orelse, rest, variables)


def _rounds_while(test: Callable[..., Any], body: Callable[..., Any], variables: Variables) -> Way:
    level = tracing()
    start = len(level.out.bindings) if level else 0
    while True:
        go = truth_of(test)
        if not is_staged(go) and not go:
            return None
        must = is_staged(go)
        loop = lambda g=go: Loop(variables, body, None, None, test, g).write()  # noqa: E731
        done, way = _as_form(body, loop, must)
        if done:
            return way
        if must:
            _refuse(body)
        way = body()
        if level and len(level.out.bindings) - start > ENDLESS:
            raise StagingError(
                f"a while loop whose condition is known as the program is written was written out "
                f"in more than {ENDLESS} operations, and may have no end; let its condition "
                "depend on what the rounds calculate, or use lineara.while_loop"
            )
        if isinstance(way, Mixed):
            return _more(way, lambda: _rounds_while(test, body, variables), body, variables)
        if way is BREAK or isinstance(way, Return):
            return way


def _more(
    way: Mixed, rounds: Callable[[], Way], body: Callable[..., Any], variables: Variables
) -> Way:
    """The rounds after one that values may leave.

    Where they cannot be written out, what the user hears is why the loop is no form.
    """
    why = _refusals(body)[-1:]
    try:
        return follow(without(way, variables, CONTINUED), rounds, variables)
    except (MutationError, StagingError) as e:
        told = why and isinstance(why[0], LinearaError)
        if not told or (isinstance(e, StagingError) and e.final):
            raise
    raise why[0]


def for_(
    iterable: Any,
    body: Callable[..., Any],
    orelse: Block,
    rest: Block,
    names: tuple[str, ...],
    changed: tuple[str, ...],
) -> Way:
    """`for target in iterable: body else: orelse`, and what follows."""
    variables = Variables(names, body, orelse, rest, changed=changed)
    items = items_of(iterable)
    note(body, type(iterable) if items is None else items.every)
    if items is None:
        through = iter(iterable)
        iterators = _advanced(iterable, through)
        way = _rounds(through, body, variables)
        if isinstance(way, Mixed):
            _refuse_use(iterators)
    elif is_staged(items.rounds):
        go = op("less")(0, items.rounds)
        loop = lambda: Loop(variables, body, items.at, items.rounds, None, go).write()  # noqa: E731
        done, way = _as_form(body, loop, must=True)
        if not done:
            _refuse(body)
        items.end(known=way is None)
    else:
        way = _numbered(items, 0, body, variables)
    if items is not None:
        items.refuse_growth()
    return _after(way, orelse, rest, variables)


def _advanced(iterable: Any, through: Iterator[Any]) -> list[Any]:
    """The iterators that rounds advance which others may hold."""
    if through is iterable or isinstance(through, GeneratorType):
        return Snapshot(through).advances()
    return []  # but one of the loop's own


def _refuse_use(iterators: list[Any]) -> None:
    """Refuse that iterators are used after rounds that staged values may end early.

    They may be where a variable of the functions that run leads to them.
    """
    if not iterators:
        return
    frame, holders = user_frame(), []
    while frame is not None and frame.f_code.co_name != "<module>":
        holders += [v for n, v in frame.f_locals.items() if not n.endswith(".")]
        frame = user_frame(frame.f_back) if frame.f_back else None
    reached = Snapshot(*holders).seen
    for x in iterators:
        if id(x) in reached:
            raise went_on(x)


def _numbered(items: Items, first: int, body: Callable[..., Any], variables: Variables) -> Way:
    """Rounds over items that are found by number, from one of them on."""
    n = items.rounds
    items.begin(first)
    for k in range(first, n):
        if n - k > WRITTEN_OUT:
            at = items.at if k == 0 else (lambda i, k=k: items.at(i + k))
            done, way = _as_form(
                body,
                lambda at=at, k=k: Loop(variables, body, at, n - k, None, True).write(),
                chooses=k > 0,
            )
            if done:
                items.end(known=way is None)
                return way
        items.go_on(k)
        way = body(items.at(k))
        if isinstance(way, Mixed):
            more = lambda k=k: _numbered(items, k + 1, body, variables)  # noqa: E731
            return _more(way, more, body, variables)
        if way is BREAK or isinstance(way, Return):
            return way
    return None


def _rounds(items: Iterator[Any], body: Callable[..., Any], variables: Variables) -> Way:
    """Rounds that Python iterates."""
    for item in items:
        way = body(item)
        if isinstance(way, Mixed):
            return _more(way, lambda: _rounds(items, body, variables), body, variables)
        if way is BREAK or isinstance(way, Return):
            return way
    return None


def _after(way: Way, orelse: Block, rest: Block, variables: Variables) -> Way:
    """What follows a loop that was left in this way; a break in its else is the outer loop's."""
    exits = BROKEN, CONTINUED
    if orelse is None:
        way = without(way, variables, *exits)
    else:
        way = follow(way, orelse, variables, exits)
    return _followed(way, rest, variables)


# --- expressions ----------------------------------------------------------------------------------

text = texts.text
percent = texts.percent
list_ = lists.new


def asked(f: Callable[..., Any]) -> Any:
    """The function that is called, if a program may call it."""
    if type(f) is OneOf:
        return lambda *args, **options: _each(
            f, lambda g: asked(g)(*args, **options), args, options
        )
    for original, ours in _OF_MODULES:
        if f is original:
            return ours
    return outside.with_lists(f, choices.refusing(texts.asked(outside.asked(f))))


def _each(x: Leaf, act: Callable[[Any], Any], *given: Any) -> Any:
    """The result for a value, or for the alternative that a choice is, used with what is given."""
    if type(x) is not OneOf:
        return act(x)
    first, *others = [x.trees[k] for k in sorted(choices.left_of(x))]
    if not others:
        return act(first)
    is_first = choices.asked(x, lambda tree: tree is first)
    reached = Given(first, others, *given)
    use = lambda: _each(x, act, reached)  # noqa: E731
    return choose(is_first, use, use)


def choose(
    test: object,
    then: Callable[[], Any],
    orelse: Callable[[], Any],
    *inner: Callable[[], Any],
    names: tuple[str, ...] = (),
) -> Any:
    """`then if test else orelse`.

    `inner` are the user's expressions that these evaluate, which may bind the names.
    """
    t = truth(test)
    if not is_staged(t):
        return then() if t else orelse()
    variables = Variables(names, then, orelse, *inner)
    return result(branch(t, lambda: Return(then()), lambda: Return(orelse()), variables))


def and_(first: object, *others: Callable[[], Any], names: tuple[str, ...] = ()) -> Any:
    """`first and …`: the first that is false, or the last; these bind the names."""
    return _connected(first, others, True, names)


def or_(first: object, *others: Callable[[], Any], names: tuple[str, ...] = ()) -> Any:
    """`first or …`: the first that is true, or the last; these bind the names."""
    return _connected(first, others, False, names)


class _Last:
    """What the last operand tells: it is kept where the variables of a block are put back."""

    told = Told()


def _connected(
    first: object, others: tuple[Callable[[], Any], ...], goes_on: bool, names: tuple[str, ...]
) -> Any:
    """The first operand whose truth is not `goes_on`, or the last one."""
    if not others:
        return first
    t, last = truth(first), _Last()

    def rest() -> Any:
        value = _connected(others[0](), others[1:], goes_on, names)
        last.told = told_by(value)
        return value

    if not is_staged(t):
        return rest() if t is goes_on else first
    told = told_by(t)
    both = (rest, lambda: first) if goes_on else (lambda: first, rest)
    y = choose(t, *both, *others, names=names)
    cells = Variables(names, *others).values().values()
    bound = [
        (v, frozenset([k for k, tree in enumerate(v.trees) if tree is not UNSET]))
        for v in cells
        if is_perhaps(v)
    ]
    holds = *told.holds, *last.told.holds, *bound
    fails = *told.fails, *last.told.fails, *bound
    tell(y, Told(holds, ()) if goes_on else Told((), fails))
    return y


def known(read: Callable[[], Any], name: str, lines: tuple[int, ...], free: bool) -> Any:
    """The value of a variable, which may have none; these lines bind it.

    Whether it is `free`, one of a function around, Python's error says.
    """
    unset: Any = False
    try:
        value = read()
    except NameError:
        value, unset = UNSET, True
    if is_perhaps(value):
        value, unset = choices.with_value(value)
    if unset is not False:
        note_missed(name)
        said = f"variable {name!r} where it is not associated with a value"
        error = (
            NameError(f"cannot access free {said} in enclosing scope")
            if free
            else UnboundLocalError(f"cannot access local {said}")
        )
        bound = " and ".join([f"line {n}" for n in lines])
        line = f"{user_line()}; it gets a value in {bound}, which was not reached"
        if unset is True:
            raise raised_by_python(error, line)
        check(unset, error, line)
    return value


def note_missed(name: str) -> None:
    """Remember that a variable was read where it may have no value."""
    now = reading()
    if now is not None:
        now.missed.append(name)


def not_(x: Leaf) -> Any:
    """`not x`."""
    t = truth(x)
    if not is_staged(t):
        return not t
    y, told = _truth_value(op("logical_not")(t)), told_by(t)
    tell(y, Told(told.fails, told.holds))
    return y


def is_(a: Leaf, b: Leaf) -> Any:
    """`a is b`."""
    if isinstance(a, Row) and isinstance(b, Row):
        return lists.same_list(a, b)
    return choices.is_(a, b)


def is_not(a: Leaf, b: Leaf) -> Any:
    """`a is not b`."""
    return not_(is_(a, b))


def in_(x: Leaf, among: Any) -> Any:
    """`x in among`."""
    if type(among) not in (tuple, list, set, frozenset, builtins.range, dict):
        return x in among
    if not is_staged(x) and not any(map(is_staged, among)):
        return x in among
    if type(among) is builtins.range:
        low, high, step = min(among, default=0), max(among, default=-1), abs(among.step)
        inside = chain(low, (operator.le, lambda: x), (operator.le, lambda: high))
        number: Any = x
        return and_(inside, lambda: (number - low) % step == 0)
    return any_([x == v for v in among])


def not_in(x: Leaf, among: Any) -> Any:
    """`x not in among`."""
    return not_(in_(x, among))


slice_ = builtins.slice


def loaded(v: Any) -> Any:
    """What a variable or an attribute holds; of an array that is an input, the staged one."""
    if type(v) is not np.ndarray:
        return v
    level = input_level(v)
    return v if level is None else level.input(v)


def item(x: Any, at: Any) -> Any:
    """`x[at]`; of constants too, at a staged place."""
    held, place = x, at
    if type(at) is OneOf and isinstance(x, dict):
        return _each(at, lambda key: held[key], held)
    kind = type(x)
    if kind is tuple or kind is list:
        place = at = lists.one_place(at)
    table = kind is np.ndarray or (issubclass(kind, list | tuple) and not issubclass(kind, Stacked))
    if table and sequences.is_place(at):
        return sequences.constant_at(x, at)
    if isinstance(x, np.dtype) and isinstance(at, list):
        return held[[*place]]  # a dtype takes no class of lists but Python's own
    return held[place]


def is_sequence(x: Leaf, n: int) -> bool:
    """Whether a pattern of so many parts may match."""
    return isinstance(x, Sequence) and not isinstance(x, str | bytes | bytearray) and len(x) == n


def chain(left: object, *steps: tuple[Callable[[Any, Any], Any], Callable[[], Any]]) -> Any:
    """`left < a < b`: each operand is evaluated once, and as long as all holds."""
    (act, right), *others = steps
    value = right()
    holds = act(left, value)
    return holds if not others else and_(holds, lambda: chain(value, *others))


def assert_(test: object, message: Callable[[], Any] | None) -> None:
    """`assert test, message`."""
    t = truth(test)
    if is_staged(t):
        said = [] if message is None else [message()]
        check(op("logical_not")(t), AssertionError(*said), user_line())
    elif not t:
        said = [] if message is None else [message()]
        raise raised_by_python(AssertionError(*said), user_line())


# --- builtins -------------------------------------------------------------------------------------


folds_: folds.Folds = folds.Folds(for_, choose)
NOTHING = folds.NOTHING
empty = folds.empty


def fold(
    name: str, f: object, items: Callable[[], Any], run: Callable[[Any], Any],
    otherwise: Callable[[], Any],
) -> Any:  # fmt: skip
    """A call of f on a generator expression: the loop that it is, where f is the builtin one."""
    is_own = f is _FOLDED[name] or f is getattr(builtins, name)
    return run(items()) if is_own else otherwise()


def _until(decides: bool, combined: Callable[..., Any]) -> Any:
    """`any` (until one is true) or `all` (until one is false), of staged values too."""

    @functools.wraps(any if decides else all)
    def call(values: Any, /) -> Any:
        if isinstance(values, Traced) and len(values.shape) == 1:
            return _truth_value(truth(np.any(values) if decides else np.all(values)))
        items = values if isinstance(values, Consumed) else Consumed(values)
        iterators = [] if items is values else _advanced(values, items.items)
        for v in items:
            t = truth(v)
            if is_staged(t):
                any_or_all = _truth_value(combined(t, lambda: call(items)))
                _refuse_use(iterators)
                return any_or_all
            if t is decides:
                return decides
        return not decides

    return call


any_: Callable[[Any], Any] = _until(True, or_)
all_: Callable[[Any], Any] = _until(False, and_)
_FOLDED = {"sum": folds_.sum, "max": folds_.max, "min": folds_.min, "any": any_, "all": all_}


def len_(x: Sized, /) -> Any:
    """`len`, of a list too whose length depends on values."""
    return x.length if isinstance(x, Stacked) else builtins.len(x)


def _truth_value(t: Any) -> Any:
    return t.level.number(t.v, True) if is_staged(t) else t


_OF_MODULES = (  # functions that are met as attributes of modules
    (warnings.warn, output.warn),
    (operator.is_, is_),
    (operator.is_not, is_not),
    *folds_.of_modules,
    *sequences.OF_NUMPY,
)

try_ = tries.try_
raised_in_try = regions.raised_in_try

BUILTINS = (
    *outside.ONCE,
    (builtins.range, sequences.range_),
    (builtins.enumerate, sequences.enumerate_),
    (builtins.zip, sequences.zip_),
    (builtins.map, map_),
    (builtins.reversed, sequences.reversed_),
    *folds_.builtins,
    (builtins.any, any_),
    (builtins.all, all_),
    (builtins.bool, constructor(builtins.bool, lambda x: _truth_value(truth(x)))),
    *_OF_MODULES,
    *whole_numbers.BUILTINS,
    *output.BUILTINS,
    (builtins.len, len_),
)

__all__ = ["BREAK", "BUILTINS", "CONTINUE", "Return", "called", "collected", "truth"]

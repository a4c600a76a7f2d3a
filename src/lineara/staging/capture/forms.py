"""The forms that structured code calls: Python's own, unless a staged value decides.

`lineara.python.structured_code` says what it makes of branches and loops.  Each form here does what
the statement does in Python where that is known while the program is written, and else writes the
structured form.
"""

import builtins
import functools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias

from lineara.errors import LinearaError, StagingError, user_line
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.python.number_classes import constructor
from lineara.python.user_code import reading
from lineara.staging import texts
from lineara.staging.capture import output, outside, sequences, whole_numbers
from lineara.staging.capture.branches import (
    branch,
    check,
    follow,
    is_staged,
    level_of_trace,
    result,
    truth,
    without,
)
from lineara.staging.capture.calls import called
from lineara.staging.capture.containers import Consumed
from lineara.staging.capture.loops import Loop
from lineara.staging.capture.sequences import items_of
from lineara.staging.capture.variables import (
    BREAK,
    BROKEN,
    CONTINUE,
    CONTINUED,
    Mixed,
    Return,
    Variables,
    Way,
)
from lineara.staging.control_flow import tracing
from lineara.tape.levels import threads

WRITTEN_OUT = 3  # rounds; a loop of so few is written out
FORM, BRANCH = "form", "branch"  # what statements became that are forms of the program
ATTEMPTS = 2  # how often a loop is tried as a form before its rounds are written out

Block: TypeAlias = Callable[[], Any] | None  # of statements, where there are any


def _as_form(body: Any, write: Callable[[], Way], must: object = False) -> tuple[bool, Way]:
    """Try to write a loop as a form; if that cannot be done all is as it was.

    One that has been tried often is tried again only if it `must` be a form.
    """
    level, refusals = tracing(), _refusals(body)
    if level is None or (len(refusals) >= ATTEMPTS and not must):
        return False, None
    refused, mark, bindings = [*threads.refused], level.mark(), len(level.out.bindings)
    try:
        way = write()
        note(body, FORM)
        return True, way
    except Exception as e:  # whatever comes of it: the rounds in Python tell what it is
        if isinstance(e, StagingError) and e.final:
            raise
        refusals.append(e)
        threads.refused[:] = refused
        level.back_to(mark)
        del level.out.bindings[bindings:]
        return False, None


def note(block: Any, what: object) -> None:
    """Remember what a statement became, of which this is a block: a form in one call is one."""
    now = reading()
    if now is not None and now.statements.get(block.__code__) is not FORM:
        now.statements[block.__code__] = what


def _refusals(body: Any) -> list[Exception]:
    """Why a loop could not be a form in this trace."""
    now = reading()
    assert now is not None, "forms are called where functions are read"
    return now.refusals[body.__code__]


def _refuse(body: Any) -> NoReturn:
    """Refuse a loop that can be nothing but a form."""
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
        return follow((then if t else orelse)(), rest, variables)
    note(then if then is not _nothing else orelse, BRANCH)
    return follow(branch(t, then, orelse, variables), rest, variables)


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
    while True:
        before = variables.all()
        go = truth(test())
        if not is_staged(go) and not go:
            return None
        must = is_staged(go)
        loop = lambda g=go: Loop(variables, body, None, None, test, g).write()  # noqa: E731
        done, way = _as_form(body, loop, must)
        if done:
            return way
        if must:
            variables.reset(before)
            _refuse(body)
        way = body()
        if isinstance(way, Mixed):
            return follow(
                without(way, variables, CONTINUED),
                lambda: _rounds_while(test, body, variables),
                variables,
            )
        if way is BREAK or isinstance(way, Return):
            return way


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
    note(body, type(iterable) if items is None else items.rounds)
    if items is None:
        way = _rounds(iter(iterable), body, variables)
    elif is_staged(items.rounds):
        go = op("less")(0, items.rounds)
        loop = lambda: Loop(variables, body, items.at, items.rounds, None, go).write()  # noqa: E731
        done, way = _as_form(body, loop, must=True)
        if not done:
            _refuse(body)
    else:
        way = _numbered(items, 0, body, variables)
    return _after(way, orelse, rest, variables)


def _numbered(items: Any, first: int, body: Callable[..., Any], variables: Variables) -> Way:
    """Rounds whose items have numbers, from one of them on."""
    n = items.rounds
    for k in range(first, n):
        if n - k > WRITTEN_OUT:
            at = items.at if k == 0 else (lambda i, k=k: items.at(i + k))
            done, way = _as_form(
                body, lambda at=at, k=k: Loop(variables, body, at, n - k, None, True).write()
            )
            if done:
                return way
        way = body(items.at(k))
        if isinstance(way, Mixed):
            more = lambda k=k: _numbered(items, k + 1, body, variables)  # noqa: E731
            return follow(without(way, variables, CONTINUED), more, variables)
        if way is BREAK or isinstance(way, Return):
            return way
    return None


def _rounds(items: Iterator[Any], body: Callable[..., Any], variables: Variables) -> Way:
    """Rounds over what Python goes through."""
    for item in items:
        way = body(item)
        if isinstance(way, Mixed):
            more = lambda: _rounds(items, body, variables)  # noqa: E731
            return follow(without(way, variables, CONTINUED), more, variables)
        if way is BREAK or isinstance(way, Return):
            return way
    return None


def _after(way: Way, orelse: Block, rest: Block, variables: Variables) -> Way:
    """What comes after a loop that was left so; a break in its else is one of a loop around."""
    exits = BROKEN, CONTINUED
    if orelse is None:
        way = without(way, variables, *exits)
    else:
        way = follow(way, orelse, variables, exits)
    return follow(way, rest, variables)


# --- expressions ----------------------------------------------------------------------------------

NONE = Variables(())
text, percent = texts.text, texts.percent


def asked(f: Callable[..., Any]) -> Any:
    """What is called, where it may be."""
    return output.warn if f is warnings.warn else texts.asked(outside.asked(f))


def choose(test: object, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """`then if test else orelse`."""
    t = truth(test)
    if not is_staged(t):
        return then() if t else orelse()
    return result(branch(t, lambda: Return(then()), lambda: Return(orelse()), NONE))


def and_(first: object, *others: Callable[[], Any]) -> Any:
    """`first and …`: the first that is false, or the last."""
    if not others:
        return first
    return choose(first, lambda: and_(others[0](), *others[1:]), lambda: first)


def or_(first: object, *others: Callable[[], Any]) -> Any:
    """`first or …`: the first that is true, or the last."""
    if not others:
        return first
    return choose(first, lambda: first, lambda: or_(others[0](), *others[1:]))


def not_(x: Leaf) -> Any:
    """`not x`."""
    t = truth(x)
    if not is_staged(t):
        return not t
    return _truth_value(op("logical_not")(t))


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
        raise AssertionError(*(() if message is None else (message(),)))


# --- builtins -------------------------------------------------------------------------------------


def _extreme(original: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Any:
    """`max` or `min`, of staged numbers too."""

    @functools.wraps(original)
    def call(first: Any, *others: Any, **options: Any) -> Any:
        values = [first, *others] if others else [*first]
        if options or not any(map(is_staged, values)):
            return original(first, *others, **options) if others else original(values, **options)
        best = values[0]
        for v in values[1:]:
            best = choose(better(v, best), lambda v=v: v, lambda b=best: b)
        return best

    return call


max_, min_ = _extreme(builtins.max, operator.gt), _extreme(builtins.min, operator.lt)


def _until(decides: bool, combined: Callable[..., Any]) -> Any:
    """`any` (until one is true) or `all` (until one is false), of staged values too."""

    @functools.wraps(any if decides else all)
    def call(values: Any, /) -> Any:
        items = values if isinstance(values, Consumed) else Consumed(values)
        for v in items:
            t = truth(v)
            if is_staged(t):
                return _truth_value(combined(t, lambda: call(items)))
            if t is decides:
                return decides
        return not decides

    return call


any_, all_ = _until(True, or_), _until(False, and_)


def _truth_value(t: Any) -> Any:
    return t.level.number(t.v, True) if is_staged(t) else t


BUILTINS = (
    *outside.ONCE,
    (builtins.range, sequences.range_),
    (builtins.enumerate, sequences.enumerate_),
    (builtins.zip, sequences.zip_),
    (builtins.reversed, sequences.reversed_),
    (builtins.max, max_),
    (builtins.min, min_),
    (builtins.any, any_),
    (builtins.all, all_),
    (builtins.bool, constructor(builtins.bool, lambda x: _truth_value(truth(x)))),
    *whole_numbers.BUILTINS,
    *output.BUILTINS,
)

__all__ = ["BREAK", "BUILTINS", "CONTINUE", "Return", "called"]

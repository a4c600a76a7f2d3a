"""`try`: handlers of what may be raised as the program runs are branches on the way out.

What is known while the program is written is Python's: an exception that is raised whatever the
values goes to its handler there.  `lineara.staging.capture.regions` says what becomes of the rest.
"""

import sys
from collections.abc import Callable, Sequence
from types import CellType, FrameType
from typing import Any, NamedTuple

from lineara.errors import LinearaError
from lineara.python.user_code import Reading, reading
from lineara.staging.capture.branches import branch, follow
from lineara.staging.capture.conds import decoded
from lineara.staging.capture.containers import Remembers
from lineara.staging.capture.list_items import Wanted
from lineara.staging.capture.raises import as_python_raises
from lineara.staging.capture.regions import (
    Codes,
    Region,
    is_one_of,
    settled,
    site_of,
    unwound,
)
from lineara.staging.capture.variables import (
    RAISED,
    UNSET,
    Mixed,
    Variables,
    Way,
    codes,
    put,
)
from lineara.staging.control_flow import Unknown
from lineara.staging.texts import LINE
from lineara.tape.swallowed_errors import met_by_traced, told

Block = Callable[..., Any]


class Handler(Remembers):
    """One `except`: what it catches, what it does, and the variable that holds the exception.

    kinds   gives its classes, None where it catches all
    asks    whether it may ask which exception it is
    """

    kinds: Callable[[], Any] | None
    name: str
    block: Block
    asks: bool

    def __init__(
        self, kinds: Callable[[], Any] | None, block: Block, name: str, asks: bool
    ) -> None:
        self.kinds, self.block, self.name, self.asks = kinds, block, name, asks
        self.f = block

    def catches(self, kind: type[BaseException]) -> bool:
        """Whether it catches exceptions of a class."""
        return self.kinds is None or issubclass(kind, self.kinds())

    def run(self, error: BaseException) -> Way:
        """Handle an exception."""
        code, cells = self.block.__code__, self.block.__closure__ or ()
        own = dict(zip(code.co_freevars, cells, strict=True)).get(self.name)
        try:
            return self.block(error)
        finally:
            if isinstance(own, CellType):  # as at the end of `except … as e`
                put(own, UNSET)


class Try(NamedTuple):
    """A try whose block is being written."""

    handlers: Sequence[Handler]
    last: bool  # whether it has a `finally`, which is done whatever is raised
    frame: FrameType

    def catches(self, kind: type[BaseException]) -> bool:
        """Whether exceptions of a class do not simply pass."""
        return self.last or any([h.catches(kind) for h in self.handlers])


def try_(
    body: Block,
    handlers: Sequence[tuple[Any, Block, str, bool]],
    orelse: Block | None,
    final: Block | None,
    rest: Block | None,
    names: tuple[str, ...],
) -> Way:
    """`try: body() except …: handlers else: orelse() finally: final()`, and what follows."""
    each = [Handler(*h) for h in handlers]
    variables = Variables(names, body, *[h.block for h in each], orelse, final, rest)
    now, whole = reading(), lambda: _handled(body, each, orelse, variables)
    if now is None:
        return follow(_known(whole, final), rest, variables)
    if final is None:
        way = whole()
    else:
        way = _at_last(whole, [body, *[h.block for h in each], orelse], final, variables, now)
    return unwound(way, variables) if rest is None else follow(way, rest, variables)


def _known(whole: Callable[[], Way], final: Block | None) -> Way:
    """Where no function is read: Python's own."""
    try:
        return whole()
    finally:
        if final is not None:
            final()


def _at_last(
    whole: Callable[[], Way], blocks: Sequence[Any], final: Block, variables: Variables,
    now: Reading,
) -> Way:  # fmt: skip
    """A block, and what is done after it however it is left."""
    now.tries.append(Try((), True, sys._getframe()))
    try:
        way = Region(blocks, variables).run(whole, inline=True)
    except BaseException as error:
        now.tries.pop()
        if not isinstance(as_python_raises(error), LinearaError | Wanted | Unknown):
            final()
        raise
    now.tries.pop()
    before = variables.values()
    settled(way, variables)
    during = variables.values()
    unwound(final(), variables)
    after = variables.values()
    if isinstance(way, Mixed):  # what may have no value gets it where the code is known
        left = {n for n in way.perhaps if after.get(n) is during.get(n)}
        variables.set({n: before[n] for n in left if n in before})
        way = way._replace(perhaps={n: p for n, p in way.perhaps.items() if n in left})
    return way


def _handled(
    body: Block, handlers: Sequence[Handler], orelse: Block | None, variables: Variables
) -> Way:
    """A block with its handlers."""
    now = reading()
    if not handlers or now is None:
        return follow(body(), orelse, variables)
    now.tries.append(Try(handlers, False, sys._getframe()))
    try:
        way = Region([body, *[h.block for h in handlers], orelse], variables).run(body, inline=True)
    except Exception as error:
        now.tries.pop()
        e = as_python_raises(error)
        handler = next((h for h in handlers if h.catches(type(e))), None)
        if handler is None or (isinstance(e, LinearaError) and not _is_meant(handler, e)):
            raise
        if LINE not in vars(e) and met_by_traced(e):
            raise told(e) from e
        return handler.run(e)
    except BaseException:
        now.tries.pop()
        raise
    now.tries.pop()
    return _dispatched(way, handlers, orelse, variables)


def _is_meant(handler: Handler, error: LinearaError) -> bool:
    """Whether a handler names a class of ours, so that it means our refusals."""
    kinds = handler.kinds() if handler.kinds is not None else ()
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    return any([issubclass(k, LinearaError) and isinstance(error, k) for k in each])


def _dispatched(
    way: Way, handlers: Sequence[Handler], orelse: Block | None, variables: Variables
) -> Way:
    """What comes of a block that may be left by exceptions, of which handlers catch some."""
    for c in sorted(codes(way)):
        kind = type(site_of(c).error) if c >= RAISED else None
        handler = next((h for h in handlers if kind and h.catches(kind)), None)
        if handler is not None:
            mine = frozenset([c])
            if not handler.asks:
                mine |= {d for d in codes(way) if d >= RAISED and _first(d, handlers) is handler}
            return _one(way, handler, mine, handlers, orelse, variables)
    return follow(way, orelse, variables)


def _first(code: int, handlers: Sequence[Handler]) -> Handler | None:
    """The handler of an exception."""
    return next((h for h in handlers if h.catches(type(site_of(code).error))), None)


def _one(
    way: Way, handler: Handler, mine: Codes, handlers: Sequence[Handler], orelse: Block | None,
    variables: Variables,
) -> Way:  # fmt: skip
    """One handler where the block was left by these exceptions, or what else comes of it."""

    def handle() -> Way:
        if isinstance(way, Mixed):
            settled(decoded(way.code, UNSET, mine, way.perhaps, variables), variables)
        error = site_of(min(mine)).error.with_traceback(None)
        if len(mine) > 1:  # it asks for none of them
            return handler.run(error)
        try:
            raise error
        except BaseException as e:
            return handler.run(e)

    def others() -> Way:
        assert isinstance(way, Mixed), "there are others"
        left = decoded(way.code, way.value, way.codes - mine, way.perhaps, variables)
        return _dispatched(left, handlers, orelse, variables)

    if codes(way) == mine:
        return handle()
    assert isinstance(way, Mixed), "it has several codes"
    return branch(is_one_of(way.code, mine), handle, others, variables)


__all__ = ["try_"]

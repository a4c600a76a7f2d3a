"""Kinks: a policy decides where a function has no derivative, and counts how often it was asked."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import StructureError, TypeMismatchError, user_line
from lineara.facts.primitive import Primitive
from lineara.ops.kinks import KINKS
from lineara.rules.call_as_operation import copied
from lineara.tape.codegen import compared
from lineara.tape.levels import deciding, innermost_level
from lineara.tape.node import plain, staged

_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


class Hit(NamedTuple):
    """How often a kink was met at a line of the user's."""

    kink: str
    line: str
    times: int


def _known() -> dict[str, tuple[str, ...]]:
    """Each kink that can be decided, and the words for it; none where a number, the slope, is."""
    return {k.name: k.words for k in KINKS.values() if k.text is not None}


class kinks:  # a decorator is named as a function is
    """A policy for points where there is no derivative.

    Each keyword names a kink and says what the derivative is there:

    | keyword | where | choices | default |
    |---|---|---|---|
    | `abs` | `abs`, `fabs` at 0 | a number, the slope | 0 |
    | `sqrt` | `sqrt` at 0 | a number | infinity |
    | `power` | `x ** p` with 0 < p < 1, and `cbrt`, at x = 0 | a number | infinity |
    | `norm` | norms and `hypot` at 0 | `"zero"`, `"nan"` | `"zero"` |
    | `ties` | `maximum`, `minimum`, `max`, `min` of equals | `"equal"`, `"first"`, `"last"` | `"equal"` |
    | `clip` | the edges of `clip` | `"half"`, `"inside"` (of the value), `"outside"` (of the bound) | `"half"` |
    | `spectrum` | vectors of equal eigenvalues or singular values | `"nan"`, `"zero"` (they do not mix, which is right for a function of the other vectors) | `"nan"` |

    `policy(f)` is f under that policy in every differentiation, of any mode and order.
    `policy.hits` tells how often each kink was met, and where; so do, without a choice, equal
    values that `sort` puts in order, and comparisons (`branch`) of equal numbers, at which an
    `if` takes one side.  In a program that `lineara.trace` writes the choices hold, and nothing
    is counted.

    Errors: StructureError for a keyword that is no kink, TypeMismatchError for a choice that is none.

    >>> import numpy as np, lineara
    >>> policy = lineara.kinks(abs=1.0)
    >>> lineara.grad(policy(lambda x: np.sum(np.abs(x))))(np.array([0.0, -2.0, 0.0]))
    array([ 1., -1.,  1.])
    >>> [(hit.kink, hit.times) for hit in policy.hits]
    [('abs', 2)]
    """  # noqa: E501

    def __init__(self, **choices: Any) -> None:
        known = _known()
        for name, choice in choices.items():
            if name not in known:
                raise StructureError(
                    f"kinks: there is nothing to choose at {name!r}; "
                    f"the kinks with a choice are {', '.join(known)}"
                )
            words = known[name]
            number = isinstance(choice, int | float) and not isinstance(choice, bool)
            if choice not in words if words else not number:
                wanted = " or ".join(map(repr, words)) if words else "a number, the slope"
                raise TypeMismatchError(f"kinks: {name}={choice!r} is no choice; give {wanted}")
        self.choices = choices
        self._count: Counter[tuple[str, str]] = Counter()
        self._inside = False
        self.comparisons: dict[str, Any] = {
            f"__{name}__": self._comparison(name) for name in _COMPARED
        }

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function `f`, with this policy wherever it is differentiated."""

        @functools.wraps(f, updated=())
        def decided(*args: Any, **kwargs: Any) -> Any:
            with deciding(self):
                return (copied(f) if innermost_level() else f)(*args, **kwargs)

        return decided

    @property
    def hits(self) -> list[Hit]:
        """The kinks that were met since the policy was made, the most frequent first."""
        return [Hit(*where, count) for where, count in self._count.most_common()]

    def __repr__(self) -> str:
        given = [f"{name}={choice!r}" for name, choice in self.choices.items()]
        return f"lineara.kinks({', '.join(given)})"

    # --- while a function runs -----------------------------------------------------------------

    def apply(
        self, level: Any, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Apply a primitive at a level whose kinks this policy decides.

        What happens in it, at this level and further out, is not the user's and is not counted;
        an outer level meets the chosen text as any other text.
        """
        kink = KINKS.get(primitive.name)
        outermost, self._inside, level.kinks = not self._inside, True, None
        try:
            if kink is None:
                return level.apply(primitive, args, params)
            if outermost and not staged(args):
                values = [plain(a) for a in args]
                with np.errstate(all="ignore"):
                    y = primitive.evaluate(np, *values, **params)
                    self._add(kink.name, int(np.sum(kink.at(y, *values, **params))))
            choice = self.choices.get(kink.name, kink.default)
            if kink.text is None or choice == kink.default:
                return level.apply(primitive, args, params)
            return kink.text(choice, *args, **params)
        finally:
            self._inside, level.kinks = not outermost, self

    def _add(self, name: str, count: int) -> None:
        if count:
            self._count[name, user_line()] += count

    def _comparison(self, name: str) -> Any:
        def compare(a: object, b: object) -> Any:
            if not (self._inside or staged((a, b))):
                with contextlib.suppress(TypeError, ValueError):
                    self._add("branch", int(np.sum(np.equal(plain(a), plain(b)))))
            return compared(a, b, f"__{name}__")

        return compare

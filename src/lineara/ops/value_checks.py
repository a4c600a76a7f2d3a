"""What NumPy's functions raise, or warn of, by value: in a program a check, done as it runs.

    check_ValueError(x, fails)      x, but an exception where an element of `fails` is true
    check_RuntimeWarning(x, fails)  x, and a warning for each of these elements

    check_StagingError(x, fails)    x, which is refused there, if somebody uses it
    check_ProgramError(x, fails)    x, if there is room for it in the program, the same

What hangs on a value that is not known while a program is written is known when it runs.  A check
is the identity to every derivative, and but for the last two no dead code where nobody uses its
result.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import LinearaError, OutOfRoom, StagingError
from lineara.facts.hints import Namespace, Shaped, Value
from lineara.facts.primitive import Joint, Structural, op
from lineara.facts.types import ArrayType, type_of


class Check(Structural):
    """x, after a look at `fails`: of one kind of exceptions or warnings."""

    def __init__(self, kind: type[Exception]) -> None:
        super().__init__(f"check_{kind.__name__}")
        self.kind = kind
        # ours, of who reads x
        self.raised: tuple[type[Exception], ...] = () if issubclass(kind, LinearaError) else (kind,)

    def result(self, x: ArrayType, fails: Value, text: str, line: str = "") -> ArrayType:
        """The type of x."""
        if not isinstance(text, str):
            raise TypeError(f"{self.name}: the text of what it raises is {text!r}, which is none")
        return type_of(x)

    def evaluate(self, xp: Namespace, /, x: Value, fails: Shaped, text: str, line: str = "") -> Any:
        """x itself."""
        for _ in range(np.count_nonzero(fails)):
            said = self.kind(*([text] if text else []))
            if not isinstance(said, Warning):
                if line:
                    said.add_note(f"at {line}")
                raise said
            warnings.warn(said, stacklevel=2)
        return x

    def exceptions(
        self, kinds: Sequence[type], args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Where it raises, what, and with which arguments."""
        yield args[1], self.kind, [params["text"]] if params["text"] else []

    def keeps(self, place: int) -> bool:
        """Nothing is read again."""
        return False

    def linearize(
        self,
        y: Value,
        args: tuple[Any, ...],
        active: tuple[Any, ...],
        params: dict[str, Any],
        recur: Callable[..., Any],
    ) -> Joint:
        """The identity."""
        return Joint(lambda tangents: tangents[0], lambda y_bar: [y_bar])

    def transpose(self, y_bar: Value, /, *args: Any, **params: Any) -> tuple[Any, ...]:
        """The identity."""
        return (y_bar,)

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        """Every lane is looked at, as a loop over them would."""
        x, fails = args
        if not batched[0]:
            x = op("broadcast_to")(x, shape=(fails.shape[0], *type_of(x).shape))
        return self(x, fails, **params)


CHECKED: tuple[Any, ...] = (RuntimeWarning, np.linalg.LinAlgError, StagingError, OutOfRoom)
CHECKED += (ArithmeticError, AssertionError, Exception, FloatingPointError, IndexError, KeyError)
CHECKED += (LookupError, NotImplementedError, OverflowError, RuntimeError, TypeError, ValueError)
CHECKED += (NameError, UnboundLocalError, ZeroDivisionError)
for _kind in CHECKED:
    Check(_kind)


def checked(x: Value, fails: object, kind: type[Exception], text: str, **line: str) -> Any:
    """x; where an element of `fails` is true the exception is raised, or the warning given.

    An exception may have a note with the `line` that raises it.
    """
    return op(f"check_{kind.__name__}")(x, fails, text=text, **line)


__all__ = ["CHECKED", "checked"]

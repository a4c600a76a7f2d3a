"""Calls of NumPy's and SciPy's functions with random shapes and parameters.

A line of `random_calls.txt` is a call.  What stands in braces is drawn: `{x()}` an array that is
differentiated, of the shape of the call, `{like()}` one that broadcasts with it, `{mask()}` flags,
`{axis()}` one, several or no axes, `{some(a, b)}` one of these, `{maybe(t)}` the text or nothing.
In front stands how many axes the shape has, with `,0` behind it if it may be empty.
"""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy

TEMPLATES = Path(__file__).with_suffix(".txt")
BINARY = """
add subtract multiply divide power maximum fmin hypot arctan2 logaddexp copysign fmod remainder
"""
METHODS = ("linear", "linear", "lower", "higher", "midpoint", "hazen", "weibull", "median_unbiased")
BOUNDARIES = ("reflect", "constant", "nearest", "mirror", "wrap")


def lines() -> list[str]:
    """The calls."""
    text = TEMPLATES.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


class Drawn:
    """One call: its text, what is differentiated and what is constant."""

    def __init__(self, seed: int) -> None:
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.arrays: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.template = self.random.choice(lines())
        axes, call = self.template.split(" ", 1)
        low, high = map(int, axes.partition(",")[0].split("-"))
        sizes = [0] * axes.endswith(",0") + [1, 2, 3, 4] * 3
        self.shape = tuple(self.random.choice(sizes) for _ in range(self.random.randint(low, high)))
        self.first, self.last_size = (*self.shape, 1)[0], (1, *self.shape)[-1]
        self.last = len(self.shape) - 1
        self.text = re.sub(r"\{(.+?)\}", self._part, call)

    def _part(self, found: re.Match) -> str:
        space = {n: getattr(self, n) for n in dir(self) if not n.startswith("_")}
        return str(eval(found[1], space | {"np": np}))

    def function(self) -> Any:
        """The call as a function of what is differentiated."""
        return eval(f"lambda {', '.join(self.arrays)}: {self.text}", SPACE | self.constants)

    def x(
        self, low: float = -2.0, high: float = 2.0, make_complex: Any = None, of: Any = None
    ) -> str:
        """Numbers that are differentiated, in an array that may lie in memory in any way."""
        a: Any = self.numbers.uniform(low, high, self.shape if of is None else of)
        if make_complex is not None and make_complex():
            a = a + 1j * self.numbers.uniform(low, high, np.shape(a))
        if np.ndim(a) > 1:
            a = self.random.choice((a, a, np.asfortranarray(a), a[::-1]))
        name = f"x{len(self.arrays)}"
        self.arrays[name] = a
        return name

    def maybe_complex(self) -> bool:
        return self.random.random() < 0.3

    def like(self, low: float = -2.0, high: float = 2.0) -> str:
        return self.x(low, high, of=self.broadcast(self.shape))

    def operand(self) -> str:
        numbers = self.whole(1, 4, self.broadcast(self.shape))
        return self.random.choice((self.like(0.2, 2.0), self.like(0.2, 2.0), numbers, "1.5", "2"))

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def whole(self, low: int, high: int, shape: Any) -> str:
        return self.constant(self.numbers.integers(low, high, shape))

    def mask(self, shape: Any = None) -> str:
        shape = self.broadcast(self.shape) if shape is None else shape
        return self.constant(np.asarray(self.numbers.random(shape) < 0.6))

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        kept = tuple(1 if self.random.random() < 0.3 else n for n in shape)
        return kept[self.random.randint(0, len(kept)) :] if self.random.random() < 0.3 else kept

    def some(self, *choices: Any) -> Any:
        words = choices[0].split() if len(choices) == 1 else choices
        return self.random.choice(words)

    def maybe(self, text: str) -> str:
        return text if self.random.random() < 0.4 else ""

    def binary(self) -> str:
        return self.some(BINARY)

    def one(self) -> int:
        n = len(self.shape)
        return self.random.randrange(-n, n)

    def two(self) -> tuple[int, ...]:
        return tuple(self.random.sample(range(len(self.shape)), 2))

    def order(self) -> tuple[int, ...]:
        return tuple(self.random.sample(range(len(self.shape)), len(self.shape)))

    def axis(self) -> Any:
        n = len(self.shape)
        several = tuple(self.random.sample(range(n), self.random.randint(min(n, 1), n)))
        return self.random.choice((None, several, self.one() if n else None))

    def keep(self) -> str:
        return self.maybe(", keepdims=True")

    def method(self) -> str:
        return f", method='{self.random.choice(METHODS)}'"

    def norm(self) -> str:
        return self.maybe(f", norm='{self.some('ortho forward backward')}'")

    def boundary(self) -> str:
        return f", mode='{self.random.choice(BOUNDARIES)}'"

    def law(self) -> str:
        return self.some("pdf logpdf cdf logcdf sf ppf")

    def places(self) -> list[int]:
        return [self.random.randrange(self.last_size) for _ in range(3)]

    def regular(self) -> str:
        return f"({self.x(-1.0, 1.0, of=(3, 3))} + 4 * np.eye(3))"

    def positive(self) -> str:
        return f"(lambda a: a @ a.T + 2 * np.eye(3))({self.x(-1.0, 1.0, of=(3, 3))})"

    def index(self) -> str:
        """One part for some of the axes, of any kind."""
        parts = []
        for n in self.shape[: self.random.randint(1, len(self.shape))]:
            ends = [self.random.choice(("", self.random.randint(-n, n))) for _ in range(2)]
            parts.append(
                self.random.choice(
                    (
                        str(self.random.randrange(-n, n)),
                        f"{ends[0]}:{ends[1]}{self.random.choice(('', ':2', ':-1'))}",
                        self.whole(-n, n, self.random.choice(((2,), (1,), (2, 1)))),
                        self.mask((n,)),
                        "None",
                        ":",
                    )
                )
            )
        return ", ".join(parts + ["..."] * (self.random.random() < 0.2))


def at(ufunc: Any, x: Any, places: Any, values: Any) -> Any:
    """`ufunc.at` on a copy."""
    x = x.copy()
    ufunc.at(x, places, values)
    return x


def written(x: Any, at: Any, value: Any, how: str) -> Any:
    """A copy that is written at an index."""
    scope = {"x": x.copy(), "at": at, "value": value}
    exec(f"x[at] {how} value", scope)
    return scope["x"]


def done(function: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function that writes into an array leaves in a copy."""
    x = x.copy()
    function(x, *args, **kwargs)
    return x


SPACE = {"np": np, "scipy": scipy, "inf": np.inf, "at": at, "written": written, "done": done}

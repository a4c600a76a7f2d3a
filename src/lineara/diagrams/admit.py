"""Rules as text, and what is asked of a rule before it is used  [Diagrams].

    rule NAME [finite_math]
      left diagram
    ==>                        or = where both directions may be used
      right diagram

Both sides must be well formed and have the same interface, the left one must have nodes, and on
random numbers, infinities and NaN among them, both must compute the same.

>>> [r.name for r in read("rule n\\n(x: R) => y = negative(x) z = negative(y) -> z\\n==>\\n"
...                       "(x: R) => -> x")]
['n']
"""

import functools
import math
import random
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from lineara.diagrams.check import check
from lineara.diagrams.evaluate import Evaluator, evaluate
from lineara.diagrams.net import Net, nodes_in
from lineara.diagrams.parse import parse
from lineara.diagrams.refuse import refusing
from lineara.diagrams.rewrite import Rule
from lineara.diagrams.types import Arrow, B, Base, R, Type, Z, array_of, show, show_all
from lineara.errors import DiagramError
from lineara.facts.hints import Shaped, Value

TRIES = 60
_SPECIAL = (0.0, 1.0, -1.0, math.inf, -math.inf, math.nan)


@refusing
def read(text: str, file: str = "") -> list[Rule]:
    r"""The rules of a text, each admitted; a DiagramError for the first that is not sound.

    >>> swap = "(a: R, b: R) => c = add(b, a) -> c"
    >>> [rule.name for rule in read(f"rule swapped\n(a: R, b: R) => c = add(a, b) -> c\n=\n{swap}")]
    ['swapped']
    """
    rules = []
    heads = list(re.finditer(r"^rule[ \t]+(\S+)[ \t]*(\S*)[ \t]*$", text, re.MULTILINE))
    if not heads:
        raise DiagramError(
            f"{file or 'the text'}: there is no rule; one is `rule name`, a diagram, `==>` or `=`, "
            "and a diagram"
        )
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        end = len(text) if after is None else after.start()
        rules.append(_rule(text, file, head, end))
    return rules


def _rule(text: str, file: str, head: re.Match[str], end: int) -> Rule:
    name, mark = head.groups()
    arrow = re.compile(r"^[ \t]*(==>|=)[ \t]*$", re.MULTILINE).search(text, head.end(), end)
    if arrow is None or mark not in ("", "finite_math"):
        what = f"{mark} is no mark of a rule; there is finite_math" if mark else ""
        raise DiagramError(f"{name}: {what or 'between its sides stands a line ==> or ='}")
    left = _placed(text, file, head.end(), arrow.start())
    right = _placed(text, file, arrow.end(), end)
    return admit(Rule(name, left, right, mark == "finite_math", arrow.group(1) == "="))


def _placed(text: str, file: str, start: int, stop: int) -> Net:
    """A side, parsed so that an error shows the line of the file."""
    before = "\n" * text.count("\n", 0, start)
    return parse(before + text[start:stop].rstrip(), file)


@functools.cache
def standard() -> tuple[Rule, ...]:
    """The rules that come with the library.

    >>> "neg-neg" in [r.name for r in standard()]
    True
    """
    folder = resources.files("lineara.diagrams") / "rules"
    files = sorted(folder.iterdir(), key=lambda f: f.name)
    return tuple(
        [r for f in files if f.name.endswith(".rules") for r in read(f.read_text("utf-8"), f.name)]
    )


def admit(rule: Rule) -> Rule:
    """The rule itself, if it is sound as far as can be seen; else a DiagramError says why not."""
    left, right = rule.left, rule.right
    for side in (left, right):
        check(side)
    if (left.takes, left.gives) != (right.takes, right.gives):
        raise DiagramError(
            f"{rule.name}: the left side is ({show_all(left.takes)}) to ({show_all(left.gives)}), "
            f"the right one ({show_all(right.takes)}) to ({show_all(right.gives)}); both sides "
            "have the same border"
        )
    if not left.nodes or any([w in left.outputs for w in left.inputs]):
        raise DiagramError(
            f"{rule.name}: a bare wire on the left matches everywhere; say which node is rewritten"
        )
    if any([n.kind == "frame" for n in nodes_in(left)]):
        return rule  # a scheme: its bodies are not known
    _tried(rule)
    return rule


def _tried(rule: Rule) -> None:
    rng = random.Random(rule.name)
    for i in range(TRIES):
        special = i % 2 == 1 and not rule.finite_math
        args = [sample(t, rng, special, rule.name) for t in rule.left.takes]
        a, b = evaluate(rule.left, *args), evaluate(rule.right, *args)
        for x, y, t in zip(a, b, rule.left.gives, strict=True):
            if not agree(x, y, t, rng):
                shown = ", ".join([_shown(v) for v in args])
                mend = (
                    "; if that is because of an infinity or a NaN, mark it finite_math"
                    if special
                    else ""
                )
                raise DiagramError(
                    f"{rule.name} is not sound: at ({shown}) the left side is {_shown(x)} and the "
                    f"right one {_shown(y)}{mend}"
                )


def _shown(x: Value) -> str:
    return f"{x:.6g}" if isinstance(x, float) else repr(x)


def sample(t: Type, rng: random.Random, special: bool, name: str) -> Any:
    """A random value of a type; `special` ones are infinities and NaN among others."""
    if t == R:
        return rng.choice(_SPECIAL) if special and rng.random() < 0.5 else rng.uniform(-2, 2)
    if t == B:
        return rng.random() < 0.5
    if t == Z:
        return rng.randrange(-5, 6)
    if isinstance(t, Arrow) and all([s == R for s in (*t.source, *t.target)]):
        weights = [[rng.uniform(-1, 1) for _ in range(len(t.source) + 1)] for _ in t.target]

        def f(*xs: float) -> tuple[float, ...]:
            return tuple(
                [w[0] + sum([v * x for v, x in zip(w[1:], xs, strict=True)]) for w in weights]
            )

        return f
    if isinstance(t, Base) and t.name not in ("E",) and array_of(t).dtype.kind == "f":
        shape = array_of(t).shape
        return np.array([rng.uniform(-2, 2) for _ in range(math.prod(shape))]).reshape(shape)
    raise DiagramError(
        f"{name}: a wire of the type {show(t)} cannot be tried on random values; write a schema"
    )


def agree(x: Shaped, y: Shaped, t: Type, rng: random.Random) -> bool:
    """Whether two values agree to nine digits; functions are compared at random arguments."""
    if isinstance(t, Arrow):
        args = [sample(s, rng, False, "a rule") for s in t.source]
        results = [Evaluator().apply(f, *args) for f in (x, y)]
        return all([agree(a, b, s, rng) for a, b, s in zip(*results, t.target, strict=True)])
    return bool(np.allclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True))


def named(*names: str) -> list[Rule]:
    """The rules of these names, of those that come with the library."""
    known = {r.name: r for r in standard()}
    missing = [n for n in names if n not in known]
    if missing:
        raise DiagramError(f"there is no rule {missing[0]}; there are {', '.join(known)}")
    return [known[n] for n in names]


def oriented(finite_math: bool = False) -> Sequence[Rule]:
    """The rules from left to right that may be used; with `finite_math` all of them."""
    return [r for r in standard() if not r.both and (finite_math or not r.finite_math)]

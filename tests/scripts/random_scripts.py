"""Random scripts as people write them: layouts, views, writes, containers, exceptions, numbers.

A script is a function of an array and a number.  It notes on its way what it sees: texts of values,
names of types, the exceptions that it caught, the branches that it took.
"""

import dataclasses
import linecache
import math
import random
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np

Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class Model:
    """A container of the user's."""

    weight: Any
    offset: Any


NAMES = {
    "math": math,
    "np": np,
    "Pair": Pair,
    "Model": Model,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
}
# Matrices of the shape (2, 3) from others: of many layouts, views and copies.
MATRICES = """
np.stack([x, 2 * x], axis=0)
np.stack([x, s * x], axis=-1).T
np.array([x, x[::-1]])
np.array([[s, 1.5, x[0]], [x[1], s, 2]])
np.outer([1.0, s], x)
np.ones((2, 3)) * s
np.zeros((3, 2)).T + x
np.broadcast_to(x, (2, 3)) * 1
np.sort({m}, axis=1)
np.take({m}, [1, 0], axis=0)
np.concatenate([{m}[1:], {m}[:1]])
np.where({m} > {t}, {m}, {n})
np.roll({m}, 1, axis=1)
np.cumsum({m}, axis=0)
np.median([{m}, {n}, 2 * {m}], axis=0)
np.asfortranarray({m})
np.insert({m}[:, :2], 1, {t}, axis=1)
np.delete(np.hstack([{m}, {n}]), [0, 2, 4], axis=1)
np.array([list(r) for r in {m}])
np.gradient({m}, axis=1)
np.clip({m}, -1.5, {t})
np.flip({m}, 0)
np.linalg.qr(np.vstack([{m}, np.eye(3)]))[1][:2]
np.interp({m}, [-2, 0, 1, 3], [0, 1, {t}, 3])
np.tril({m}) + np.vander({v}[:2], 3)
{m}.copy(order="F")
{m}.reshape(3, 2).T
{m}.T.reshape(2, 3)
{m}.ravel(order="F").reshape(2, 3)
{m}[::-1]
{m}[:, ::-1]
{m}[...]
{m}.astype(np.float32).astype(float)
{m} + {n}
{m} * {n}
{m} - {t}
{m} / (1 + {n} ** 2)
np.sin({m})
np.exp(-{m} * {m})
np.maximum({m}, {n})
np.hypot({m}, {t})
np.arctan2({m}, {n})
np.float32({t}) * {m}
"""
VECTORS = """
x * s
x[::-1]
{m}[0]
{m}[:, 1:].ravel()[:3]
{m}.T[:, 1]
{m}.ravel("K")[:3]
{m}.sum(axis=0)
np.diag({m} @ np.ones((3, 3)))[:1] * x
np.sort({v})
np.convolve({v}, [0.5, 1, 0.5], "same")
np.array([{t}, {t} * 2, s])
np.asarray([v for v in {v}])
np.array({v}.tolist())
np.std({m}, axis=0)
np.append({v}[:2], {t})
{v} + {w}
np.cos({v})
np.dot({m}.T, {m}[:, 0])
{v} - {v}.mean()
"""
NUMBERS = """
s
{t} + {u}
{t} * {u}
{t} - 0.3
{t} / (1 + {u} * {u})
{t} ** 2
abs({t}) ** 1.5
math.sin({t})
math.exp(-abs({t}))
math.hypot({t}, {u})
math.tanh({t}) + math.atan2({t}, {u})
float({m}[0, 1])
{m}.item(4)
{v}[0]
{v}[-1] * 1.0
np.sum({m})
np.float64({t})
np.sqrt(1 + {t} ** 2)
{v}.tolist()[1]
sum({v}.tolist())
max({t}, {u})
min({v}.tolist())
{v}.mean()
np.linalg.norm({v})
-{t} if {t} < 0 else {t}
{t} % 1.7
math.fmod({t}, 2.0)
{t} * (({t} > 0) + ({t} > 1))
complex({t}, {u}).real * 2
abs(complex({t}, {u}))
sorted([{t}, {u}, s])[1]
math.fsum([{t}, {u}, 0.1])
"""
WRITES = """
{m}[0] = {v}
{m}[:, 1] *= {t}
{m} *= 0.5
{m} += {n}
{m}[1, 2] = {t}
{m}[[0, 1], [1, 0]] = {v}[:2]
{m}.T[2] -= {v}[:2]
{m}[{m} > 1] = {t}
{m}.flat[3] = {t}
{v}[0] = {t}
{v}[1:] += {v}[:-1]
{v} *= {t}
np.add({m}, {n}, out={m})
np.add.at({v}, [0, 0, 2], {t})
np.copyto({m}, {n}, where={n} > 0)
"""
# A write through what is a view or a copy, as NumPy decides.
THROUGH = """
r = {m}.ravel(); r *= 1.25
r = {m}.reshape(3, 2); r[0] = {t}
r = {m}.reshape(-1); r[::2] += {t}
r = {m}.T.ravel(); r *= 0.5
r = np.ravel({m}, order="F"); r[1] = {t}
r = {m}.T.reshape(6); r += 1
r = {m}[1:]; r[...] = {t}
r = {m}.view(); r[0, 0] = {t}
r = np.asarray({m}); r[1] *= 2
r = np.array({m}, copy=True); r[1] *= 2; {m} = {m} + r
r = np.squeeze({m}[:1]); r[2] = {t}
r = {m}.swapaxes(0, 1); r[1, 1] = {t}
r = {m}[:, [0, 2]]; r *= 3; {m} = {m} + r.sum()
"""
CAUGHT = (
    ("ZeroDivisionError", "{t} / ({u} - {u})"),
    ("ZeroDivisionError", "{t} % 0.0"),
    ("ZeroDivisionError", "0.0 ** -abs(1 + {t} * {t})"),
    ("ValueError", "math.sqrt(-1 - {t} * {t})"),
    ("ValueError", "math.log({t} - {t})"),
    ("OverflowError", "math.exp(800 + {t} * {t})"),
    ("OverflowError", "(10.0 + {t} * {t}) ** 400"),
    ("ValueError", "{m}.reshape(4, 2)"),
    ("ValueError", "{m} + {v}[:2]"),
    ("ValueError", "np.concatenate([{m}, {v}])"),
    ("IndexError", "{v}[7]"),
    ("IndexError", "{m}[:, 3]"),
    ("np.exceptions.AxisError", "np.sum({m}, axis=2)"),
    ("np.exceptions.AxisError", "np.median({m}, axis=2)"),
    ("np.linalg.LinAlgError", "np.linalg.inv(np.zeros((2, 2)) * {t})"),
    ("TypeError", "len({t})"),
    ("TypeError", "{t}[0]"),
    ("TypeError", "math.sin({v})"),
    ("AttributeError", "{t}.missing"),
    ("KeyError", "dict(a={t})['b']"),
    ("StopIteration", "next(iter([{t}][1:]))"),
    ("ValueError", "bool({m} > 0)"),
    ("ValueError", "[{t}].index({t} + 1)"),
    ("TypeError", "[1, 2][{t}]"),
    ("TypeError", "range({t})"),
    ("ValueError", "int(float('nan') * {t})"),
    ("TypeError", "{t} < 'a'"),
)
CONTAINERS = (
    ("dict(a={m}, b={t})", '{c}["a"] * 1', '{c}["b"]'),
    ("[{m}, {t}]", "{c}[0] + 0", "{c}[-1]"),
    ("({m}, {t})", "{c}[0][...]", "{c}[1]"),
    ("Pair({m}, {t})", "{c}.left - 1", "{c}.right"),
    ("Pair({m}, {t})._replace(right={u})", "{c}.left", "{c}.right"),
    ("Model({m}, {t})", "{c}.weight", "{c}.offset"),
    ("dataclasses_replace(Model({m}, {u}), offset={t})", "{c}.weight", "{c}.offset"),
    ("OrderedDict([('m', {m}), ('t', {t})])", '{c}["m"]', "next(reversed({c}.values()))"),
    ("defaultdict(float, m={m})", '{c}["m"]', '{c}["t"] + {t}'),
    ("dict(zip('ab', ({m}, {t})))", "list({c}.values())[0]", '{c}.get("b", 0.0)'),
    ("[[{m}], dict(t={t})]", "{c}[0][0]", '{c}[1]["t"]'),
)
SEEN = """
type({t}).__name__
type({m}).__name__
type({c}) is dict, type({c}) is list, type({c}) in (tuple, Pair)
isinstance({t}, float), isinstance({t}, np.floating), hasattr({t}, "dtype")
type({c}).__name__, isinstance({c}, (dict, OrderedDict))
str({t}), f"{{{t}:.4f}}"
{m}.shape, {m}.dtype.name
str({t} > 0), type({t} > 0).__name__
round(float({t}), 3), int({t}), math.floor({t})
[str(v) for v in {m}.ravel().tolist()]
[str(v) for v in {v}]
{t} == {t}, {t} is None, bool({t})
np.argmax({m}), np.argsort({v}).tolist()
float({t}).is_integer(), float({t}).hex()
type({t} + 1).__name__, type(np.sum({m})).__name__, type({m}[0, 0]).__name__
len({v}), {v}.ndim, np.shape({t})
np.shares_memory({m}, {m}) and {m}.size
{t} in ({t}, 3), [type(v).__name__ for v in ({t}, {v}[0], 1.5)]
"""


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


class Script:
    """A random script, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names: dict[str, list[str]] = {"m": [], "v": ["x0"], "t": ["s"], "c": []}
        self.lines: list[str] = ["x0 = x * 1.0"]
        self._bind("m", _lines(MATRICES)[: self.rng.randrange(1, 8)][-1])
        self._bind("c", "")
        for _ in range(self.rng.randrange(4, 12)):
            self._statement(0)
        sums = [f"np.sum({m})" for m in self.names["m"]] + [f"np.sum({v})" for v in self.names["v"]]
        total = " + ".join([f"math.tanh(float({t}))" for t in self.names["t"]])
        self.lines.append(f"return math.tanh(0.1 * float({' + '.join(sums)})) + {total}")
        body = "\n".join([f"    {line}" for line in self.lines])
        self.text = f"def script(x, s, note):\n{body}\n"
        self.file = f"<script {seed}>"

    def function(self) -> Any:
        """The script as a function of x, s and what notes."""
        linecache.cache[self.file] = (len(self.text), None, self.text.splitlines(True), self.file)
        space = NAMES | {"dataclasses_replace": dataclasses.replace, "__name__": "random_scripts"}
        exec(compile(self.text, self.file, "exec"), space)
        return space["script"]

    def _fill(self, form: str) -> str:
        """A form with names in place of its letters."""
        known = {k: v for k, v in self.names.items() if v}
        pick = {key: self.rng.choice(found) for key, found in known.items()}
        for other, key in (("n", "m"), ("w", "v"), ("u", "t")):
            pick[other] = self.rng.choice(known[key]) if key in known else ""
        return form.format(**pick)

    def _bind(self, kind: str, form: str, depth: int = 0) -> None:
        """A new name, or an old one again."""
        pad = "    " * depth
        if kind == "c":
            made, matrix, number = self.rng.choice(CONTAINERS)
            name = f"c{len(self.names['c'])}"
            self.lines.append(f"{pad}{name} = {self._fill(made)}")
            if not depth:
                self.names["c"].append(name)
                for key, part in (("m", matrix), ("t", number)):
                    new = f"{key}{len(self.names[key])}"
                    text = self._fill(part.replace("{c}", name))
                    self.lines.append(f"{pad}{new} = {text}")
                    self.names[key].append(new)
            return
        value = self._fill(form)
        old = [n for n in self.names[kind] if n not in ("s",)]
        name = f"{kind}{len(self.names[kind])}"
        if depth or (old and self.rng.random() < 0.3):
            name = self.rng.choice(old) if old else "_"
        self.lines.append(f"{pad}{name} = {value}")
        if name not in self.names[kind] and name != "_":
            self.names[kind].append(name)

    def _statement(self, depth: int) -> None:
        """One statement, which may hold others."""
        rng, pad = self.rng, "    " * depth
        which = rng.random()
        if which < 0.2:
            self._bind("m", rng.choice(_lines(MATRICES)), depth)
        elif which < 0.3:
            self._bind("v", rng.choice(_lines(VECTORS)), depth)
        elif which < 0.45:
            self._bind("t", rng.choice(_lines(NUMBERS)), depth)
        elif which < 0.55:
            self.lines.append(pad + self._fill(rng.choice(_lines(WRITES))))
        elif which < 0.65:
            for part in self._fill(rng.choice(_lines(THROUGH))).split("; "):
                self.lines.append(pad + part)
        elif which < 0.72:
            self._bind("c", "", depth)
        elif which < 0.85:
            self.lines.append(f"{pad}note({self._fill(rng.choice(_lines(SEEN)))})")
        elif which < 0.93 or depth > 1:
            self._caught(depth)
        else:
            self._branch(depth)

    def _caught(self, depth: int) -> None:
        pad, (error, form) = "    " * depth, self.rng.choice(CAUGHT)
        name = self.rng.choice([n for n in self.names["t"] if n != "s"] or ["_"])
        self.lines += [f"{pad}try:", f"{pad}    {name} = {self._fill(form)}"]
        self.lines += [f"{pad}    note('went on')", f"{pad}except {error} as error:"]
        self.lines += [f"{pad}    note(isinstance(error, {error}))"]
        self._bind("t", self.rng.choice(_lines(NUMBERS)), depth + 1)

    def _branch(self, depth: int) -> None:
        pad = "    " * depth
        head = self.rng.choice(["if {t} > {u}:", "if {m}[0, 0] < {t}:", "for i in range(2):"])
        self.lines.append(pad + self._fill(head))
        for _ in range(self.rng.randrange(1, 3)):
            self._statement(depth + 1)
        self.lines.append(f"{pad}    note({self.lines.__len__()})")

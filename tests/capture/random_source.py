"""Random plain Python functions of a vector, a number and a small int, as text: control flow.

They branch and loop as people do: by values, by counters and flags, with early exits; they write
arrays by element, slice and through views and other names of them, call helpers and closures, and
keep values in tuples, lists, dicts and objects, which they change.  Every program ends, and what
is kept is bounded.
"""

import importlib.util
import itertools
import random
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

DEPTH = 3  # how deep statements nest
SCALARS = """
    np.sin({})
    np.cos({})
    np.tanh({})
    -{}
    0.5 * {}
    {0} / (1 + {1} * {1})
    abs({})
    {} + {}
    {} - {}
    {} * {}
    max({}, {})
    min({}, {})
    float({})
    np.sqrt(1 + {0} * {0})
    np.exp(-abs({}))
    {} ** 2
""".strip().split("\n")
BOUNDED = """
    np.sin({})
    np.tanh({})
    np.cos({} + {})
    {0} / (1 + {0} * {0})
    0.3 * np.sin({}) + 0.5 * np.tanh({})
""".strip().split("\n")
ARRAYS = """
    np.sin({})
    np.tanh({} + {})
    np.cos({}) * {}[::-1]
    0.5 * np.tanh({})
    np.where({} > 0.1, np.sin({}), np.cos({}))
    np.tanh(np.cumsum({}))
""".strip().split("\n")
TOTALS = """
    {}.sum()
    np.sum({} * {})
    {} @ {}
    np.mean({})
    {}[1:] @ {}[:-1]
    sum({})
    np.max({})
""".strip().split("\n")
PATTERNS = {
    "best": """
        {t} = {s}
        {k} = 0
        for {i} in range(len({a})):
            if {a}[{i}] > {t}:
                {t} = {a}[{i}]
                {k} = {i}
    """,
    "none": """
        {t} = None
        {k} = 3
        for {u} in {a}:
            if {t} is None or {u} < {t}:
                {t} = {u}
    """,
    "found": """
        for {i} in range(m):
            if {a}[{i}] > {c}:
                {k} = {i}
                break
        else:
            {k} = m - 1
        {t} = {a}[{k}]
    """,
    "bubble": """
        {w} = {a}.copy()
        for {i} in range(m):
            for {j} in range(m - 1 - {i}):
                if {w}[{j}] > {w}[{j} + 1]:
                    {w}[{j}], {w}[{j} + 1] = {w}[{j} + 1], {w}[{j}]
        {t} = {w}[0] * {s} + {w}[m // 2]
        {k} = 1
    """,
    "insertion": """
        {w} = {a}.copy()
        for {i} in range(1, m):
            {t} = {w}[{i}]
            {k} = {i} - 1
            while {k} >= 0 and {w}[{k}] > {t}:
                {w}[{k} + 1] = {w}[{k}]
                {k} -= 1
            {w}[{k} + 1] = {t}
        {t} = {w}[1] - {s}
    """,
    "bisection": """
        {u}, {t} = -4.0, 4.0
        {k} = 0
        while {t} - {u} > 1e-3:
            {v} = 0.5 * ({u} + {t})
            {k} += 1
            if {v} + 0.3 * np.sin({v}) > {s}:
                {t} = {v}
            else:
                {u} = {v}
        {t} = {s} * ({t} - {u})
    """,
    "newton": """
        {t} = {s}
        {k} = 0
        for {k} in range(20):
            {u} = ({t} + 0.5 * np.sin({t}) - {a}[0]) / (1 + 0.5 * np.cos({t}))
            {t} = {t} - {u}
            if abs({u}) < 1e-6:
                break
    """,
    "two rows": """
        {w} = np.zeros(m)
        {z} = {a}.copy()
        for {i} in range(n):
            {w}[0] = {s}
            for {j} in range(1, m):
                {w}[{j}] = 0.5 * {z}[{j} - 1] + 0.25 * np.sin({w}[{j} - 1])
            {w}, {z} = {z}, {w}
        {t} = {z}[m - 1] + {w}[0]
        {k} = n
    """,
    "fresh row": """
        {z} = {a}
        {t} = 0.0
        {k} = 0
        for {i} in range(n):
            {w} = np.zeros(m)
            for {j} in range(m):
                {w}[{j}] = np.sin({z}[{j}] + {i})
                if {w}[{j}] > 0.5:
                    {w}[{j}] *= 0.5
                    {k} += 1
            {t} += {w}[{i} % m]
            {z} = {w}
    """,
    "counting": """
        {k} = 0
        {t} = 0
        for {u} in {a}:
            {k} += {u} > {c}
            if {u} < {c}:
                {t} += {u}
    """,
    "pointers": """
        {k}, {j} = 0, m - 1
        {t} = 0.0
        while {k} < {j}:
            if {a}[{k}] < {a}[{j}]:
                {t} += 0.1 * np.sin({a}[{k}])
                {k} += 1
            else:
                {t} -= 0.1 * np.sin({a}[{j}])
                {j} -= 1
    """,
    "grid": """
        {w} = np.zeros((m, m))
        for {i} in range(m):
            {z} = {w}[{i}]
            for {j} in range(m):
                if {i} == 0 or {j} == 0:
                    {z}[{j}] = np.tanh({a}[{i}] * {a}[{j}])
                else:
                    {z}[{j}] = 0.5 * min({w}[{i} - 1, {j}], {w}[{i}, {j} - 1]) + 0.1 * {a}[{i}]
        {t} = {w}[-1, -1] + {w}.T[1][0] * {s}
        {k} = 2
    """,
    "pair": """
        {w} = ({s}, 0.5)
        for {u} in {a}:
            if {w}[0] > {u}:
                {w} = ({w}[1], np.sin({u}))
            else:
                {w} = ({w}[0] * 0.5, {w}[1])
        {t}, {k} = {w}[0] + {w}[1], 1
    """,
    "record": """
        {w} = {{"low": {s}, "sum": 0.0, "n": 0}}
        for {u} in {a}:
            {w}["sum"] += np.sin({u})
            {w} = dict({w}, low=min({w}["low"], {u}), n={w}["n"] + 1)
        {t}, {k} = {w}["low"] + {w}["sum"], {w}["n"]
    """,
    "appends": """
        {w} = [{s}]
        for {u} in {a}:
            {t} = 0.5 * {w}[-1] + np.sin({u})
            {w}.append({t})
        {t} = {w}[2] * {w}[-2] + sum({w}) * 0.1
        {k} = len({w})
        {t} += np.array({w}) @ np.arange({k}) * 0.1
    """,
    "appends of some": """
        {w} = []
        {k} = 0
        for {u} in {a}:
            if {u} > {c}:
                {w}.append(({u}, {k}))
            elif {w} and {u} < {s}:
                {t}, {j} = {w}.pop()
                {k} += {j} + 1
        {t} = 0.0
        for {u}, {j} in {w}:
            {t} = 0.5 * {t} + {u} * {j}
        while len({w}) > 1:
            {t} += {w}.pop()[0]
    """,
    "recurrence": """
        {w} = [{s}, {a}[0]]
        for {i} in range(1, n + m):
            {w}.append(np.sin({w}[{i} - 1]) - 0.3 * {w}[{i}] * {a}[{i} % m])
        {t}, {k} = {w}[-1], 2
    """,
    "table": """
        {w} = [0] * m
        {w}[0] = {s}
        for {i} in range(1, m):
            for {j} in range({i}):
                {t} = 0.3 * {w}[{j}] + 0.1 * {a}[{i}]
                if {t} > {w}[{i}]:
                    {w}[{i}] = {t}
        {t}, {k} = {w}[-1] - {w}[m // 2], 1
        {z} = {w}[1:]
        {z}[0] = {t}
        {t} += sum({z}) * 0.2 - {w}[1]
    """,
    "rows": """
        {w} = [[{s}] * m for {i} in range(m + 1)]
        for {i} in range(1, m + 1):
            for {j} in range(1, m):
                {t} = min({w}[{i} - 1][{j}], {w}[{i}][{j} - 1]) * 0.5 + 0.1 * {a}[{j}]
                {w}[{i}][{j}] = np.sin({t}) if {t} > {c} else {t}
            if {a}[{i} % m] > {c}:
                {w}[{i} - 1], {w}[{i}] = {w}[{i}], {w}[{i} - 1]
        {z} = {w}[1]
        {z}[0] += {w}[-1][-1]
        {t}, {k} = sum({w}[1]) + 0.1 * np.array({w}).sum(), len({w}[0])
    """,
    "rows of other lengths": """
        {w} = [[] for {i} in range(3)]
        for {i} in range(m):
            {w}[{i} % 3].append({a}[{i}])
            if {a}[{i}] > {c}:
                {w}[0].append(np.sin({a}[{i}]))
        {t}, {k} = 0.0, len({w}[0])
        for {z} in {w}:
            for {u} in {z}:
                {t} = 0.5 * {t} + {u}
        {w}.append([{t}, {s}])
        {t} += 0.1 * {w}[{k} % 2][-1] + sum({w}[3])
    """,
    "two lists": """
        {w}, {z} = [0.0] * m, [{s}] * m
        for {i} in range(n + 2):
            for {j} in range(1, m):
                {w}[{j}] = 0.5 * {z}[{j} - 1] + 0.2 * {a}[{j}]
            {w}, {z} = {z}, {w}
        {t}, {k} = {w}[-1] - {z}[1], 2
    """,
    "work": """
        {w}, {t}, {k} = [({s}, 0), ({a}[0], 1)], 0.0, 0
        while {w}:
            {u}, {j} = {w}.pop()
            {t} = 0.5 * {t} + {u} * ({j} + 1)
            {k} += 1
            if {u} > {c} and {j} < 4:
                {w}.append((0.5 * {u}, {j} + 1))
                if {u} > {s}:
                    {w}.append(({u} - 0.5, {j} + 2))
    """,
    "until it is small": """
        {t}, {z} = 2.0 + np.tanh({s}), []
        while abs({t}) > 0.05:
            {z}.append({t})
            {t} = 0.6 * {t} + 0.02 * np.sin({a}[0])
            if len({z}) > 30:
                break
        {k} = len({z})
        {t} = {z}[-1] + 0.1 * sum({z})
        for {i}, {u} in enumerate({z}):
            {t} += 0.01 * {u} * {i}
    """,
    "comprehensions": """
        {w} = [np.sin({u}) * {s} for {u} in {a}]
        {z} = [{u} * {v} for {u}, {v} in zip({w}, {a}, strict=True) if {v} > {c}]
        {t}, {k} = sum({z}) + {w}[-1] + max({w}), len({z})
        {z} = [[{u} * {v} + {i} for {v} in {a}] for {i}, {u} in enumerate({w})]
        {t} = 0.1 * {t} + 0.01 * sum(map(sum, {z})) + {z}[1][2] * 0.1
        if {k} > 1:
            {t} += [{u} for {u} in {a} if {u} > {c}][-1]
    """,
    "trajectory": """
        {w} = []
        {z} = {a} * 0.5
        for {i} in range(n + 1):
            {z} = np.tanh({z} + {s}) * 0.7
            {w}.append({z})
        {w} = np.stack({w})
        {t}, {k} = {w}[-1] @ {w}[0] + {w}.sum() * 0.1, 1
    """,
    "lists of objects": """
        {w} = State({s})
        {w}.log = []
        for {u} in {a}:
            {w}.move({u})
            if {w}.x > {c}:
                {w}.log.append({w}.x)
                if len({w}.log) > 2:
                    break
        {t}, {k} = sum({w}.log) + {w}.n, len({w}.log)
    """,
    "state": """
        {k} = 0
        {t} = 0.0
        for {u} in {a}:
            if {k} == 0:
                if {u} > {c}:
                    {k} = 1
                    {t} += 0.2 * {u}
            elif {k} == 1:
                if {u} < {s}:
                    {k} = 2
                    continue
                {t} = np.sin({t} + {u})
            else:
                {k} = 0
    """,
    "perhaps": """
        {w} = None
        {k} = 0
        for {u} in {a}:
            if {u} > {c} and ({w} is None or {u} < {w}):
                {w} = {u}
                {k} += 1
        {t} = {s} if {w} is None else {w} * 0.5
    """,
    "set once": """
        {k} = 0
        if {a}[0] > {c}:
            {u} = np.sin({s})
            {k} = 1
        elif {s} > {c}:
            {u}, {k} = {a}[1], 2
        {t} = {s}
        if {k} > 0:
            {t} += {u} * {a}[{k}]
            {u} *= 0.5
        if {k} == 2 and {u} > {c}:
            {t} -= {u}
    """,
    "round before": """
        {t}, {k} = 0.0, 0
        for {i} in range(m):
            if {a}[{i}] > {c}:
                if {k} > 0:
                    {t} += 0.1 * {v} * {a}[{i}]
                {v} = {a}[{i}]
                {k} += 1
                if {k} > 3:
                    {w} = {v} * {i}
                    break
        if {k} > 0:
            {t} += {v} * {i} + ({w} if {k} > 3 else 0.5)
        for {j} in range({k} % 3):
            {z} = 0.5 * {t} + {j}
        if {k} % 3 > 0:
            {t} = {t} - 0.1 * {z} * ({j} + 1)
    """,
    "mode": """
        {w} = "up"
        {t}, {k} = {s}, 0
        for {u} in {a}:
            if {w} == "up":
                {t} = np.sin({t} + {u})
                {w} = "down" if {u} > {c} else "up"
            elif {t} > {u}:
                {w}, {k} = "stop", {k} + 1
            elif {w} != "stop":
                {t} = 0.5 * {t} + {u}
        {t} += 0.1 if {w} == "stop" else {u}
    """,
    "function": """
        {w} = np.sin if {s} > {c} else np.tanh
        {t} = 0.0
        for {u} in {a}:
            {t} += {w}({u})
            if {t} > 0.5:
                {w} = np.cos
        {k} = 2
    """,
    "first": """
        {w} = None
        for {i} in range(m):
            if {a}[{i}] > {c}:
                {w} = ({i}, {a}[{i}])
                break
        {k}, {t} = (0, {s}) if {w} is None else {w}
    """,
    "match": """
        {k} = 0
        {t} = {s}
        for {u} in {a}:
            match round(2 * np.sin({u})) + {k}:
                case 0:
                    {t} += {u}
                case 1 | -1 as {i}:
                    {t} = np.tanh({t} - {i} * {u})
                    {k} = {i}
                case {j} if {j} in (2, 3) and {u} > {c}:
                    {t} *= 0.5
                case {j} if {t} > {u}:
                    {t} -= 0.1 * {j}
                    {k} = 0
                case _:
                    {k} += 1
                    if {k} > 2:
                        break
    """,
    "walrus": """
        {t}, {k} = 0.0, 0
        for {i} in range(m):
            if ({u} := {a}[{i}]) > {c} and ({v} := np.sin({u})) < {s}:
                {t} += {u} * {v}
            elif not ({u} < {c} or ({k} := {i}) > 2):
                {t} -= {u}
            while ({w} := {t} * 0.5) > 1 and {u} not in (0, 1.5):
                {t} = {w}
    """,
    "folds": """
        {t} = sum({u} * {u} for {u} in {a} if {u} > {c}) * 0.1
        {t} += max(({u} for {u} in {a} if {u} > {t}), default={s})
        {t} -= min([{u} * {v} for {u} in {a} for {v} in {a} if {u} > {v}], default=0.5)
        {t} = np.tanh({t}) + max({a}, key=lambda {u}: -({u} - {c}) ** 2) + 0.1 * min({a}) * sum({a})
        {k} = 1 if any({u} > {c} for {u} in {a}) and not all([{u} < {s} for {u} in {a}]) else 2
        {t} += functools.reduce(lambda {u}, {v}: 0.5 * {u} + {v}, {a}) - sorted({a})[{k}]
        {t} += sum((y{v} := {u}) * y{v} for {u} in {a} if {u} > 0) * 0.1
    """,
    "window": """
        {w} = np.zeros(m + 1)
        {t} = 0.0
        for {i} in range(1, m - 1):
            {t} += {a}[{i} - 1:{i} + 2] @ {a}[:3] * 0.1
            {w}[{i}:{i} + 2] += np.sin({a}[{i} - 1:{i} + 1])
            {k} = int(abs(np.sin({a}[{i}])) * 2.5)
            {z} = {w}[{k}:{k} + 2]
            {z}[0] *= 0.5
        {t} = {t} + {w}[{k}:{k} + 2].sum() * {s}
    """,
    "primes": """
        {t} = 0.0
        {k} = 2
        while {k} < 12:
            for {i} in range(2, {k}):
                if {k} % {i} == 0:
                    break
            else:
                {t} = np.sin({t} + {a}[{k} % m])
                if {t} > {c}:
                    {k} += 1
            {k} += 1
    """,
}


RAISING = {  # what may raise an exception of a class
    "ValueError": [
        "{t} = math.sqrt({x} - {c})", "{t} = np.tanh(math.log({x} + 1))",
        "{t} = checked({x}, {c})", "{t} = math.acos(np.sin({x}) * 1.2)",
    ],
    "ZeroDivisionError": [
        "{t} = 1.0 / (int({k}) % 3)",
        "{t} = 0.5 ** (int({k}) % 2) / float(round(math.sin({x}) * 1.5))",
    ],
    "IndexError": ["{t} = {a}[{k}]", "{t} = np.sin({a}[{k} - m])"],
    "AssertionError": ["assert {x} > {c}, 'low'\n{t} = {c}"],
    "(KeyError, OverflowError)": [
        "{t} = np.tanh(math.exp(800 * ({x} > 1)))", "{t} = sometimes({x}, {c})",
    ],
}  # fmt: skip
SAID = {"ValueError": "domain", "AssertionError": "low", "ZeroDivisionError": "zero"}

HEAD = """
import functools
import math
from collections import deque

import numpy as np


def checked(x, c):
    if x < c:
        raise ValueError("too low")
    return np.sin(x)


def sometimes(x, c):
    for k in range(3):
        x = 0.5 * x
        if x > c:
            raise KeyError("high")
    return x


class State:
    def __init__(self, x):
        self.x = x
        self.n = 0.0

    def move(self, by):
        self.x = np.sin(self.x) + by
        if self.x > 0.3:
            self.n += 0.1
            self.x *= 0.5
""".lstrip()


class Function:
    """One function as it is written: its lines, and what is there to be used at this place."""

    def __init__(self, rng: random.Random, name: str, helpers: "list[Helper]") -> None:
        self.rng, self.name, self.helpers = rng, name, helpers
        self.lines: list[str] = []
        self.indent = 1
        self.names = itertools.count()
        self.floats, self.ints, self.flags = ["s"], ["n"], list[str]()
        self.arrays, self.own, self.grids = ["x"], list[str](), list[str]()
        self.indices: list[str] = []
        self.places = list[str]()  # numbers that containers hold
        self.fixed: set[str] = set()  # ints that end a loop, which its body leaves alone
        self.loops = 0  # how many loops are around

    # --- what there is ----------------------------------------------------------------------------

    def fresh(self, kind: str) -> str:
        """A name of the function that is not in use."""
        return f"{kind}{next(self.names)}"

    def write(self, line: str) -> None:
        """Write a line at this place."""
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, head: str, loop: bool = False):
        """A block after a line; what it binds is not used after it."""
        kept = [[*v] for v in self._scopes()]
        fixed = {*self.fixed}
        self.write(head)
        self.indent += 1
        self.loops += loop
        at = len(self.lines)
        yield
        if len(self.lines) == at:
            self.write("pass")
        self.loops -= loop
        self.indent -= 1
        self.fixed = fixed
        for v, names in zip(self._scopes(), kept, strict=True):
            v[:] = names

    def _scopes(self) -> list[list[str]]:
        names = [self.floats, self.ints, self.flags, self.arrays, self.own, self.grids]
        return [*names, self.indices, self.places]

    def filled(self, template: str, part: Callable[[], str]) -> str:
        """A template, its holes filled."""
        found = [part() for _ in range(template.count("{"))]
        return template.strip().format(*found)

    # --- expressions ------------------------------------------------------------------------------

    def constant(self) -> str:
        return repr(round(self.rng.uniform(-0.9, 0.9), 2))

    def index(self) -> str:
        """An index of an array."""
        kinds = ["0", "1", "-1", "2"]
        kinds += [f"{k} % m" for k in self.ints]
        kinds += 3 * self.indices + [f"{i} - 1" for i in self.indices]
        kinds += [f"({i} + 1) % m" for i in self.indices]
        return self.rng.choice(kinds)

    def array(self) -> str:
        return self.rng.choice(self.arrays + self.own)

    def atom(self) -> str:
        """A number that is there, or one of an array."""
        kind = self.rng.randrange(10)
        if kind < 3:
            return self.rng.choice(self.floats)
        if kind == 9:
            return self.rng.choice(self.places or self.floats)
        if kind < 6:
            return f"{self.array()}[{self.index()}]"
        if kind == 6 and self.grids:
            return f"{self.rng.choice(self.grids)}[{self.index()}, {self.index()}]"
        if kind == 7:
            return self.rng.choice(self.ints + self.indices) + " * 0.1"
        return self.constant()

    def number(self, depth: int = 2) -> str:
        """An expression of a number."""
        kind = self.rng.randrange(12)
        if depth == 0 or kind < 3:
            return f"({a})" if "*" in (a := self.atom()) or a[0] == "-" else a
        if kind == 3:
            return self.filled(self.rng.choice(TOTALS), self.array)
        if kind == 4:
            parts = self.number(depth - 1), self.condition(1), self.number(depth - 1)
            return "({} if {} else {})".format(*parts)
        if kind == 5 and self.helpers and self.loops < 2:
            return self.call()
        return f"({self.filled(self.rng.choice(SCALARS), lambda: self.number(depth - 1))})"

    def call(self) -> str:
        """A call of a helper."""
        h = self.rng.choice(self.helpers)
        given = self.rng.choice(self.own) if h.writes and self.own else self.array()
        if h.writes and not self.own:
            given += ".copy()"
        return f"{h.name}({given}, {self.bounded()}, {self.rng.choice(['2', '3', 'n'])}){h.pick}"

    def bounded(self) -> str:
        """A number that may be kept."""
        template = self.rng.choice(BOUNDED)
        if "{0}" in template:
            return template.strip().format(self.rng.choice(self.floats))
        return self.filled(template, lambda: self.number(self.rng.randrange(1, 3)))

    def whole(self) -> str:
        """An int."""
        k = self.rng.choice(self.ints + self.indices)
        kinds = ["0", "1", f"{k} + 1", f"({k} * 3 + 1) % 7", f"{k} // 2", f"m - {k}", f"-{k} % 5"]
        kinds += [f"{k} if {self.condition(1)} else 1", f"int(3 * {self.bounded()})"]
        kinds += [f"round(2 * {self.bounded()})", f"math.floor(2 * {self.bounded()})"]
        return self.rng.choice(kinds)

    def condition(self, depth: int = 2) -> str:
        """A condition."""
        kind = self.rng.randrange(12)
        k = self.rng.choice(self.ints + self.indices)
        if depth and kind < 2:
            word = self.rng.choice(["and", "or"])
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        if depth and kind == 2:
            return f"not {self.condition(0)}"
        if kind == 3:
            return f"({self.constant()} < {self.number(1)} <= {self.number(1)})"
        if kind == 4:
            return f"{k} % 2 == {self.rng.randrange(2)}"
        if kind == 5:
            return f"{k} {self.rng.choice(['>', '<', '!='])} {self.rng.randrange(4)}"
        if kind == 6 and self.flags:
            return self.rng.choice(self.flags)
        if kind == 7:
            return f"abs({self.number(1)}) < 0.4"
        sign = self.rng.choice(["<", ">", "<=", ">="])
        return f"({self.number(1)} {sign} {self.number(1)})"

    # --- statements -------------------------------------------------------------------------------

    def statements(self, depth: int, most: int) -> None:
        """Some statements."""
        for _ in range(self.rng.randrange(1, most + 1)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        """One statement."""
        kinds: list[tuple[int, Callable[..., None]]] = [
            (6, self.assign), (4, self.augment), (3, self.count), (2, self.flag),
            (3, self.new_array), (4, self.store), (2, self.store_slice), (2, self.swap),
            (1, self.alias), (2, self.grid), (2, self.container), (2, self.both), (3, self.state),
        ]  # fmt: skip
        if depth:
            kinds += [(8, self.branch), (6, self.loop), (4, self.while_), (1, self.closure),
                      (3, self.pattern), (3, self.try_)]  # fmt: skip
        if depth < DEPTH:
            kinds += [(2, self.leave)]
        weights = [w for w, _ in kinds]
        act = self.rng.choices([a for _, a in kinds], weights)[0]
        nested = (self.branch, self.loop, self.while_, self.closure, self.pattern, self.try_)
        act(depth - 1) if act in nested else act()

    def assign(self) -> None:
        if self.places and not self.rng.randrange(3):
            self.write(f"{self.rng.choice(self.places)} = {self.bounded()}")
            return
        name = self.rng.choice([*self.floats, "", ""]) or self.fresh("t")
        self.write(f"{name} = {self.bounded()}")
        if name not in self.floats:
            self.floats.append(name)

    def augment(self) -> None:
        name = self.rng.choice(self.floats + self.places)
        sign = self.rng.choice(["+", "-"])
        if self.rng.randrange(4):
            self.write(f"{name} {sign}= 0.1 * {self.bounded()}")
        else:
            self.write(f"{name} *= {self.constant()}")

    def count(self) -> None:
        free = [k for k in self.ints if k not in self.fixed and k != "n"]
        name = self.rng.choice([*free, *free, ""]) or self.fresh("k")
        if name in self.ints and self.rng.randrange(2):
            by = self.rng.choice(["1", "2", self.condition(0)])
            self.write(f"{name} {self.rng.choice('+-')}= {by}")
            return
        self.write(f"{name} = {self.whole()}")
        if name not in self.ints:
            self.ints.append(name)

    def flag(self) -> None:
        name = self.rng.choice([*self.flags, ""]) or self.fresh("b")
        test = self.rng.choice([self.condition(), "False", "True"])
        self.write(f"{name} = {test}")
        if name not in self.flags:
            self.flags.append(name)

    def new_array(self) -> None:
        name = self.rng.choice([*self.own, "", ""]) or self.fresh("a")
        made = ["np.zeros(m)", f"{self.array()}.copy()", f"np.full(m, {self.number(1)})"]
        made += 3 * [self.filled(self.rng.choice(ARRAYS), self.array)]
        made += [f"np.array([np.sin(v) * {self.constant()} for v in {self.array()}])"]
        self.write(f"{name} = {self.rng.choice(made)}")
        if name not in self.own:
            self.own.append(name)

    def store(self) -> None:
        if not self.own:
            return self.new_array()
        a, i = self.rng.choice(self.own), self.index()
        if self.rng.randrange(3):
            self.write(f"{a}[{i}] = {self.bounded()}")
        else:
            self.write(f"{a}[{i}] {self.rng.choice('+-')}= 0.1 * {self.bounded()}")

    def store_slice(self) -> None:
        if not self.own:
            return self.new_array()
        a, b = self.rng.choice(self.own), self.array()
        self.write(self.rng.choice([
            f"{a}[1:] = np.sin({b}[:-1])",
            f"{a}[1:] += 0.1 * np.tanh({b}[:-1])",
            f"{a}[:] = np.cos({b})",
            f"{a}[::2] *= {self.constant()}",
            f"{a} *= {self.constant()}",
            f"{a} += 0.1 * np.sin({b})",
            f"{a}[{b} > {self.constant()}] = {self.constant()}",
            f"np.sin({b}, out={a})",
        ]))  # fmt: skip

    def swap(self) -> None:
        kind = self.rng.randrange(3)
        if kind == 0 and len(self.own) > 1:
            a, b = self.rng.sample(self.own, 2)
            self.write(f"{a}, {b} = {b}, {a}")
        elif kind == 1 and self.own:
            a, i, j = self.rng.choice(self.own), self.index(), self.index()
            self.write(f"{a}[{i}], {a}[{j}] = {a}[{j}], {a}[{i}]")
        elif len(self.floats) > 1:
            a, b = self.rng.sample(self.floats, 2)
            self.write(f"{a}, {b} = {b}, {a}")

    def alias(self) -> None:
        if not self.own:
            return
        a, b, v = self.rng.choice(self.own), self.fresh("a"), self.fresh("v")
        if self.rng.randrange(2):
            self.write(f"{b} = {a}")
            self.write(f"{b}[{self.index()}] = {self.bounded()}")
            self.own.append(b)
        else:
            self.write(f"{v} = {a}[{self.rng.choice(['1:', '::-1', ':2', '::2'])}]")
            self.write(f"{v}[{self.rng.randrange(2)}] = {self.bounded()}")

    def grid(self) -> None:
        if not self.grids or not self.rng.randrange(4):
            name = self.fresh("g")
            made = ["np.zeros((m, m))", f"np.outer({self.array()}, {self.array()})"]
            self.write(f"{name} = np.tanh({self.rng.choice(made)})")
            self.grids.append(name)
            return
        g, i, j, r = self.rng.choice(self.grids), self.index(), self.index(), self.fresh("r")
        kind = self.rng.randrange(6)
        if kind < 2:
            self.write(f"{g}[{i}, {j}] = {self.bounded()}")
        elif kind == 2:
            self.write(f"{r} = {g}[{i}]")
            self.write(f"{r}[{j}] = {self.bounded()}")
        elif kind == 3:
            self.write(f"{g}[{i}] = np.sin({self.array()})")
        elif kind == 4:
            self.write(f"{g}[:, {j}] += 0.1 * np.tanh({self.array()})")
        else:
            name = self.fresh("a")
            self.write(f"{name} = np.tanh({g} @ {self.array()})")
            self.own.append(name)

    def container(self) -> None:
        name, a, b = self.fresh("c"), self.fresh("t"), self.bounded()
        kind = self.rng.randrange(3)
        if kind == 0:
            self.write(f"{name} = ({self.bounded()}, {b})")
            self.write(f"{a}, {self.rng.choice(self.floats)} = {name}")
        elif kind == 1:
            self.write(f"{name} = [{self.bounded()}, {b}, {self.constant()}]")
            self.write(f"{name}[{self.rng.randrange(3)}] = {self.bounded()}")
            self.write(f"{a} = np.tanh(sum({name}))")
        else:
            self.write(f"{name} = {{'u': {self.bounded()}, 'v': {b}}}")
            self.write(f"{name}['u'] += {self.constant()}")
            self.write(f"{a} = np.sin({name}['u'] * {name}['v'])")
        self.floats.append(a)

    def state(self) -> None:
        """A container whose contents later statements change, perhaps under another name."""
        name, other = self.fresh("d"), self.fresh("d")
        if self.places and not self.rng.randrange(3):
            methods = [p.removesuffix(".x") for p in self.places if p.endswith(".x")]
            if methods:
                self.write(f"{self.rng.choice(methods)}.move({self.bounded()})")
                return
        a, b = self.bounded(), self.bounded()
        made, places = self.rng.choice([
            (f"{{'u': {a}, 'v': 0.0}}", ["['u']", "['v']"]),
            (f"[{a}, {b}]", ["[0]", "[-1]"]),
            (f"State({a})", [".x", ".n"]),
            (f"{{'s': State({a}), 'l': [{b}]}}", ["['s'].x", "['l'][0]"]),
            (f"deque([{a}, {b}], maxlen=2)", ["[0]", "[1]"]),
        ])  # fmt: skip
        self.write(f"{name} = {made}")
        if not self.rng.randrange(3):
            self.write(f"{other} = {name}")
            self.places.append(other + places[0])
        self.places += [name + p for p in places]

    def both(self) -> None:
        """A variable that either branch binds."""
        name = self.fresh("t")
        for head in (f"if {self.condition()}:", "else:"):
            with self.block(head):
                self.write(f"{name} = {self.bounded()}")
        self.floats.append(name)

    def leave(self) -> None:
        """An early exit, under a condition."""
        kinds = ["return"] + (["break", "continue"] if self.loops else [])
        kind = self.rng.choice(kinds)
        with self.block(f"if {self.condition()}:"):
            if self.rng.randrange(2):
                self.augment()
            self.write(kind if kind != "return" else f"return {self.result()}")

    def result(self) -> str:
        return self.bounded()

    def branch(self, depth: int) -> None:
        """if, elif and else."""
        with self.block(f"if {self.condition()}:"):
            self.statements(depth, 3)
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            with self.block(f"elif {self.condition()}:"):
                self.statements(depth, 2)
        if self.rng.randrange(2):
            with self.block("else:"):
                self.statements(depth, 3)

    def loop(self, depth: int) -> None:
        """A loop over a range or an array."""
        i, v, a = self.fresh("i"), self.fresh("v"), self.array()
        k = self.rng.choice(self.ints)
        kinds = [
            (f"for {i} in range(m):", [i], []), (f"for {i} in range(1, m):", [i], []),
            (f"for {i} in range(m - 1, -1, -1):", [i], []), (f"for {i} in range(n):", [], []),
            (f"for {v} in {a}:", [], [v]), (f"for {i}, {v} in enumerate({a}):", [i], [v]),
            (f"for {i} in range(5):", [], []), (f"for {i} in range({k} % 4):", [], []),
            (f"for {v}, {v}w in zip({a}, {self.array()}):", [], [v, v + "w"]),
            (f"for {v} in reversed({a}):", [], [v]), (f"for {i} in range(0, m, 2):", [i], []),
            (f"for {v} in ({self.constant()}, {self.constant()}):", [], [v]),
        ]  # fmt: skip
        head, indices, floats = self.rng.choice(kinds)
        with self.block(head, loop=True):
            self.indices += indices
            self.floats += floats
            self.statements(depth, 4)
        if not self.rng.randrange(4):
            with self.block("else:"):
                self.statements(0, 2)

    def while_(self, depth: int) -> None:
        """A loop while a condition holds, of few rounds."""
        kind, k, t = self.rng.randrange(4), self.fresh("k"), self.fresh("t")
        if kind == 0:
            self.write(f"{t} = abs({self.bounded()})")
            with self.block(f"while {t} > 0.05:", loop=True):
                self.write(f"{t} *= 0.5")
                self.statements(depth, 3)
            return
        self.write(f"{k} = {self.rng.choice(['0', '0', '1', self.whole() + ' - 0'])}")
        test = [f"{k} < 6", f"{k} < n", f"{self.condition(1)} and {k} < 5"][kind - 1]
        with self.block(f"while {test}:", loop=True):
            self.write(f"{k} += 1")
            self.ints.append(k)
            self.fixed.add(k)
            self.statements(depth, 3)
        if not self.rng.randrange(4):
            with self.block("else:"):
                self.statements(0, 2)
        self.ints.append(k)

    def closure(self, depth: int) -> None:
        """A nested function that reads what is around, and perhaps binds it, and a call."""
        f, t, v = self.fresh("f"), self.fresh("t"), self.fresh("v")
        name = self.rng.choice(self.floats)
        before, self.loops = self.loops, 0
        with self.block(f"def {f}({v}):"):
            if self.rng.randrange(2):
                self.write(f"nonlocal {name}")
                self.write(f"{name} = 0.5 * {name} + 0.1 * np.sin({v})")
            kept = [[*names] for names in self._scopes()]
            self.floats[:] = [v]
            self.own.clear(), self.flags.clear()
            self.ints[:] = ["n"]
            with self.block(f"if {self.condition(1)}:"):
                self.write(f"return {self.bounded()}")
            self.write(f"return {self.bounded()} * {name}")
            for names, was in zip(self._scopes(), kept, strict=True):
                names[:] = was
        self.loops = before
        self.write(f"{t} = {f}({self.number(1)}) - 0.5 * {f}({self.constant()})")
        self.write(f"{t} = np.tanh({t})")
        self.floats.append(t)

    def try_(self, depth: int) -> None:
        """Exits that pass a finally block, or what may raise and who handles it."""
        with self.block("try:"):
            self.statements(depth, 2)
            if kinds := self.rng.sample([*RAISING], self.rng.randrange(3)):
                for kind in kinds:
                    self.may_raise(kind)
                    self.statements(0, 2)
        for kind in kinds:
            e, t = self.fresh("e"), self.rng.choice(self.floats)
            with self.block(f"except {kind} as {e}:" if kind in SAID else f"except {kind}:"):
                if kind in SAID:
                    self.write(f"{t} = 0.5 * {t} + (0.1 if {SAID[kind]!r} in str({e}) else 0.2)")
                self.statements(min(depth, 1), 2)
        if kinds and not self.rng.randrange(3):
            with self.block("else:"):
                self.statements(0, 2)
        if not kinds or not self.rng.randrange(3):
            with self.block("finally:"):
                self.augment()

    def may_raise(self, kind: str) -> None:
        """A statement that raises an exception of a class for some values."""
        t, a, c = self.fresh("t"), self.array(), self.constant()
        number, whole = self.number(1), self.rng.choice(self.ints + self.indices)
        text = self.rng.choice(RAISING[kind])
        for line in text.format(t=t, a=a, c=c, x=number, k=whole).split("\n"):
            self.write(line)
        self.floats.append(t)

    def pattern(self, depth: int) -> None:
        """What everybody writes."""
        text = PATTERNS[self.rng.choice([*PATTERNS])]
        names = {c: self.fresh(c) for c in "tkijuvwz"}
        text = text.format(
            a=self.array(), s=self.rng.choice(self.floats), c=self.constant(), **names
        )
        lines = text.strip("\n").split("\n")
        for line in lines:
            if line.strip():
                self.write(line[8:])
        self.write(f"{names['t']} = np.sin({names['t']})")
        self.floats.append(names["t"])
        self.ints.append(names["k"])

    def whole_text(self, params: str, most: int) -> str:
        """The function's text."""
        self.write(f"m = len({params.split(',')[0]})")
        self.statements(DEPTH, most)
        self.finish()
        return "\n".join([f"def {self.name}({params}):", *self.lines, ""])

    def finish(self) -> None:
        """What comes back."""
        parts = self.rng.sample(self.floats, min(4, len(self.floats))) + self.places[-3:]
        total = [f"0.5 * np.sum({a})" for a in self.own[-2:]] + [f"{g}.sum()" for g in self.grids]
        total += [f"0.1 * {k}" for k in self.ints[-2:]]
        total += [f"(1.5 if {b} else {parts[0]})" for b in self.flags[-1:]]
        self.write("return " + " + ".join(parts + total))


class Helper(Function):
    """A function that the main one calls: it may write its array, or return two numbers."""

    def __init__(self, rng: random.Random, name: str, helpers: "list[Helper]") -> None:
        super().__init__(rng, name, helpers)
        self.writes, self.recursive = rng.randrange(2) == 0, rng.randrange(4) == 0
        self.pair = rng.randrange(4) == 0
        self.pick = f"[{rng.randrange(2)}]" if self.pair else ""
        if self.writes:
            self.own = ["x"]
            self.arrays = []
            self.arrays = ["x"]

    def result(self) -> str:
        return f"({self.bounded()}, {self.bounded()})" if self.pair else self.bounded()

    def finish(self) -> None:
        if self.recursive:
            with self.block("if n > 0:"):
                again = f"{self.name}(x, {self.bounded()}, n - 1){self.pick}"
                result = f"0.5 * {again} + {self.bounded()}"
                self.write(
                    f"return ({result}, {self.bounded()})" if self.pair else f"return {result}"
                )
        self.write(f"return {self.result()}")


def source(seed: int) -> str:
    """The text of a module with a function `f(x, s, n)`."""
    rng = random.Random(seed)
    helpers: list[Helper] = []
    texts = [HEAD]
    for k in range(rng.choice([0, 0, 1, 2])):
        h = Helper(rng, f"help{k}", [*helpers])
        texts.append(h.whole_text("x, s, n", 3))
        helpers.append(h)
    texts.append(Function(rng, "f", helpers).whole_text("x, s, n", 6))
    return "\n\n".join(texts)


def module(text: str, folder: Path, name: str):
    """A module of that text, from a file: capture reads the source."""
    path = Path(folder) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "the file is there"
    assert spec.loader is not None, "it is Python"
    made = importlib.util.module_from_spec(spec)
    sys.modules.pop(name, None)
    spec.loader.exec_module(made)
    return made

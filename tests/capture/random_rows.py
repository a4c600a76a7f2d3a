"""Random plain Python functions that give arrays several names, as text.

Rows, columns and other views of one array go through variables, a list, a dict and an object, are
exchanged, chosen in branches and by rounds, and read and written under each of their names; or a
loop carries arrays that its rounds write, exchange and hand on.
"""

import random

BEGIN = """
import numpy as np
from lineara import grad

class Holder: pass

def chosen(a, b, x):
    if x > 0.1:
        return a
    return b

def squares(v):
    s = 0.0
    for i in range(3):
        s = s + v[i] * v[i]
    return np.tanh(s)

def f(x, X):
    Z, W = X * 1.0, np.cos(X)
    r, t, u, s = Z[0], Z[1], np.ones(3), 0.0
    box, d, o = [t], {"k": r}, Holder()
    o.v = Z[2]
"""
END = "    return s + r[0] + 0.5 * t.sum() + Z.sum() + u @ box[0] + d['k'][1] * o.v[2]\n"
PLACES = ("r", "t", "box[0]", "d['k']", "o.v")
VIEWS = """
    Z[{i}]
    {v}
    {v}[::-1]
    W[{i}]
    Z[:, {j}][:3]
    Z.T[{j}][1:]
    Z.ravel()[3:6]
    Z.reshape(3, 4)[{j}][:3]
    Z[{i}] if {c} else {v}
    chosen({v}, Z[{i}], x)
""".strip().split("\n")
NUMBERS = """
    {v}[{j}]
    {v}.sum()
    {v} @ u
    max({v})
    sum({v})
    float({v}[0])
    {v}[1:].sum()
    {v}[::-1][0]
    {v}.tolist()[1]
    Z[{i}, {j}]
    Z.sum()
    np.sort({v})[1]
    squares({v})
    grad(lambda p: ({v} * p).sum() * p + {v}[{j}] * p)(x)
""".strip().split("\n")
WRITES = """
    {w}[{j}] = np.tanh({n})
    {w}[:] = np.tanh({a})
    {w}[...] = 0.3
    {w} *= 0.5
    {w}[0] += 0.1
    Z[{i}] = np.tanh({a})
    Z[{i}, {j}] = x
    Z *= 0.5
    np.add.at(u, {j}, x)
""".strip().split("\n")


class Rows:
    """The functions of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counters: list[str] = []

    def source(self) -> str:
        """The text of a module with a function `f(x, X)` of a number and an array of 4 x 3."""
        body = [self.statement(1) for _ in range(self.random.randrange(4, 10))]
        return BEGIN + "".join(body) + END

    def place(self, n: int) -> str:
        """An index below n: known, a counter's, or computed."""
        counters = [f"{i} % {n}" for i in self.counters] * 2
        known = str(self.random.randrange(n))
        return self.random.choice([known, "-1", *counters, f"int(abs(x * 3)) % {n}"])

    def filled(self, patterns: list[str], deep: bool = True) -> str:
        """One of some patterns, with names, indices and what else it asks for."""
        pick, pattern = self.random.choice, self.random.choice(patterns).strip()
        parts = {"i": self.place(4), "j": self.place(3), "v": pick([*PLACES, "u"])}
        parts |= {"w": pick([*PLACES, "u"]), "c": self.condition()}
        if deep:
            parts |= {"n": self.filled(NUMBERS, False), "a": self.filled(VIEWS, False)}
        return pattern.format(**parts)

    def condition(self) -> str:
        """A condition, mostly one that values decide."""
        odd = [f"{i} % 2 == 0" for i in self.counters]
        bound = f"{self.random.uniform(-1, 1):.2f}"
        return self.random.choice([f"x > {bound}", f"s < {bound}", "r[0] > t[1]", *odd])

    def statement(self, depth: int) -> str:
        """A statement, with the blocks in it."""
        margin, kind = "    " * depth, self.random.random()
        if depth < 4 and kind < 0.14:
            orelse = f"{margin}else:\n{self.block(depth)}" if self.random.random() < 0.6 else ""
            return f"{margin}if {self.condition()}:\n{self.block(depth)}{orelse}"
        if depth < 3 and kind < 0.24:
            counter = f"i{len(self.counters)}"
            self.counters.append(counter)
            body = self.block(depth)
            if self.random.random() < 0.2:
                out = self.random.choice(["break", "continue"])
                body += f"{margin}    if {self.condition()}:\n{margin}        {out}\n"
            self.counters.pop()
            return f"{margin}for {counter} in range({self.random.choice([4, 5, 9])}):\n{body}"
        if kind < 0.5:
            return f"{margin}{self.random.choice(PLACES)} = {self.filled(VIEWS)}\n"
        if kind < 0.7:
            return f"{margin}s = s + 0.1 * {self.filled(NUMBERS)}\n"
        if kind < 0.74:
            return f"{margin}r, t = t, r\n"
        return f"{margin}{self.filled(WRITES)}\n"

    def block(self, depth: int) -> str:
        """One to three statements further in."""
        return "".join([
            self.statement(depth + 1) for _ in range(self.random.randrange(1, 4))
        ])  # fmt: skip


BUFFERS = """
    {a} = {b}
    {a}, {b} = {b}, {a}
    {a}, {b} = {b}, {a}
    {a}, {b}, {c} = {b}, {c}, {a}
    t = {a}; {a} = {b}; {b} = t
    {a} = {b} * 1.25 + U[k]
    {a} = out[k]
    {a} = {b}[::-1]
    {a} = box[0]
    box[0] = {a}
    {a} += {b}
    {a}[k % 3] = {b}[1] * x
    {a}[:] = 0.5 * {b} + U[k]
    for i in range(5): {a}[i % 3] = 0.5 * {b}[(i + 1) % 3] + U[i]
    out[k] = {a}
    s = s + {a}.sum() * {b}[0]
""".strip().split("\n")
BEGINS = ("X[1] * x", "np.cos(X[2])", "np.zeros(3)", "X[3] + x", "X[2] * X[1]", "a")
LOOPS = {  # how loops begin, and what the round has that ends them: a line that may stand anywhere
    "for": ("for k in range(6):", None),
    "left": ("for k in range(6):", "if {ends}: {out}"),
    "counted": ("while k < 6:", None),
    "measured": ("while e < 0.4 and k < 6:", "e = np.max({a} - {b}) * x"),
    "endless": ("while True:", "if {ends} or k > 4: {out}"),
}
ENDS = ("U[k] * x > 0.4", "np.max(np.abs({a} - {b})) < 0.5", "{a}[0] * {b}[1] > 0.1")


class Buffers:
    """The functions of one seed, each of one loop that carries arrays, of few patterns."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.patterns: list[str] = self.random.sample(BUFFERS, self.random.randrange(2, 7))

    def source(self) -> str:
        """The text of a module with a function `f(x, X)` of a number and an array of 4 x 3."""
        pick = self.random.choice
        lines = [
            "import numpy as np",
            "",
            "def f(x, X):",
            "    U, s, e = np.sin(X).ravel(), 0.0, 0.0",
        ]
        lines += ["    out, a = np.zeros((6, 3)), X[0] * x"]
        lines += [f"    {name} = {pick(BEGINS)}" for name in ("b", "c", "d")]
        lines += [f"    kept = {pick(['0.0'] * 5 + ['a', 'b', 'c', 'd', 'out'])}"]
        lines += [f"    box = [{pick(['np.ones(3)'] * 4 + ['a', 'b'])}]"]
        kind = pick([*LOOPS])
        loop, ends = LOOPS[kind]
        lines += ["    k = 0"] * (not loop.startswith("for")) + [f"    {loop}"]
        body = [self.statement("        ") for _ in range(self.random.randrange(2, 7))]
        if ends is not None:
            out = pick(["break", "break", f"return {self.result()}"])
            ends = self.filled(ends.replace("{ends}", pick(ENDS)).replace("{out}", out))
            body.insert(self.random.randrange(len(body) + 1), [f"        {ends}"])
        lines += [line for statement in body for line in statement]
        lines += ["        k = k + 1"] * (not loop.startswith("for"))
        lines += [self.filled("    {a}[2] = 7.0")] * (self.random.random() < 0.3)
        return "\n".join([*lines, f"    return {self.result()}", ""])

    def result(self) -> str:
        """What the function returns: a sum of all arrays, each with another weight."""
        weights = self.random.sample(range(1, 9), 6)
        arrays = ("a", "b", "c", "d", "box[0]", "kept")
        each = [f"{w} * np.sum({v})" for w, v in zip(weights, arrays, strict=True)]
        return " + ".join(["s", *each, "np.sum(out) * 9"])

    def filled(self, pattern: str) -> str:
        """A pattern with names of arrays, all of them different."""
        return pattern.format(**dict(zip("abc", self.random.sample("abcd", 3), strict=True)))

    def statement(self, margin: str) -> list[str]:
        """A statement of the loop, perhaps under a condition that values decide."""
        if len(margin) < 16 and self.random.random() < 0.25:
            inner = [s for _ in range(2) for s in self.statement(margin + "    ")]
            condition = f"U[k] * x > {self.random.uniform(-0.5, 0.5):.2f}"
            orelse = [f"{margin}else:", *self.statement(margin + "    ")]
            return [f"{margin}if {condition}:", *inner, *orelse * (self.random.random() < 0.4)]
        return [margin + self.filled(self.random.choice(self.patterns).strip())]

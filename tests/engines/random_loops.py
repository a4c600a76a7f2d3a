"""Random plain Python functions of a vector and a number of rounds, all loops and branches.

Loops go over constants, an argument, numbers of the rounds around, by steps, and until something
holds; they are left early, and they stand in branches that stand in loops.  Every function is
analytic where it is drawn, so its derivative is known to rounding without any of our code.
"""

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

N = 4
W = np.array([0.7, -0.4, 0.2, 0.9])


class RandomLoops:
    """The text of one function `f(x, n)`."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.count = 0
        self.has_array = self.r.random() < 0.5
        self.lines = ["def f(x, n):", "    s, t = x[0] * 0.5, 0.3", "    y = x * 1.0"]
        while not any([w in line for line in self.lines for w in ("for", "while")]):
            self.block(1, [], 3)
        self.lines.append("    return s + t * x[1] + y[0] * y[1] + y[2]")

    def function(self) -> Callable[..., Any]:
        """The function, whose source can be read."""
        text, name = "\n".join(self.lines), f"<loops {self.seed}>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        there: dict[str, Any] = {"np": np, "w": W}
        exec(compile(text, name, "exec"), there)
        return there["f"]

    def put(self, depth: int, line: str) -> None:
        """One more line."""
        self.lines.append("    " * depth + line)

    def fresh(self, like: str) -> str:
        """A name that nothing has."""
        self.count += 1
        return f"{like}{self.count}"

    # --- expressions ------------------------------------------------------------------------------

    def place(self, rounds: list[str]) -> str:
        """A place of an array."""
        if not rounds or self.r.random() < 0.2:
            return str(self.r.randrange(N))
        return self.r.choice(["{} % 4", "({} + 1) % 4", "abs({}) % 4"]).format(
            self.r.choice(rounds)
        )

    def number(self, rounds: list[str], depth: int = 0) -> str:
        """An expression for a number."""
        r, kind = self.r, self.r.random()
        if depth > 2 or kind < 0.35:
            read = [f"{a}[{self.place(rounds)}]" for a in "xxwy"[: 3 + self.has_array]]
            return r.choice([*read, "s", "t", str(round(r.uniform(-1, 1), 2))])
        a, b = [self.number(rounds, depth + 1) for _ in range(2)]
        forms = ["np.sin({})", "np.tanh({})", "({} + {})", "({} * {})", "({} - {}) * 0.5"]
        return r.choices(forms, [15, 10, 20, 15, 5])[0].format(a, b)

    def test(self, rounds: list[str]) -> str:
        """A condition."""
        return f"np.real({self.number(rounds, 1)}) > {round(self.r.uniform(-0.5, 0.7), 2)}"

    def ends(self, rounds: list[str]) -> str:
        """The rounds of a loop."""
        forms = ["4", "3", "n", "0, 5, 2"]
        if rounds:
            forms += ["{0}, 4", "{0} + 1", "-{0}, {0}", "{0}, 6, 2", "{0}, n"]
        return f"range({self.r.choice(forms).format(*rounds[-1:])})"

    # --- statements -------------------------------------------------------------------------------

    def block(self, depth: int, rounds: list[str], room: int) -> None:
        """One statement or two."""
        for _ in range(self.r.randint(1, 2)):
            kinds = [self.assigned, self.branch, self.loop, self.until]
            chosen = self.r.choices(kinds, [30, 25, 30, 15])[0] if room else self.assigned
            chosen(depth, rounds, room)

    def assigned(self, depth: int, rounds: list[str], room: int) -> None:
        """A variable, or an element of an array."""
        value = self.number(rounds)
        if self.has_array and self.r.random() < 0.3:
            self.put(depth, f"y[{self.place(rounds)}] = np.sin({value})")
            return
        v = self.r.choice("st")
        form = self.r.choice(["np.sin({} + {}) * 0.9", "{} * 0.3 + {} * 0.4"])
        self.put(depth, f"{v} = {form.format(value, v)}")

    def branch(self, depth: int, rounds: list[str], room: int) -> None:
        """If, with or without else."""
        self.put(depth, f"if {self.test(rounds)}:")
        self.block(depth + 1, rounds, room - 1)
        if self.r.random() < 0.6:
            self.put(depth, "else:")
            self.block(depth + 1, rounds, room - 1)

    def loop(self, depth: int, rounds: list[str], room: int) -> None:
        """For, which may be left early."""
        i = self.fresh("i")
        self.put(depth, f"for {i} in {self.ends(rounds)}:")
        self.block(depth + 1, [*rounds, i], room - 1)
        if self.r.random() < 0.25:
            self.put(depth + 1, f"if {self.test([*rounds, i])}:")
            self.put(depth + 2, "break")

    def until(self, depth: int, rounds: list[str], room: int) -> None:
        """While, in fewer than n rounds."""
        k, v = self.fresh("k"), self.r.choice("st")
        bound = self.r.choice([3, 5, "n"])
        self.put(depth, f"{k} = 0")
        self.put(
            depth, f"while {k} < {bound} and np.real({v}) < {round(self.r.uniform(0, 1.5), 2)}:"
        )
        self.block(depth + 1, [*rounds, k], room - 1)
        self.put(depth + 1, f"{v} = {v} + 0.2")
        self.put(depth + 1, f"{k} = {k} + 1")

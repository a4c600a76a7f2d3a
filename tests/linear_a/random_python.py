"""Random plain Python functions of a vector and a number: what people write, and our forms.

Every function is analytic where it is drawn: it decides by the real parts of values, so it may be
run on complex numbers, and the derivative of its value is known to rounding without any of our
code.  Values stay small, for what grows is bounded by tanh.
"""

import random
import re

N = 3  # the length of vectors
UNARY = """
    np.sin({})
    np.cos({})
    np.tanh({})
    np.exp(np.sin({}))
    {} * {}
    -{}
    np.sqrt({} ** 2 + 1)
    np.log({} ** 2 + 2)
    1 / (1 + {} ** 2)
    {} ** 3
    0.5 * {}
    np.square({})
""".strip().split("\n")
BINARY = """
    {} + {}
    {} - {}
    {} * {}
    {} / (2 + np.sin({}))
    np.add({}, {})
""".strip().split("\n")
TO_NUMBER = """
    np.sum({v})
    {v}[{i}]
    {v} @ {v}
    np.mean({v} * {s})
    np.sum({v}[1:] * {v}[:-1])
    np.prod(np.cos({v}))
    {v}[np.argmax(np.real({v}))]
    np.dot({v}, {w})
    np.einsum('i,i->', {v}, {w})
    np.sum({w}, where=np.real({v}) > 0)
    sum({v})
    np.trace(np.outer({v}, {w}))
    np.cumsum({v})[-1]
    {s} * np.count_nonzero(np.real({v}) > 0)
    {v}[np.argsort(np.real({w}))[1]] * {s}
    np.sum(np.vander({v}, 3)[{i}])
    np.linalg.det(np.outer({v}, {w}) + 3 * np.eye(3))
""".strip().split("\n")
TO_VECTOR = """
    {v} * {s}
    {v}[::-1]
    np.roll({v}, 1)
    np.cumsum({v})
    np.outer({v}, {w})[{i}]
    np.outer({v}, {w}) @ {v}
    np.where(np.real({v}) > {c}, {v}, {w})
    np.stack([{s}, {v}[0], {s} * 2])
    np.concatenate([{v}[1:], {w}[:1]])
    {v}[np.argsort(np.real({v}))]
    np.full(3, {s}) * {v}
    A @ {v}
    np.reshape({v}, (3, 1))[:, 0] + {w}
    {v}[idx]
    np.diff(np.append({v}, {s}))
    np.broadcast_to({s}, (3,)) + {v}
    np.transpose(np.tile({v}, (2, 1)))[:, 1]
    np.array([{s}, {v}[1], 0.5])
    np.linalg.solve(A + 4 * np.eye(3), {v})
    np.argsort(np.real({v})) * {s}
    (np.real({v}) > {c}) * {w}
    np.arange(3) * {v} + idx
    {v} ** np.array([1, 2, 3])
    np.where((np.real({v}) > 0) & (np.real({w}) < {c}), {s}, {v})
    np.flip({v}) * (idx // 2)
    np.outer({v}, {w}).reshape(-1)[::4]
    np.linalg.inv(np.outer({v}, {v}) + np.eye(3))[1]
    np.delete(np.append({v}, {s}), {j})
    np.convolve({v}, {w})[1:4]
    np.float32(0.5) * {v}
""".strip().split("\n")


class RandomFunction:
    """The text of one function `f(x, s)`; `analytic` whether numbers may be complex."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.helpers: list[str] = []
        self.count = 0
        self.vectors = ["x"]
        self.body(1, 4 + self.r.randrange(6), ["s"], self.vectors, 2)

    def fresh(self, like: str) -> str:
        """A name that nothing has."""
        self.count += 1
        return f"{like}{self.count}"

    def put(self, depth: int, line: str) -> None:
        """One more line."""
        self.lines.append("    " * depth + line)

    # --- expressions ---------------------------------------------------------------------------

    def number(self, ss: list[str], vs: list[str]) -> str:
        """An expression for a number."""
        r, kind = self.r, self.r.randrange(4)
        if kind == 0:
            return f"({self.filled(r.choice(UNARY), ss)})"
        if kind == 1:
            return f"({self.filled(r.choice(BINARY), ss)})"
        return self.mixed(r.choice(TO_NUMBER), ss, vs)

    def vector(self, ss: list[str], vs: list[str]) -> str:
        """An expression for a vector."""
        r, kind = self.r, self.r.randrange(4)
        if kind == 0:
            return f"({self.filled(r.choice(UNARY), vs)})"
        if kind == 1:
            return f"({self.filled(r.choice(BINARY), vs)})"
        return self.mixed(r.choice(TO_VECTOR), ss, vs)

    def filled(self, text: str, names: list[str]) -> str:
        """A template with names; what stands twice may be two of them."""
        return text.strip().format(*[self.r.choice(names) for _ in range(text.count("{}"))])

    def mixed(self, text: str, ss: list[str], vs: list[str]) -> str:
        """A template of numbers and vectors."""
        r = self.r
        given = {"v": r.choice(vs), "w": r.choice(vs), "s": r.choice(ss)}
        c = round(r.uniform(-1, 1), 2)
        text = text.strip().format(**given, i=r.randrange(-N, N), j=r.randrange(N), c=c)
        return f"({text})"

    def test(self, ss: list[str], vs: list[str]) -> str:
        """A condition."""
        c = round(self.r.uniform(-1, 1), 2)
        return f"np.real({self.number(ss, vs)}) {self.r.choice('<>')} {c}"

    def either(self, number: bool, ss: list[str], vs: list[str]) -> str:
        """A number or a vector, bounded."""
        return f"np.tanh({self.number(ss, vs) if number else self.vector(ss, vs)})"

    # --- statements ------------------------------------------------------------------------------

    def body(self, depth: int, n: int, ss: list[str], vs: list[str], room: int) -> None:
        """Statements; names that they bind are added to the lists."""
        kinds = [self.bind] * 4 + [self.write] * 2
        kinds += [self.loop, self.fori, self.branch, self.chosen, self.scanned, self.until,
                  self.helper, self.ruled, self.closure] * (room > 0)  # fmt: skip
        for _ in range(n):
            self.r.choice(kinds)(depth, ss, vs, room)

    def bind(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """y = ..."""
        number = self.r.random() < 0.5
        name = self.fresh("a" if number else "y")
        self.put(depth, f"{name} = {self.either(number, ss, vs)}")
        (ss if number else vs).append(name)

    def write(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """An array that is written."""
        name, r = self.fresh("y"), self.r
        start = r.choice(["np.zeros_like({})", "np.array({})", "np.copy({})", "{} * 1.0"])
        self.put(depth, f"{name} = {start.format(r.choice(vs))}")
        for _ in range(r.randrange(1, 4)):
            sign = r.choice(["=", "+=", "*=", "-="])
            if r.random() < 0.5:
                self.put(
                    depth,
                    f"{name}[{r.randrange(-N, N)}] {sign} {self.either(True, ss, [*vs, name])}",
                )
            else:
                part = r.choice([":2", "1:", "::2", "[0, 2]", "idx[:2]"])
                self.put(depth, f"{name}[{part}] {sign} {self.either(False, ss, vs)}[:2]")
        if r.random() < 0.2:
            self.put(depth, f"np.add.at({name}, [0, 0, 2], {self.either(False, ss, vs)})")
        vs.append(name)

    def loop(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """A plain loop: unrolled in a trace."""
        name, i = self.fresh("y"), self.fresh("i")
        self.put(depth, f"{name} = {self.either(False, ss, vs)}")
        self.put(depth, f"for {i} in range({self.r.randrange(4)}):")
        inner = [*vs, name]
        self.put(depth + 1, f"{name} = np.tanh({self.vector([*ss, f'{name}[{i} % 3]'], inner)})")
        vs.append(name)

    def inner(
        self, depth: int, args: str, numbers: str, vectors: str,
        ss: list[str], vs: list[str], room: int, results: str,
    ) -> str:  # fmt: skip
        """A nested function of `args` that gives numbers and vectors, as "sv"; its name.

        What is a number and what a vector of the arguments is said in their names, or parts.
        """
        name, mark = self.fresh("g"), self.fresh("_")
        args, numbers, vectors = (
            re.sub(r"\b([a-z])\b", rf"\1{mark}", t) for t in (args, numbers, vectors)
        )
        self.put(depth, f"def {name}({args}):")
        mine, ours = [*ss, *numbers.split()], [*vs, *vectors.split()]
        self.body(depth + 1, self.r.randrange(3), mine, ours, room - 1)
        found = [self.either(kind == "s", mine, ours) for kind in results]
        self.put(depth + 1, f"return {', '.join(found)}")
        return name

    def fori(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """fori_loop, whose body may write into its carry."""
        r, y = self.r, self.fresh("y")
        n = r.randrange(4)
        if r.random() < 0.5:
            g = self.fresh("g")
            self.put(depth, f"def {g}(i, y):")
            self.put(depth + 1, f"y[i] = {self.either(True, [*ss, 'y[i - 1]'], [*vs, 'y'])}")
            self.put(depth + 1, "return y")
            start = f"np.array({r.choice(vs)})"
            self.put(depth, f"{y} = lineara.fori_loop(0, {min(n, N)}, {g}, {start})")
        else:
            g = self.inner(depth, "i, c", "c[0]", "c[1]", ss, vs, room, "sv")
            start = f"({r.choice(ss)}, {r.choice(vs)})"
            self.put(depth, f"{y} = lineara.fori_loop(1, {n + 1}, {g}, {start})[1]")
        vs.append(y)

    def branch(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """cond, on what is around or on operands."""
        f, g = (self.inner(depth, "u", "", "u", ss, vs, room, "sv") for _ in range(2))
        a, y = self.fresh("a"), self.fresh("y")
        test = self.test(ss, vs)
        self.put(depth, f"{a}, {y} = lineara.cond({test}, {f}, {g}, {self.r.choice(vs)})")
        ss.append(a)
        vs.append(y)

    def chosen(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """switch."""
        fs = [self.inner(depth, "u", "u", "", ss, vs, room, "v") for _ in range(3)]
        y, which = self.fresh("y"), f"np.argmax(np.real({self.r.choice(vs)}))"
        self.put(depth, f"{y} = lineara.switch({which}, [{', '.join(fs)}], {self.r.choice(ss)})")
        vs.append(y)

    def scanned(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """scan over the elements of a vector."""
        g = self.inner(depth, "c, u", "u", "c", ss, vs, room, "vs")
        a, y = self.fresh("y"), self.fresh("y")
        way = self.r.choice(["", ", reverse=True"])
        pair = f"{self.r.choice(vs)}, {self.r.choice(vs)}"
        self.put(depth, f"{a}, {y} = lineara.scan({g}, {pair}{way})")
        vs += [a, y]

    def until(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """while_loop: a few rounds, fewer if a value says so."""
        r, y = self.r, self.fresh("y")
        g = self.inner(depth, "c", "c[0]", "c[1]", ss, vs, room, "v")
        test = f"(c[0] < {r.randrange(4)})"
        if r.random() < 0.5:
            test += f" & (np.real(c[1][0]) > {round(r.uniform(-1, 0.5), 2)})"
        body = f"lambda c: (c[0] + 1, {g}(c))"
        self.put(
            depth, f"{y} = lineara.while_loop(lambda c: {test}, {body}, (0, {r.choice(vs)}))[1]"
        )
        vs.append(y)

    def helper(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """A definition that is called twice."""
        name, y = self.fresh("h"), self.fresh("y")
        lines, self.lines = self.lines, []
        found = self.inner(0, "p, q", "p", "q", [], [], 1, "v")
        self.helpers += ["@lineara.function", *self.lines, f"{name} = {found}"]
        self.lines = lines
        a, b, v = self.r.choice(ss), self.r.choice(ss), self.r.choice(vs)
        self.put(depth, f"{y} = {name}({a}, {name}({b}, {v}))")
        vs.append(y)

    def ruled(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """A function with a rule of the user's."""
        y = self.fresh("y")
        self.put(depth, f"{y} = soft({self.r.choice(vs)}) * {self.r.choice(['1', *ss])}")
        vs.append(y)

    def closure(self, depth: int, ss: list[str], vs: list[str], room: int) -> None:
        """Containers and a closure."""
        r, y = self.r, self.fresh("y")
        self.put(depth, f"d = {{'a': {r.choice(vs)}, 'b': [{r.choice(ss)}, {r.choice(ss)}]}}")
        self.put(depth, f"{y} = (lambda t: d['a'] * t[0] + t[1])(d['b'])")
        vs.append(y)

    @property
    def text(self) -> str:
        """The text of the module."""
        used = " + ".join(f"np.sum({v})" for v in self.vectors[-3:])
        lines = [*HEAD, *self.helpers, "", "", "def f(x, s):", *self.lines, f"    return {used}"]
        return "\n".join([*lines, ""])

    def function(self):
        """The function."""
        scope: dict = {"__name__": "random_python"}
        exec(compile(self.text, "random_function.py", "exec"), scope)
        return scope["f"]


HEAD = """
import numpy as np
import lineara

A = np.array([[0.5, -0.2, 0.1], [0.3, 0.7, -0.4], [-0.6, 0.2, 0.9]])
idx = np.array([2, 0, 1])


@lineara.custom_jvp
def soft(x):
    return np.log(1 + np.exp(x))


@soft.defjvp
def soft_jvp(primals, tangents):
    (x,), (d,) = primals, tangents
    return soft(x), d / (1 + np.exp(-x))

""".strip().split("\n")

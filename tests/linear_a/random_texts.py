"""Random well-typed texts: one definition over numbers, arrays and products, used as one likes."""

import random

TYPES = ["f64", "f64[3]", "<f64, f64[3]>", "<>"]
NUMBERS = ["0.0", "-0.0", "1.0", "-1.0", "2.5", "inf", "nan"]
BINARY = ["+", "-", "*", "/"]
UNARY = ["sin", "exp", "negative", "tanh", "abs"]


class Text:
    """A text under construction; parse it with `sugar=True`."""

    def __init__(self, seed: int, size: int = 25) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.vars: list[tuple[str, str]] = [
            ("x", "f64"), ("y", "f64"), ("u", "f64[3]"), ("p", "<f64, f64[3]>"),
            ("~a", "f64"), ("~b", "f64[3]"), ("~q", "<f64, f64[3]>"),
        ]  # fmt: skip
        formals = ["f64, y: f64, u: f64[3], p: <f64, f64[3]>; ~a: f64, ~b: f64[3]"]
        lines = [self.binding(2) for _ in range(size)]
        results = [self.pick(t) for t in ("f64", "f64[3]", "<f64, f64[3]>")]
        linear = [self.pick(t, "~") for t in ("f64", "f64[3]", "<f64, f64[3]>")]
        stated = "f64, f64[3], <f64, f64[3]>"
        self.text = (
            "def g(x: f64, u: f64[3]; ~a: f64) -> (f64, f64[3]; f64[3], f64) =\n"
            "  (x * x, u + u; u * broadcast_to[shape=(3,)](~a), ~a)\n"
            f"def f(x: {formals[0]}, ~q: <f64, f64[3]>) -> ({stated}; {stated}) =\n"
            + "\n".join(lines)
            + f"\n({', '.join(results)}; {', '.join(linear)})"
        )

    def pick(self, t: str, zone: str = "") -> str:
        """A variable of a type and a zone."""
        found = [v for v, s in self.vars if s == t and v.startswith("~") is bool(zone)]
        return self.random.choice(found[-6:] if self.random.random() < 0.8 else found)

    def fresh(self, t: str, zone: str = "") -> str:
        """A new variable."""
        self.count += 1
        name = f"{zone}v{self.count}"
        self.vars.append((name, t))
        return name

    def binding(self, depth: int) -> str:
        """One line, or a block of several."""
        choice = self.random.random()
        if choice < 0.1 and depth:
            outside = list(self.vars)
            inner = [self.binding(depth - 1) for _ in range(self.random.randrange(4))]
            results = f"({self.pick('f64')}, {self.pick('f64[3]')}; {self.pick('f64[3]', '~')})"
            self.vars = outside
            names = f"({self.fresh('f64')}, {self.fresh('f64[3]')}; {self.fresh('f64[3]', '~')})"
            return f"let {names} = {{ {' '.join(inner)} {results} }} in"
        if choice < 0.16:
            args = f"({self.pick('f64')}, {self.pick('f64[3]')}; {self.pick('f64', '~')})"
            names = [self.fresh("f64"), self.fresh("f64[3]")]
            linear = [self.fresh("f64[3]", "~"), self.fresh("f64", "~")]
            return f"let ({', '.join(names)}; {', '.join(linear)}) = g{args} in"
        if choice < 0.2:
            return f"let (;) = drop({self.any_leaf()}) in"
        return self.nonlinear() if choice < 0.6 else self.linear()

    def any_leaf(self) -> str:
        """What may be dropped."""
        return self.random.choice([
            self.pick("f64"), self.pick("f64[3]", "~"), f"sin({self.pick('f64[3]')})",
            f"{self.pick('f64')} * {self.pick('f64[3]', '~')}",
            f"~<{self.pick('f64', '~')}, {self.pick('f64[3]', '~')}>",
        ])  # fmt: skip

    def nonlinear(self) -> str:
        """A line of non-linear code."""
        a, b, u, w = self.pick("f64"), self.pick("f64"), self.pick("f64[3]"), self.pick("f64[3]")
        op, fn = self.random.choice(BINARY), self.random.choice(UNARY)
        p = self.pick("<f64, f64[3]>")
        if self.random.random() < 0.1:
            x, y = self.fresh("f64"), self.fresh("f64[3]")
            return f"let <{x}, {y}> = {p} in"
        t, leaf = self.random.choice([
            ("f64", f"{a} {op} {b}"), ("f64[3]", f"{u} {op} {w}"), ("f64[3]", f"{a} {op} {u}"),
            ("f64[3]", f"{u} {op} {a}"), ("f64", f"{fn}({a})"), ("f64[3]", f"{fn}({u})"),
            ("f64", self.random.choice(NUMBERS)), ("f64", self.random.choice(NUMBERS)),
            ("f64", a), ("<f64, f64[3]>", f"<{a}, {u}>"), ("f64", f"index[at=(1,)]({u})"),
            ("f64", f"sum[axis=(0,), keepdims=false]({u})"),
            ("f64[3]", f"reshape[shape=(3,)]({u})"),
            ("f64[3]", f"broadcast_to[shape=(3,)]({a})"), ("<>", "<>"),
            ("f64[3]", f"negative({u})"),
            ("f64[3]", "[1.0, 1.0, 1.0]"), ("f64", f"negative({a})"), ("f64[3]", "zeros[f64[3]]"),
        ])  # fmt: skip
        return f"let {self.fresh(t)} = {leaf} in"

    def linear(self) -> str:
        """A line of linear code."""
        k, m = self.pick("f64"), self.pick("f64[3]")
        a, b = self.pick("f64", "~"), self.pick("f64", "~")
        u, w = self.pick("f64[3]", "~"), self.pick("f64[3]", "~")
        q = self.pick("<f64, f64[3]>", "~")
        if self.random.random() < 0.15:
            x, y = self.fresh("f64", "~"), self.fresh("f64[3]", "~")
            return f"let ~<{x}, {y}> = {q} in"
        if self.random.random() < 0.1:
            x, y = self.fresh("f64", "~"), self.fresh("f64[3]", "~")
            return f"let (; {x}, {y}) = read[2]({u}) in"
        t, leaf = self.random.choice([
            ("f64", f"{a} + {b}"), ("f64[3]", f"{u} + {w}"), ("f64", f"{k} * {a}"),
            ("f64[3]", f"{k} * {u}"), ("f64[3]", f"{m} * {u}"), ("<f64, f64[3]>", f"{k} * {q}"),
            ("f64", "zero[f64]"), ("f64[3]", "zero[f64[3]]"), ("f64", a), ("f64[3]", u),
            ("<f64, f64[3]>", "zero[<f64, f64[3]>]"), ("<f64, f64[3]>", f"~<{a}, {u}>"),
            ("f64[3]", f"accum[0]({u}, {a})"), ("f64[3]", f"put[0]({u}, {a})"),
            ("f64", f"sum[axis=(0,), keepdims=false]({u})"), ("f64", f"matmul({m}, {u})"),
            ("f64[3]", f"broadcast_to[shape=(3,)]({a})"), ("f64", f"index[at=(2,)]({u})"),
        ])  # fmt: skip
        return f"let {self.fresh(t, '~')} = {leaf} in"

"""A program as a Python function, for the eager engine: nested functions, loops, arrays filled."""

from lineara.crosscheck.language import Array, Program, Real, Term

# How a user writes an operation: on numbers, and on arrays; {} stands for the arguments.
INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
SCALAR = {
    **{f: f"math.{f}({{}})" for f in (
        "acos", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "exp", "exp2", "expm1",
        "hypot", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh", "atan2",
    )},
    "abs": "abs({})", "negative": "-({})", "reciprocal": "1 / ({})", "square": "({}) ** 2",
    "deg2rad": "math.radians({})", "rad2deg": "math.degrees({})",
    "maximum": "max({})", "minimum": "min({})", "logaddexp": "np.logaddexp({})",
}  # fmt: skip
ARRAY = {
    **{f: f"np.arc{f[1:]}({{}})" for f in (
        "acos", "asin", "asinh", "atan", "atanh", "atan2",
    )},
    "abs": "abs({})", "negative": "-({})", "square": "({}) ** 2",
}  # fmt: skip


def text_of(program: Program) -> str:
    """The text of a module with a function f.

    >>> from lineara.crosscheck.language import R, op, var
    >>> x = var("x", R)
    >>> print(text_of(Program((("x", R),), op("multiply", x, op("sin", x)), (0.5,))))
    import math
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(x):
        return x * math.sin(x)
    <BLANKLINE>
    """
    writer = _Writer()
    writer.function("f", [name for name, _ in program.inputs], program.body)
    return "import math\nimport numpy as np\n\n\n" + "\n".join(writer.lines) + "\n"


class _Writer:
    """Lines of Python; an expression may need lines before it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}_{self.count}"

    def function(self, name: str, formals: list[str], body: Term) -> None:
        self.line(f"def {name}({', '.join(formals)}):")
        self.depth += 1
        self.line(f"return {_bare(self.expression(body))}")
        self.depth -= 1

    def named(self, text: str) -> str:
        """A name for what an expression gives."""
        if text.isidentifier():
            return text
        x = self.fresh("t")
        self.line(f"{x} = {_bare(text)}")
        return x

    def expression(self, e: Term) -> str:
        match e.head:
            case "var":
                return e.held
            case "num":
                return repr(e.held)
            case "lam":
                f = self.fresh("g")
                self.function(f, [e.held], e.parts[0])
                return f
            case "let":
                self.line(f"{e.held} = {_bare(self.expression(e.parts[0]))}")
                return self.expression(e.parts[1])
            case "if":
                return self.choice(e)
            case "loop":
                return self.loop(e)
            case "op":
                return self.operation(e)
            case "stack":
                return self.filled(e)
        parts = [self.expression(p) for p in e.parts]
        match e.head:
            case "app":
                return f"{parts[0]}({_bare(parts[1])})"
            case "pair":
                return f"({_bare(parts[0])}, {_bare(parts[1])})"
            case "first" | "second":
                return f"{parts[0]}[{int(e.head == 'second')}]"
            case "sum":
                return f"np.sum({_bare(parts[0])})"
            case "index":
                return f"{parts[0]}[{e.held}]"
        return f"({parts[0]} @ {parts[1]})"

    def choice(self, e: Term) -> str:
        """Statements, since what a branch needs is written in the branch."""
        a, b, yes, no = e.parts
        left, right = self.expression(a), self.expression(b)
        x = self.fresh("t")
        for head, side in ((f"if {left} < {right}:", yes), ("else:", no)):
            self.line(head)
            self.depth += 1
            self.line(f"{x} = {_bare(self.expression(side))}")
            self.depth -= 1
        return x

    def loop(self, e: Term) -> str:
        f, start = e.parts
        if f.head != "lam":
            f_text, x = self.named(self.expression(f)), self.fresh("t")
            self.line(f"{x} = {_bare(self.expression(start))}")
            body = f"{f_text}({x})"
            self.line(f"for _ in range({e.held}):")
            self.depth += 1
            self.line(f"{x} = {body}")
        else:
            x = f.held
            self.line(f"{x} = {_bare(self.expression(start))}")
            self.line(f"for _ in range({e.held}):")
            self.depth += 1
            self.line(f"{x} = {_bare(self.expression(f.parts[0]))}")
        self.depth -= 1
        return x

    def operation(self, e: Term) -> str:
        parts = [self.expression(p) for p in e.parts]
        if e.held in INFIX:
            return f"({f' {INFIX[e.held]} '.join(parts)})"
        given = ", ".join(map(_bare, parts))
        if isinstance(e.type, Real):
            text = SCALAR[e.held].format(given)
        elif e.held == "reciprocal":
            text = f"1 / ({given})"
        else:
            text = ARRAY.get(e.held, f"np.{e.held}({{}})").format(given)
        return f"({text})" if text[0] in "-1(" else text

    def filled(self, e: Term) -> str:
        """An array of what was computed: written at once, or filled element by element."""
        assert isinstance(e.type, Array)
        parts = [_bare(self.expression(p)) for p in e.parts]
        if self.count % 2:
            return f"np.array([{', '.join(parts)}])"
        v = self.fresh("v")
        self.line(f"{v} = np.zeros({e.type.n})")
        for i, p in enumerate(parts):
            self.line(f"{v}[{i}] = {p}")
        return v


def _bare(text: str) -> str:
    """The expression without the brackets around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            inner = text[1:-1]
            return inner if i == len(text) - 1 and "," not in inner else text
    return text

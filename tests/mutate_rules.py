"""Faults put into derivative rules, one at a time: how many do the tests catch?

    python tests/mutate_rules.py [FAULTS | --all] [--seed N] [--jobs N] [--journal FILE]

A fault turns a sign, exchanges a product and a quotient, two arguments or two operands, doubles or
shifts a number, or drops a term, a factor or a call.  It is caught if a law of one of the lines of
the table of primitives fails, a derivative of one of the expressions of NumPy's functions, or one
of the tests of the families.  A fact of an elementwise primitive is asked about by the tests that
name the primitive.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "ops")]

from faults import SOURCE, Edit, Made, Run, silence, swap  # noqa: E402

TESTS = ("test_primitives.py", "ops", "test_kinks.py", "test_plain_code.py", "test_rules.py")
TESTS += ("test_complex.py", "linear_a/test_numpy_staged.py", "messages/test_families.py")
TESTS += ("messages/test_shapes.py", "linear_a/test_whole_numbers_staged.py")
RULES = ("jvp", "transpose", "linearize", "builder")
DECLARING = ("elementwise", "special", "Elementwise", "Special", "kernel")


def rules(tree: ast.Module) -> Iterator[ast.AST]:
    """The pieces of derivative rules: methods, helpers, and partials of declarations."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name in RULES:
                    yield inner
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
            yield node
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in DECLARING:
                parts = [*call.args, *[k.value for k in call.keywords]]
                yield from (p for p in parts if isinstance(p, ast.Lambda))


def faults(tree: ast.Module) -> list[tuple[ast.AST, Edit]]:
    """The place of every fault, and the edit that makes it."""
    silence(tree)
    return [
        (node, edit)
        for rule in rules(tree)
        for node in ast.walk(rule)
        if not getattr(node, "silent", False)
        for edit in edits(node)
    ]


COMMUTING = ("min", "max", "equal", "betaln")  # what may be exchanged without a fault
OTHER = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


def edits(node: Any) -> Iterator[Edit]:
    """What can be done to one node of a formula."""

    def become(other: ast.AST) -> None:
        node.__class__, node.__dict__ = other.__class__, dict(vars(other))

    match node:
        case ast.BinOp(op=op) if type(op) in OTHER:
            yield lambda: setattr(node, "op", OTHER[type(op)]())
            yield lambda: become(node.left)
            if isinstance(op, ast.Sub | ast.Div):
                yield lambda: swap_operands(node)
            else:
                yield lambda: become(node.right)
        case ast.UnaryOp(op=ast.USub()):
            yield lambda: become(node.operand)
        case ast.Constant(value=float() as v) if v:
            yield lambda: setattr(node, "value", 2 * v)
        case ast.Constant(value=int() as v) if not isinstance(v, bool):
            yield lambda: setattr(node, "value", v + 1)
        case ast.Call(func=ast.Name(id=name), args=[first, *rest]):
            for i in range(len(rest) if name not in COMMUTING else 0):
                yield lambda i=i: swap(node.args, i)
            if name in ("conjugate", "swap", "keep", "unbroadcast", "real_part"):
                yield lambda: become(first)


def swap_operands(node: Any) -> None:
    """Exchange what is subtracted, or divided, with what it is taken from."""
    node.left, node.right = node.right, node.left


def near(made: Made, test: str) -> bool:
    """Whether a test names the primitive that is declared where the fault is, or one using it."""
    names = {made.place.strip("_"), *users().get(made.place, ())}
    return any(re.search(rf"(?<!\w){name}(?!\w)", test) for name in names)


@functools.cache
def users() -> dict[str, set[str]]:
    """The elementwise primitives that call a function where their partials are compiled."""
    from lineara.facts.primitive import Elementwise, registry

    found: dict[str, set[str]] = {}
    for name, p in registry.primitives.items():

        def trace(frame: Any, event: str, _: Any, name: str = name) -> None:  # of calls only
            found.setdefault(frame.f_code.co_qualname, set()).add(name)

        if isinstance(p, Elementwise):
            forget()
            sys.settrace(trace)
            try:
                _ = p.complex_weights, p.weights
            finally:
                sys.settrace(None)
    return found


def forget() -> None:
    """Partials, methods of nodes, plans and tables that were made of rules are made again."""
    from lineara.facts.primitive import registry
    from lineara.tape.levels import threads

    for p in registry.primitives.values():
        for name in ("weights", "complex_weights", "_kept"):
            vars(p).pop(name, None)
    registry.plans.clear()
    registry.readers.clear()  # which hold the plans
    forget_tables("lineara")
    threads.waiting.clear()  # levels, whose nodes have the methods


def forget_tables(package: str = "lineara.ops") -> None:
    """What functions remember: without it, each test calls them."""
    for module in [m for name, m in sys.modules.items() if f"{name}.".startswith(f"{package}.")]:
        for found in vars(module).values():
            if isinstance(found, functools._lru_cache_wrapper):
                found.cache_clear()


RUN = Run(
    "rules",
    sorted(f"ops/{p.name}" for p in (SOURCE / "ops").glob("*.py") if p.name != "__init__.py"),
    faults,
    TESTS,
    libraries=("hypothesis", "numpy", "mpmath", "optree", "scipy.special", "scipy.linalg"),
    near=near,
    forget=forget,
    before=forget_tables,
)

if __name__ == "__main__":
    sys.exit(RUN.main())

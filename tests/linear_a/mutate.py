"""Faults put into the passes one at a time: how many of them do the tests catch?  `make mutate`

    python tests/linear_a/mutate.py [FAULTS | --all] [--seed N] [--jobs N] [--journal FILE]

A fault exchanges an operator, a constant, two operands or two results, turns a condition around,
takes a branch or a filter always, or leaves a statement out.  It is caught if a property of one of
some hundred random programs fails, or else one of the tests of the passes.
"""

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE.parent / "ops")]

from faults import Edit, Run, Trial, silence, swap  # noqa: E402

PASSES = ("jvp", "unzip", "transpose", "erase", "simplify", "batch", "inline")
TESTS = (
    "golden", "worked_examples", "control", "unzip", "arrays", "custom", "forms", "rule_texts",
    "treeverse", "constants", "properties", "dropped", "inert", "erase", "fresh_names", "policies",
    "plan", "dims", "operators", "simplify", "batch", "inline", "vmap", "partition", "corners",
    "policies_at_random",
)  # fmt: skip
SLOW = (
    "holds_of_random_programs",
    "every_order_hold",
    "no_limit",
    "linear_in_its_length",
    "third_order",
)
CORPUS = 150  # programs

COMPARE = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SWAPS = {"xs": "lxs", "lxs": "xs", "results": "lresults", "lresults": "results"}


def faults(tree: ast.Module) -> list[tuple[ast.AST, Edit]]:
    """The places of all faults and the edits that make them."""
    silence(tree)
    for node in ast.walk(tree):  # membership knows no order, and the parts of a key have none
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[found]):
                unordered = [found]
            case ast.Assign(targets=[ast.Name(id="key" | "known")], value=found):
                unordered = ast.walk(found)
            case ast.AnnAssign(target=ast.Name(id="key"), value=ast.expr() as found):
                unordered = ast.walk(found)
            case ast.FunctionDef(name="key_of" | "_frozen"):
                unordered = ast.walk(node)
            case _:
                continue
        for one in unordered:
            one.unordered = True  # type: ignore
    return [
        (node, edit)
        for node in ast.walk(tree)
        if not getattr(node, "silent", False)
        for edit in edits(node)
    ]


def edits(node: Any) -> Iterator[Edit]:
    """What can be done to one node; an edit changes the tree that the node is in."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARE:
            yield lambda: node.ops.__setitem__(0, COMPARE[type(op)]())
        case ast.BoolOp(op=op):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield lambda: setattr(node, "op", other())
            for i in range(len(node.values)):
                yield lambda i=i: without(node, i)
        case ast.If() | ast.IfExp():
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
            yield lambda: setattr(node, "test", ast.Constant(True))
            yield lambda: setattr(node, "test", ast.Constant(False))
        case ast.UnaryOp(op=ast.Not()):
            yield (
                lambda: (
                    setattr(node, "op", ast.UAdd())
                    or setattr(
                        node, "operand", ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
                    )
                )
            )
        case ast.Constant(value=bool() as v):
            yield lambda: setattr(node, "value", not v)
        case ast.Constant(value=int() as v):
            yield lambda: setattr(node, "value", v + 1)
        case ast.BinOp(op=ast.Add() | ast.BitOr()):
            if not isinstance(node.right, ast.Constant) and not isinstance(node.right, ast.Name):
                yield lambda: exchange(node, "left", "right")
        case ast.Call(args=args):
            for i in range(len(args) - 1):
                yield lambda i=i: swap(node.args, i)
            if isinstance(node.func, ast.Name) and node.func.id in ("reversed", "sorted"):
                yield lambda: setattr(node.func, "id", "list")
        case ast.Tuple(elts=elts, ctx=ast.Load()) if not hasattr(node, "unordered"):
            for i in range(len(elts) - 1):
                yield lambda i=i: swap(node.elts, i)
        case ast.Subscript(slice=ast.Slice(step=step)) if step is not None:
            yield lambda: setattr(node.slice, "step", None)
        case ast.comprehension(ifs=ifs):
            for i in range(len(ifs)):
                yield lambda i=i: node.ifs.pop(i)
        case ast.Attribute(attr=attr, ctx=ast.Load()) if attr in SWAPS:
            yield lambda: setattr(node, "attr", SWAPS[attr])
    for name in ("body", "orelse"):
        inside = getattr(node, name, None)
        if not isinstance(inside, list) or isinstance(node, ast.Module | ast.ClassDef):
            continue
        for i, s in enumerate(inside):
            doc = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
            said = isinstance(s, ast.AnnAssign) and s.value is not None  # more than a type
            if (said or isinstance(s, ast.Expr | ast.AugAssign | ast.Assign)) and not doc:
                yield lambda inside=inside, i=i: inside.__setitem__(i, ast.Pass())


def without(node: ast.BoolOp, i: int) -> None:
    """Leave one of the conditions out."""
    node.values.pop(i)
    if len(node.values) == 1:
        (rest,) = node.values
        node.__class__, node.__dict__ = rest.__class__, dict(vars(rest))  # type: ignore


def exchange(node: Any, a: str, b: str) -> None:
    """Exchange two fields."""
    left, right = getattr(node, a), getattr(node, b)
    setattr(node, a, right)
    setattr(node, b, left)


def corpus() -> list[Trial]:
    """Random programs, drawn once: all properties of one are one test."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from prove import prove
    from test_properties import KINDS

    found: dict[str, Any] = {}

    @hypothesis.seed(1)
    @settings(max_examples=CORPUS, database=None, deadline=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(KINDS)
    def keep(case: Any) -> None:
        found[str(case.program)] = case

    keep()
    cases = [(f"program {i}", c) for i, c in enumerate(found.values())]
    return [Trial(name, functools.partial(proved, prove, c)) for name, c in cases]


def proved(prove: Callable[[Any], None], case: Any) -> bool:
    """Whether the properties hold; an error says that they do not."""
    prove(case)
    return True


RUN = Run(
    "passes",
    [f"passes/{name}.py" for name in PASSES],
    faults,
    [f"linear_a/test_{stem}.py" for stem in TESTS],
    more=corpus,
    skip=lambda name: any(word in name for word in SLOW),
    libraries=("hypothesis", "lark", "numpy", "optree", "rich", "scipy.special"),
)

if __name__ == "__main__":
    sys.exit(RUN.main())

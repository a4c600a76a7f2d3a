"""Faults put into derivative rules, one at a time: how many do the tests catch?

    python tests/mutate_rules.py [FAULTS [SEED]]      300 of all the faults by default; 0 is all

A fault turns a sign, exchanges a product and a quotient, two arguments or two operands, doubles or
shifts a number, or drops a term, a factor or a call.  It is caught if a law of one of the lines of
the table of primitives fails, or else a derivative of one of the expressions of NumPy's functions,
or one of the tests of the families.
"""

import ast
import functools
import importlib
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for _folder in ("", "linear_a", "ops"):
    sys.path.insert(0, str(Path(__file__).parent / _folder))

import pytest  # noqa: E402
from mutate import LIBRARIES, Edit, Fault, outcomes, silence, swap  # noqa: E402

OPS = Path(__file__).parent.parent / "src/lineara/ops"
FURTHER = ("ops/test_linalg.py", "ops/test_scipy_forms.py", "test_kinks.py", "test_plain_code.py")
RULES = ("jvp", "transpose", "linearize", "builder")
DECLARING = ("elementwise", "special", "Elementwise", "Special")

# Faults that change nothing that is promised, and why.
EQUIVALENT: dict[tuple[str, str], str] = {}


def rules(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The name of a primitive, or of a helper, and a piece of its derivative rule."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name in RULES:
                    yield node.name.rstrip("_"), inner
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
            yield "", node
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in DECLARING:
                name = call.args[0].value if isinstance(call.args[0], ast.Constant) else ""
                parts = [*call.args, *[k.value for k in call.keywords]]
                yield from ((name, p) for p in parts if isinstance(p, ast.Lambda))


def faults(tree: ast.Module) -> list[tuple[str, ast.AST, Edit]]:
    """The rule of every fault, its place, and the edit that makes it."""
    silence(tree)
    return [
        (name, node, edit)
        for name, rule in rules(tree)
        for node in ast.walk(rule)
        if not getattr(node, "silent", False)
        for edit in edits(node)
    ]


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
            for i in range(len(rest)):
                yield lambda i=i: swap(node.args, i)
            if name in ("conjugate", "swap", "keep", "unbroadcast", "real_part"):
                yield lambda: become(first)


def swap_operands(node: Any) -> None:
    """Exchange what is subtracted, or divided, with what it is taken from."""
    node.left, node.right = node.right, node.left


def faulty(file: str, index: int) -> tuple[str, str, str, str]:
    """The primitive, the text of a file with one fault, and the statement before and after."""
    text = (OPS / file).read_text()
    tree = ast.parse(text)
    name, node, edit = faults(tree)[index]
    line = getattr(node, "lineno", 0)
    edit()
    made, old = ast.unparse(ast.fix_missing_locations(tree)), ast.unparse(ast.parse(text))
    pairs = zip(old.splitlines(), made.splitlines(), strict=False)
    before, after = next(((a, b) for a, b in pairs if a != b), ("", ""))
    return name, made, f"line {line}: {before.strip()}", after.strip()


def survives(file: str, index: int) -> bool:
    """Whether all laws hold in spite of the fault; an index below 0 is none."""
    name, declared = "", ""
    if index >= 0:
        name, text, _, _ = faulty(file, index)
        declared = (OPS / file).read_text()
        sys.meta_path.insert(0, Fault(f"lineara.ops.{file.removesuffix('.py')}", text))
    warnings.simplefilter("ignore")
    import test_numpy_forms as forms
    import test_primitives as table

    mine = [line for line in table.SMOOTH if line.name == name]
    for line in mine or [line for line in table.SMOOTH if not declared or line.name in declared]:
        laws(table, line)
    for line in forms.LINES:
        forms.test_first_derivatives_agree_with_differences_in_both_modes(line)
    for line in forms.LINES:
        forms.test_second_derivatives_agree_with_differences(line)
    here = Path(__file__).parent
    files = [str(here / name) for name in FURTHER if (here / name).exists()]
    plain = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    late = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the tables are imported already
    return pytest.main([*plain, *late, *files]) == 0


def laws(table: Any, line: Any) -> None:
    """The tests of a line of the table."""
    table.test_the_transpose_is_the_adjoint(line)
    if line in table.AWAY_FROM_KINKS:
        table.test_the_jvp_is_the_limit_of_differences(line)
        table.test_second_derivatives_are_the_limit_of_differences_of_first_ones(line)
    if line in table.COMPLEX:
        table.test_complex_derivatives_are_those_of_pairs_of_reals(line)
    if line in table.ELEMENTWISE:
        table.test_partials_have_full_precision(line)
    for name, point, partials in table.EDGES:
        if name == line.name:
            table.test_partials_at_edges(name, point, partials)
    table.test_batching_is_a_loop(line)


def main(wanted: int = 300, seed: int = 0) -> int:
    """Try faults; the exit status tells whether at least 99 % of them are caught."""
    for name in (*LIBRARIES, "mpmath"):
        importlib.import_module(name)
    files = sorted(p.name for p in OPS.glob("*.py") if p.name != "__init__.py")
    every = [(f, i) for f in files for i in range(len(faults(ast.parse((OPS / f).read_text()))))]
    chosen = sorted(random.Random(seed).sample(every, min(wanted, len(every)))) if wanted else every
    print(f"{len(chosen)} of {len(every)} faults in {len(files)} files", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if any(outcomes([functools.partial(survives, "", -1)], Path(folder))):
            print("the tests fail without a fault; mend that first")
            return 2
        jobs = [functools.partial(survives, *site) for site in chosen]
        codes = outcomes(jobs, Path(folder))
    left, same = 0, 0
    for (file, i), code in zip(chosen, codes, strict=True):
        if code:
            continue
        name, _, before, after = faulty(file, i)
        reason = EQUIVALENT.get((before.partition(": ")[2], after))
        same += reason is not None
        left += reason is None
        print(f"{file} {i} ({name}), {before}\n    now {after}\n    {reason or 'SURVIVES'}")
    tried = len(chosen) - same
    print(f"{codes.count(-signal.SIGXCPU)} did not end, and count as caught")
    score = f"{1 - left / tried:.1%}"
    print(f"{tried - left} of {tried} faults are caught, {score}; {same} change nothing")
    return int(left > 0.01 * tried)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

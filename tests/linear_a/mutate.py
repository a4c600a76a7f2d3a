"""Faults put into the passes one at a time: how many of them do the tests catch?  `make mutate`

    python tests/linear_a/mutate.py [FAULTS [SEED]]      100 of all the faults by default; 0 is all

A fault exchanges an operator, a constant, two operands or two results, turns a condition around,
takes a branch or a filter always, or leaves a statement out.  It is caught if a property of one of
a hundred random programs fails, or else one of the tests of the passes.
"""

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PASSES = ("jvp", "unzip", "transpose", "erase")
TESTS = (
    "worked_examples", "control", "unzip", "arrays", "custom", "forms", "rule_texts", "treeverse",
    "constants", "properties", "dropped", "inert", "erase", "fresh_names", "policies",
    "plan", "dims", "operators",
)  # fmt: skip
CORPUS, LIMIT = 150, 300  # programs; seconds of a processor
LIBRARIES = ("hypothesis", "lark", "numpy", "optree", "pytest", "rich", "scipy.special")

# Faults that change nothing that is promised, and why.
EQUIVALENT: dict[tuple[str, str], str] = {
    (
        "likes = {v: cotangent(a.name) for v, a in zip(rule.results, linear, strict=True)}",
        "likes = {v: cotangent(a.name) for v, a in zip(linear, rule.results, strict=True)}",
    ): "it suggests names only",
    (
        "stored = [v for v in stored if v not in (*ahead, *behind)]",
        "stored = [v for v in stored if v not in (*behind, *ahead)]",
    ): "membership knows no order",
    (
        "self.known = replace(program, types=ChainMap(self.types, dict(program.types)), "
        "defs=ChainMap(self.defs, dict(program.defs)))",
        "self.known = replace(program, types=ChainMap(self.types, dict(program.types)), "
        "defs=ChainMap(dict(program.defs), self.defs))",
    ): "the two maps have no name in common",
}

COMPARE = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SWAPS = {"xs": "lxs", "lxs": "xs", "results": "lresults", "lresults": "results"}

Edit = Callable[[], None]


def faults(tree: ast.Module) -> Iterator[tuple[ast.AST, Edit]]:
    """The places of all faults and the edits that make them."""
    for node in ast.walk(tree):
        if not getattr(node, "silent", False):
            yield from ((node, edit) for edit in edits(node))


def silence(tree: ast.Module) -> None:
    """Mark what has no meaning for programs that are right: errors, assertions, types, texts."""

    def mark(node: ast.AST | None) -> None:
        for inner in ast.walk(node) if node is not None else ():
            inner.silent = True  # type: ignore[attr-defined]

    for node in ast.walk(tree):
        match node:
            case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
                mark(node)
            case ast.If(body=[ast.Raise()], orelse=[]):
                mark(node)
            case ast.keyword(arg="strict"):  # as an assertion
                mark(node)
            case ast.AnnAssign(annotation=a):
                mark(a)
            case ast.arg(annotation=a):
                mark(a)
            case ast.FunctionDef(returns=r, name=name):
                mark(r)
                if name.startswith("__") and name != "__init__":
                    mark(node)
            case ast.Assign(targets=[ast.Name(id=name)]) if name == "__all__" or name[0].isupper():
                mark(node)


def edits(node: Any) -> Iterator[Edit]:
    """What can be done to one node; an edit changes the tree that the node is in."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARE:
            yield lambda: node.ops.__setitem__(0, COMPARE[type(op)]())
        case ast.BoolOp(op=op):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield lambda: setattr(node, "op", other())
            for i in range(len(node.values)):
                yield lambda i=i: node.values.pop(i) if len(node.values) > 1 else None
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
        case ast.Tuple(elts=elts, ctx=ast.Load()):
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
            if isinstance(s, ast.Expr | ast.AugAssign | ast.Assign) and not doc:
                yield lambda inside=inside, i=i: inside.__setitem__(i, ast.Pass())


def swap(items: list, i: int) -> None:
    """Exchange two neighbours."""
    items[i], items[i + 1] = items[i + 1], items[i]


def exchange(node: Any, a: str, b: str) -> None:
    """Exchange two fields."""
    left, right = getattr(node, a), getattr(node, b)
    setattr(node, a, right)
    setattr(node, b, left)


def source(name: str) -> str:
    """The text of a pass."""
    return (ROOT / "src/lineara/passes" / f"{name}.py").read_text()


def faulty(name: str, index: int) -> tuple[str, str, str]:
    """The text of a pass with one fault, and what changed: the statement before, and after."""
    plain, tree = ast.parse(source(name)), ast.parse(source(name))
    silence(tree)
    node, edit = list(faults(tree))[index]
    line = getattr(node, "lineno", 0) or next(
        (n.lineno for n in ast.walk(node) if hasattr(n, "lineno")), 0
    )
    edit()
    made = ast.unparse(ast.fix_missing_locations(tree)).splitlines()
    old = ast.unparse(plain).splitlines()
    k = next((i for i, (a, b) in enumerate(zip(old, made, strict=False)) if a != b), 0)
    return "\n".join(made), f"line {line}: {old[k].strip()}", made[k].strip()


def count(name: str) -> int:
    """How many faults a pass can have."""
    tree = ast.parse(source(name))
    silence(tree)
    return sum(1 for _ in faults(tree))


# --- one fault, in a process of its own ---------------------------------------------------------


class Fault(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another text."""

    def __init__(self, module: str, text: str) -> None:
        self.module, self.text = module, text

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self.module:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: Any) -> None:
        exec(compile(self.text, f"<{self.module} with a fault>", "exec"), module.__dict__)


def survives(name: str, index: int, corpus: str) -> bool:
    """Whether all properties and tests hold in spite of the fault."""
    if index >= 0:  # else there is no fault
        sys.meta_path.insert(0, Fault(f"lineara.passes.{name}", faulty(name, index)[0]))
    try:
        from programs import Case
        from prove import prove

        from lineara.linear_a.parse import parse

        for text, f, seed in json.loads(Path(corpus).read_text()):
            prove(Case(parse(text), f, seed))
    except BaseException as error:  # whatever it is, the fault is caught
        print(f"{type(error).__name__}: {str(error)[:200]}")
        return False
    import pytest

    here = Path(__file__).parent
    files = [str(here / f"test_{stem}.py") for stem in TESTS]
    plain = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not random_programs"]
    late = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the corpus has imported plugins
    return pytest.main([*plain, *late, *files]) == 0


# --- all of them ----------------------------------------------------------------------------------


def write_corpus(path: str) -> None:
    """Random programs, drawn once; small ones first, which catch most faults soon."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from test_properties import KINDS

    from lineara.linear_a.cost import size

    found: dict[str, Any] = {}

    @hypothesis.seed(1)
    @settings(max_examples=CORPUS, database=None, deadline=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(KINDS)
    def keep(case: Any) -> None:
        found[str(case.program)] = case

    keep()
    cases = sorted(found.values(), key=lambda c: size(c.program))
    Path(path).write_text(json.dumps([(str(c.program), c.name, c.seed) for c in cases]))


def alone(job: Callable[[], bool], log: Path) -> int:
    """Start a job in a process of its own, which has the libraries, but nothing of ours, loaded."""
    child = os.fork()
    if child:
        return child
    status = 2
    try:
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))  # which ends the process
        status = 0 if job() else 1
    except BaseException:  # whatever it is, the fault is caught
        status = 1
    finally:
        sys.stdout.flush()
        os._exit(status)


def outcomes(jobs: Sequence[Callable[[], bool]], folder: Path) -> list[int]:
    """The exit statuses of the jobs, as many at once as there are processors."""
    codes: list[int] = [0] * len(jobs)
    running: dict[int, int] = {}
    for i, job in enumerate([*jobs, *[None] * (os.cpu_count() or 1)]):
        while len(running) >= (os.cpu_count() or 1) or (running and job is None):
            child, status = os.wait()
            codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
        if job is not None:
            running[alone(job, folder / str(i))] = i
    return codes


def main(faults_wanted: int = 100, seed: int = 0) -> int:
    """Try faults; the exit status tells whether at least 99 % of them are caught."""
    for name in LIBRARIES:
        importlib.import_module(name)
    every = [(name, i) for name in PASSES for i in range(count(name))]
    rng = random.Random(seed)
    chosen = sorted(rng.sample(every, min(faults_wanted, len(every)))) if faults_wanted else every
    print(f"{len(chosen)} of {len(every)} faults", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = str(folder / "corpus.json")

        def drawn() -> bool:
            write_corpus(corpus)
            return True

        if any(outcomes([drawn], folder)) or any(
            outcomes([functools.partial(survives, PASSES[0], -1, corpus)], folder)
        ):
            print(
                "the tests fail without a fault, so what they catch says nothing; mend that first"
            )
            return 2
        codes = outcomes([functools.partial(survives, *site, corpus) for site in chosen], folder)
    return report(chosen, codes)


def report(chosen: list[tuple[str, int]], codes: list[int]) -> int:
    """Say what was caught; the exit status."""
    left, same = [], 0
    print(f"{codes.count(-signal.SIGXCPU)} did not end, and count as caught")
    for (name, i), code in zip(chosen, codes, strict=True):
        if code:
            continue
        _, before, after = faulty(name, i)
        reason = EQUIVALENT.get((before.partition(": ")[2], after))
        same += reason is not None
        if reason is None:
            left.append((name, i))
        print(f"{name} {i}, {before}\n    now {after}\n    {reason or 'SURVIVES'}")
    tried = len(chosen) - same
    caught = tried - len(left)
    print(f"{caught} of {tried} faults are caught, {caught / tried:.1%}; {same} change nothing")
    return int(caught < 0.99 * tried)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

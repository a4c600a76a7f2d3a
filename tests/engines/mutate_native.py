"""Faults put into the lowering one at a time: how many do the tests catch?  `make mutate-native`

    python tests/engines/mutate_native.py [FAULTS | --all] [--seed N] [--jobs N] [--journal FILE]

A fault is one of those of the passes (tests/linear_a/mutate.py), or another instruction in a text
of LLVM.  Machine code looks at its places (tests/checked_places.py), since a fault that reads
beside an array may find the right number there.  Such code is kept nowhere, so what keeps code has
no faults here.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE.parent),
    str(HERE),
    str(HERE.parent / "linear_a"),
    str(HERE.parent / "ops"),
]

import checked_places  # noqa: E402
from faults import SOURCE, Edit, Run, Trial  # noqa: E402
from mutate import faults as of_python  # noqa: E402

from lineara.engines.native import formulas, python_complex, scalars, symbols  # noqa: E402

KEEPING = ("cache", "emitted", "facts", "machine_code")
TESTS = (
    "native", "native_arrays", "native_regions", "native_primal", "native_report",
    "native_memory", "native_lowering", "native_matrices", "native_orders", "native_rows",
    "native_kinds", "native_layouts", "native_loops", "native_products", "native_scalars",
    "native_spliced", "native_pieces", "native_freedom", "native_lanes", "native_recursion",
    "native_seconds", "native_numpy", "native_unread_items", "native_called_back",
    "native_rows_in_loops", "into", "direct", "adaptive", "seam", "guarded_call", "vector_loops",
)  # fmt: skip
SLOW = (
    "random_functions_and_their", "threads", "is_interrupted", "twenty",
    "derivatives_of_random_loops",
)  # fmt: skip
OTHER = {
    "fadd": "fsub", "fsub": "fadd", "fmul": "fdiv", "fdiv": "fmul", "add": "sub", "sub": "add",
    "mul": "add", "and i1": "or i1", "or i1": "and i1", "icmp eq": "icmp ne",
    "icmp ne": "icmp eq", "icmp slt": "icmp sle", "icmp sle": "icmp slt", "icmp sge": "icmp sgt",
    "icmp sgt": "icmp sge", "icmp ult": "icmp ule", "icmp ule": "icmp ult",
    "fcmp olt": "fcmp ole", "fcmp ole": "fcmp olt", "fcmp oge": "fcmp ogt",
    "fcmp ogt": "fcmp oge", "fcmp oeq": "fcmp one", "fcmp une": "fcmp oeq",
    "fcmp uge": "fcmp ugt", "fcmp uno": "fcmp ord", "fcmp ord": "fcmp uno",
}  # fmt: skip
FLAGS, KIND = r"(?: nuw| nsw| contract)*", r"(?:double|float|i\d+|[%<]|$)"
INSTRUCTION = re.compile(rf"(?<![\w.])({'|'.join(OTHER)})(?={FLAGS} {KIND}|$| %)")


def faults(tree: ast.Module) -> list[tuple[ast.AST, Edit]]:
    """The places of all faults and the edits that make them."""
    prose = {
        id(text)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr | ast.Raise)
        for text in (ast.walk(node) if isinstance(node, ast.Raise) else [node.value])
    }
    texts = [
        (node, edit)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        for edit in instructions(node, node.value)
    ]
    return [*of_python(tree), *texts]


def instructions(node: ast.Constant, text: str) -> Iterator[Edit]:
    """Other instructions in a text of LLVM, or in a piece of one."""
    for m in INSTRUCTION.finditer(text):
        new = text[: m.start()] + OTHER[m[1]] + text[m.end() :]
        yield lambda new=new: setattr(node, "value", new)


def corpus() -> list[Trial]:
    """Some lines of the table of operations, each with its derivatives of two orders."""
    import test_native_operations as operations

    def held(line: Any) -> bool:
        one = operations.case(line)
        operations.agree(operations.derivatives(one.program), operations.WAYS[:4], one.values)
        return True

    lines = operations.PRIMITIVES[::9]
    return [Trial(str(line), functools.partial(held, line)) for line in lines]


def forget() -> None:
    """What is asked once a process is asked by each test, which then counts as one that asks."""
    for module in (formulas, python_complex, scalars, symbols):
        for f in vars(module).values():
            getattr(f, "cache_clear", bool)()


RUN = Run(
    "native",
    sorted(
        str(p.relative_to(SOURCE))
        for p in [*(SOURCE / "engines/native").glob("*.py"), SOURCE / "engines/primal.py"]
        if p.stem not in KEEPING
    ),
    faults,
    [f"engines/test_{stem}.py" for stem in TESTS],
    more=corpus,
    skip=lambda name: any([word in name for word in SLOW]),
    libraries=(
        "hypothesis", "numpy", "optree", "scipy.special", "llvmlite.binding",
        "lineara.engines.native.guarded_call", "lineara.engines.native.report",  # imported late
    ),
    before=forget,
)  # fmt: skip

if __name__ == "__main__":
    checked_places.switch_on()
    sys.exit(RUN.main())

"""What a reader calls a wire: the variable of the user's, or the condition of a branch.

>>> from lineara.diagrams.parse import parse
>>> text = '''(x: R) =>
...   a, b = copy(x)   c = const[0.0]()   asked = greater(a, c)
...   f = box() { (y: R) => z = sin(y) -> z }
...   g = box() { (y: R) => z = cos(y) -> z }
...   chosen = sel(asked, f, g)   v = eval(chosen, b)   -> v'''
>>> net = parse(text)
>>> for w in net.nodes[net.inputs[0].target[0].id].outs:
...     w.name = "x"
>>> net = branches_named(net)
>>> [n.outs[0].name for n in net.nodes.values() if n.kind == "box"]
['if x > 0', 'else']
"""

import ast
import linecache
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lineara.diagrams.net import Net, Node, Wire, every_net
from lineara.linear_a import syntax as ir
from lineara.text.python_source import tree_of

ROUND = "each round"  # the name of a box that a scan applies
SIGNS = {
    "add": "+", "subtract": "\N{MINUS SIGN}", "multiply": "×", "divide": "÷", "negative": "neg",
    "power": "pow", "matmul": "@", "less": "<", "less_equal": "≤", "greater": ">",
    "greater_equal": "≥", "equal": "=", "not_equal": "≠",
}  # fmt: skip
_BETWEEN = {**SIGNS, "logical_and": "and", "logical_or": "or", "negative": "", "power": "^"}
_DEEP = 3  # operations of a condition that are written out

# --- branches and loops ---------------------------------------------------------------------------


def branches_named(net: Net) -> Net:
    """The same diagram, in which the boxes of a choice are named by its condition.

    A box that a loop applies is `each round`.  What has a name keeps it.
    """
    for n in every_net(net):
        for node in n.nodes.values():
            if node.kind == "sel":
                asked, *sides = node.ins
                for w, name in zip(sides, (f"if {condition(asked)}", "else"), strict=True):
                    _called(w, name)
            elif node.kind == "scan":
                _called(node.ins[0], ROUND)
    return net


def _called(w: Wire, name: str) -> None:
    node = w.source[0] if w.source else None
    if isinstance(node, Node) and node.kind == "box" and not w.name:
        w.name = name


def condition(w: Wire, depth: int = _DEEP) -> str:
    """What a wire carries, as a reader would write it."""
    node = w.source[0] if w.source else None
    if w.name and depth < _DEEP:
        return w.name
    if not isinstance(node, Node) or depth == 0:
        return w.name or "…"
    match node.kind:
        case "copy":
            return condition(node.ins[0], depth)
        case "const" if isinstance(node.data, bool | int | float):
            return f"{node.data:g}" if isinstance(node.data, float) else str(node.data)
        case "op":
            parts = [condition(v, depth - 1) for v in node.ins]
            sign = _BETWEEN.get(node.name)
            if len(parts) == 2 and sign:
                text = f"{parts[0]} {sign} {parts[1]}"
                return text if depth == _DEEP else f"({text})"
            return f"{node.name}({', '.join(parts)})"
    return w.name or "…"


# --- variables ------------------------------------------------------------------------------------

_OPS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.Pow: "power", ast.MatMult: "matmul", ast.Mod: "remainder",
}  # fmt: skip


def variables(block: ir.Block) -> Mapping[ir.Var, str]:
    """The names of the user's variables, where the lines of a program tell them.

    A line `y = ...` names what it hands on to other lines, and what its outermost operation makes:
    of several such operations in the line the last, each time that it is run.
    """
    used: dict[ir.Var, set[str]] = {}
    for b in block.bindings:
        for v in ir.reads(b):
            used.setdefault(v, set()).add(ir.line_of(b))
    for v in block.leaf.operands():
        used.setdefault(v, set()).add("")
    stated: dict[str, Assigned] = {}
    made: dict[str, int] = {}  # how many such operations of a line there are since the last
    names: dict[ir.Var, str] = {}
    for b in block.bindings:
        if not isinstance(b, ir.Let) or isinstance(b.rhs, ir.Lit) or len(b.vars) != 1:
            continue
        (v,) = b.vars
        if v.line not in stated:
            stated[v.line] = assigned(v.line)
        to = stated[v.line]
        if to.name and used.get(v, set()) - {v.line}:
            names[v] = to.name
            made[v.line] = 0
        elif to.name and isinstance(b.rhs, ir.Prim) and b.rhs.name == to.op:
            made[v.line] = (made.get(v.line, 0) + 1) % to.times
            if not made[v.line]:
                names[v] = to.name
    return names


def written_at(line: str) -> str:
    """What stands in a line `file:number`: `model.py:7: y = x * x`; empty where there is none."""
    file, _, number = line.rpartition(":")
    source = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
    return f"{Path(file).name}:{number}: {source}" if source else ""


class Assigned(NamedTuple):
    """What a line assigns to, by which operation, and how many such operations stand in it."""

    name: str = ""
    op: str = ""
    times: int = 1


def assigned(line: str) -> Assigned:
    """The variable that a line `file:number` assigns to, and the operation that it is made by."""
    file, _, number = line.rpartition(":")
    source = linecache.getline(file, int(number)) if number.isdigit() else ""
    try:
        (statement,) = tree_of(textwrap.dedent(source)).body
    except (SyntaxError, ValueError):
        return Assigned()
    match statement:
        case ast.Assign(targets=targets, value=made):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as made):
            targets = [target]
        case ast.AugAssign(target=target, op=op, value=value):
            targets, made = [target], ast.BinOp(target, op, value)
        case _:
            return Assigned()
    if isinstance(made, ast.Lambda):  # what its body computes is not what is assigned
        return Assigned()
    name = next((t.id for t in targets if isinstance(t, ast.Name)), "")
    op = _operation(made)
    moving = [e for e in ast.walk(made) if any([isinstance(n, ast.Name) for n in ast.walk(e)])]
    return Assigned(name, op, max(1, sum([_operation(e) == op for e in moving])))


def _operation(e: ast.AST) -> str:
    """The operation that an expression applies."""
    match e:
        case ast.BinOp(op=op):
            return _OPS.get(type(op), "")
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return ""

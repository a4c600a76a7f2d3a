"""Hierarchical string diagrams, and differentiation by local rewriting  [Diagrams].

>>> from lineara import diagrams
>>> net = diagrams.parse("(x: R) => a, b = copy(x)  y = multiply(a, b) -> y")
>>> diagrams.isomorphic(net, diagrams.parse(diagrams.show(net)))
True
"""

from lineara.diagrams.adjoint import adjoint
from lineara.diagrams.admit import read as rules
from lineara.diagrams.canonical import isomorphic
from lineara.diagrams.check import check
from lineara.diagrams.equality import same
from lineara.diagrams.evaluate import Probes, evaluate, gradient
from lineara.diagrams.foliate import count_foliations, foliated, foliations, recomposed
from lineara.diagrams.function_borders import cotangents
from lineara.diagrams.layout import layout
from lineara.diagrams.lowering import lowered
from lineara.diagrams.net import Net, Node, Wire, compose, copied, identity, permutation, tensor
from lineara.diagrams.parse import parse
from lineara.diagrams.player import page
from lineara.diagrams.rewrite import Rewriter, rewritten
from lineara.diagrams.show import show
from lineara.diagrams.simplify import simplify
from lineara.diagrams.snapshot import history, snapshot
from lineara.diagrams.stepper import Derivation
from lineara.diagrams.svg import svg

__all__ = [
    "Derivation",
    "Net",
    "Node",
    "Probes",
    "Rewriter",
    "Wire",
    "adjoint",
    "check",
    "compose",
    "copied",
    "cotangents",
    "count_foliations",
    "evaluate",
    "foliated",
    "foliations",
    "gradient",
    "history",
    "identity",
    "isomorphic",
    "layout",
    "lowered",
    "page",
    "parse",
    "permutation",
    "recomposed",
    "rewritten",
    "rules",
    "same",
    "show",
    "simplify",
    "snapshot",
    "svg",
    "tensor",
]

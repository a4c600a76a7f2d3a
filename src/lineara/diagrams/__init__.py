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
from lineara.diagrams.layout import layout

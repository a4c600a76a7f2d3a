"""Functions with a rule of their own: one rule serves every mode and every order.

custom_jvp      the rule is a derivative in one direction
custom_vjp      the rule is a pullback
custom_linear   the function is linear, and its transpose is known
sparse_rule     the function reads an array in places: these and their weights
external        the function is compiled or remote, its derivative stated or from differences
checkpoint      the function is run again instead of being stored
defined         a definition of a program, such as a form within a differentiation within a trace
vmap            a function over the lanes of arrays
"""

from lineara.rules.checkpoint import checkpoint
from lineara.rules.custom import custom_jvp, custom_linear, custom_vjp
from lineara.rules.external import external
from lineara.rules.rule_tests import LinearReport, check_linear
from lineara.rules.sparse_rule import sparse_rule
from lineara.staging.definition_as_operation import defined

__all__ = [
    "LinearReport",
    "check_linear",
    "checkpoint",
    "custom_jvp",
    "custom_linear",
    "custom_vjp",
    "defined",
    "external",
    "sparse_rule",
]

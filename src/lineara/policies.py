"""Checkpoint policies: what a derivative stores, and what it computes again.

A policy is an argument of `grad`, `value_and_grad`, `vjp`, `checkpoint` and `stages`, as an object
of this module or by its name. With one the function is traced, so it may not branch on values.

    store_all            everything that the linear side reads
    recompute_all        only the arguments, and what calls and loops keep
    save_contractions    the results of matrix products and their like
    minimal_tape         the fewest bytes
    budget(n)            the least work again within n bytes
    save_only_named(..)  what went through `checkpoint_name`
    recompute_calls(..)  nothing of these functions
    binomial(n)          of loops what they start from and n snapshots

>>> import numpy as np, lineara
>>> def f(x):
...     return np.sum(np.sin(np.sin(x)))
>>> x = np.zeros(1000)
>>> np.array_equal(lineara.grad(f, policy="minimal_tape")(x), lineara.grad(f)(x))
True
>>> print(plan(f, x))
policy                   tape        peak     work    again
store_all            16.00 kB    40.00 kB    6,999
save_contractions     8.00 kB    32.00 kB    7,999    +14 %
recompute_all         8.00 kB    32.00 kB    7,999    +14 %
minimal_tape          8.00 kB    32.00 kB    7,999    +14 %
"""

from collections.abc import Callable, Mapping
from typing import Any

from lineara.errors import TypeMismatchError
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import show_type
from lineara.passes.minimal_tape import budget, minimal_tape
from lineara.passes.policy_table import POLICIES, Plan, chosen
from lineara.passes.policy_table import plan as plan_of
from lineara.passes.store_policies import (
    binomial,
    policy,
    recompute_all,
    recompute_calls,
    save_contractions,
    save_only_named,
)
from lineara.passes.unzip import Policy, store_all
from lineara.staging.capture import trace


def plan(
    f: Callable[..., Any], *args: Any, policies: Mapping[str, Policy] | None = None, **kwargs: Any
) -> Plan:
    """What reverse mode of f takes under each policy, before anything runs: it prints as a table.

    Bytes of the tape and the most bytes of arrays that are alive, the work, and what of it is done
    a second time. `policies` are others than the named ones, under names for the table.

    Raises TypeMismatchError where f is no function, StagingError where it cannot be traced.

    >>> import math
    >>> print(plan(lambda x: math.sin(math.sin(x)), 1.0, policies={"again": recompute_all}))
    policy       tape    peak    work    again
    store_all    16 B     0 B       6
    again         8 B     0 B       7    +17 %
    """
    if not callable(f):
        raise TypeMismatchError(f"plan: takes a function, but was given {show_type(f)}")
    staged = trace(f, *args, **kwargs)
    return plan_of(staged.program, staged.name, policies, *staged.operands(args, kwargs))


def checkpoint_name(x: Leaf, name: str) -> Any:
    """x, marked for `save_only_named`.

    >>> import lineara
    >>> lineara.grad(lambda x: checkpoint_name(x * x, "square") * x)(2.0)
    12.0
    """
    return op("checkpoint_name")(x, name=name)


__all__ = [
    "POLICIES",
    "Plan",
    "Policy",
    "binomial",
    "budget",
    "checkpoint_name",
    "chosen",
    "minimal_tape",
    "plan",
    "policy",
    "recompute_all",
    "recompute_calls",
    "save_contractions",
    "save_only_named",
    "store_all",
]

"""Checkpoint policies: which values the tape stores, and which ones f.lin computes again.

    store_all            everything that linear code reads
    recompute_all        nothing but what calls and loops tape
    save_only_named      what went through checkpoint_name
    save_contractions    the results of matrix products and their like
    recompute_calls      nothing of some functions: a whole call is run again
    binomial             of a loop, what it starts from and some snapshots     (treeverse.py)
    minimal_tape         the fewest bytes                                      (min_cut.py)
    budget               the least work again within so many bytes             (min_cut.py)

A policy maps the cut of one definition to the bindings to compute again.  The simple form is asked
about one binding at a time: `again(definition, binding, bytes, work) -> bool`.  Whatever a policy
says, derivatives are the same  (spec, sections 7.2 and 13.g).
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lineara.facts.primitive import Multilinear
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import Costs
from lineara.passes.names import NL, of_jvp
from lineara.passes.unzip import Cut, Policy, store_all

Again = Callable[[str, ir.Binding, int, int], bool]


def policy(again: Again) -> Policy:
    """The policy that asks about one binding at a time; what makes no array is not asked about.

    >>> import numpy as np, lineara
    >>> small = policy(lambda definition, binding, bytes, work: bytes > 100)  # compute again
    >>> lineara.grad(lambda x: np.sum(np.sin(np.sin(x))), policy=small)(np.zeros(2))
    array([1., 1.])
    """

    @functools.wraps(again, assigned=("__doc__", "__module__"), updated=())
    def chosen(cut: Cut) -> set[ir.Binding]:
        book = Costs(cut.program)
        return {
            b
            for b in cut.context
            if is_view(b)
            or again(cut.name, b, sum(book.bytes(v.type) for v in b.vars), book.work(b))
        }

    return chosen


@policy
def recompute_all(definition: str, b: ir.Binding, bytes: int, work: int) -> bool:
    """Store the arguments, and the tapes of calls and loops.

    >>> import numpy as np, lineara
    >>> f = lineara.stages(lambda x: np.sin(np.sin(x)), 0.0, policy=recompute_all)
    >>> f.certificate.tape_bytes
    8
    """
    return call_of(b) is None


@policy
def save_contractions(definition: str, b: ir.Binding, bytes: int, work: int) -> bool:
    """Store the results of what multiplies and adds up: matmul, einsum and their like.

    >>> import numpy as np, lineara
    >>> f = lambda x: np.sum(np.sin(x @ x))
    >>> lineara.grad(f, policy=save_contractions)(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    e = primitive(b)
    return call_of(b) is None and not (e and isinstance(e.primitive, Multilinear))


def save_only_named(*names: str) -> Policy:
    """Store what went through `checkpoint_name` under one of the names (or any).

    >>> import numpy as np, lineara
    >>> from lineara.policies import checkpoint_name
    >>> f = lambda x: np.sin(checkpoint_name(np.sin(x), "inner"))
    >>> lineara.grad(f, policy=save_only_named("inner"))(0.0)
    1.0
    """

    def chosen(cut: Cut) -> set[ir.Binding]:
        return {b for b in cut.context if call_of(b) is None and not _is_named(b, names)}

    return chosen


def _is_named(b: ir.Binding, names: Sequence[str]) -> bool:
    e = primitive(b)
    if e is None or e.name != "checkpoint_name":
        return False
    return not names or e.params["name"] in names


def recompute_calls(*functions: str, rest: Policy = store_all) -> Policy:
    """Run calls of these functions again as a whole; without functions, all calls.

    >>> import numpy as np, lineara
    >>> step = lineara.function(lambda x: np.sin(x) * x)
    >>> lineara.grad(lambda x: step(step(x)), policy=recompute_calls())(0.0)
    0.0
    """

    def chosen(cut: Cut) -> set[ir.Binding]:
        calls = {
            b
            for b in cut.context
            if (e := call_of(b)) is not None
            and (not functions or any(source(f) in functions for f in e.functions))
        }
        return rest(cut) | calls

    return chosen


def source(name: str) -> str:
    """The definition whose jvp and non-linear half have that name."""
    return of_jvp(name.removesuffix(NL))


@dataclass(frozen=True)
class binomial:
    """Reverse loops with so many snapshots, in as few steps as that takes.

    A loop keeps what it starts from; one whose stacks are no arrays is left to `rest`, like all
    that is no loop.  So does a while loop, whose rounds are counted as it runs  (counted.py).

    >>> import numpy as np, lineara
    >>> f = lambda x: lineara.fori_loop(0, 50, lambda i, v: v * x, 1.0)
    >>> lineara.grad(f, policy=binomial(3))(1.0)
    50.0
    """

    snapshots: int
    rest: Policy = store_all

    def __call__(self, cut: Cut) -> set[ir.Binding]:
        """The choice of `rest`, which decides about everything but loops."""
        return self.rest(cut)


# --- what bindings are --------------------------------------------------------------------------


def call_of(b: ir.Binding) -> ir.Application | None:
    """The call, branch or loop in a binding."""
    return next(iter(ir.applications(b.rhs)), None) if isinstance(b, ir.Let) else None


def primitive(b: ir.Binding) -> ir.Prim | None:
    """The primitive application in a binding."""
    return b.rhs if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Prim) else None


def is_view(b: ir.Binding) -> bool:
    """Whether a binding makes no array and does no work: storing it would store its base."""
    if not isinstance(b, ir.Let):
        return False
    if isinstance(b.rhs, ir.Prim):
        return b.rhs.primitive.view and b.rhs.name != "checkpoint_name"
    return isinstance(b.rhs, ir.Copy | ir.Ret | ir.Tup | ir.Lit)


# --- what a choice costs ------------------------------------------------------------------------


class Price(NamedTuple):
    """What a choice costs: the bytes of the tape, and the work that is done a second time."""

    bytes: int
    work: int


def price(cut: Cut, again: set[ir.Binding], costs: Costs) -> Price:
    """The price of a choice: what both sides compute is extra, what only f.lin needs is not."""
    written, stored = cut.tape(again)
    both = set(written) & set(cut.kept(stored))
    taped = [v for v in stored if v not in cut.invariants]
    return Price(costs.tape(taped), sum(map(costs.work, both)))

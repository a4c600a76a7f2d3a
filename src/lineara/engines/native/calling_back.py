"""A definition that is not lowered is called back as a whole, and all around it is machine code.

What goes in and out has to be numbers and arrays; else the definition around it is called back.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lineara.engines.engine import Ask
from lineara.engines.interpreter import Interpreter
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.facts.types import ArrayType, Product, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program


def definition_called_back(
    em: Emitter, name: str, values: Sequence[nm.Held], why: nm.Refused
) -> list[nm.Held]:
    """What the interpreter makes of a definition on values."""
    d, source = em.program.defs[name], em.source
    types = [[*plain(em, p.type, why)] for p in d.params]
    results = [t for s in d.results for t in plain(em, s, why)]
    with em.kept(values):
        operands = [y for x in em.in_order(values) for y in leaves(x)]
    if any([x is nm.UNREAD for x in operands]):  # Python reads all, as masks
        raise why if name in em.refused else nm.Unfit(str(why), name)
    operand_types = [t for ts in types for t in ts]
    for x, t in zip(operands, operand_types, strict=True):
        is_number = not t.shape and nm.kind_of(t) is not None
        unsure = isinstance(x, nm.Arr) and em.exact and x.lay is None
        if unsure or isinstance(x, nm.Num) is not is_number:
            raise why

    def answer(values: list[Any]) -> Sequence[Any]:
        parts = iter(values)
        args = [put_together(source, p.type, parts) for p in d.params]
        made = Interpreter().evaluate(source, name, args, Ask()).results
        return [y for v, t in zip(made, d.results, strict=True) for y in taken_apart(source, t, v)]

    what = f"{name}({', '.join(map(show, operand_types))}), since {why}"
    lays = [nm.C if em.exact and not isinstance(why, nm.Unlaid) else None for _ in results]
    made = iter(em.answered(operands, operand_types, results, answer, lays, what))
    reached = em.program.reached(name)
    texts = sum([len(ir.leaves(em.program.defs[f].body)) for f in reached])
    em.sites[-1] = em.sites[-1]._replace(leaves=texts)
    return [put_together(em.program, t, made, nm.Tup) for t in d.results]


def plain(em: Emitter, t: Type, why: nm.Refused) -> Iterator[ArrayType]:
    """The arrays and numbers in a type; where there is anything else, `why` is raised."""
    t = em.program.unfold(t)
    if isinstance(t, Product):
        for item in t.items:
            yield from plain(em, item, why)
    elif isinstance(t, ArrayType):
        try:
            yield em.array_type(t)
        except nm.Refused:
            raise why from None
    else:
        raise why


def leaves(value: nm.Held) -> Iterator[nm.Num | nm.Arr]:
    """The numbers and arrays that a product is made of."""
    if isinstance(value, nm.Tup):
        for item in value.items:
            yield from leaves(item)
    elif isinstance(value, nm.Num | nm.Arr):
        yield value


def taken_apart(program: Program, t: Type, value: Any) -> Iterator[Any]:
    """The arrays and numbers in a value."""
    t = program.unfold(t)
    if isinstance(t, Product):
        for item, v in zip(t.items, value, strict=True):
            yield from taken_apart(program, item, v)
    else:
        yield value


def put_together(
    program: Program, t: Type, parts: Iterator[Any], product: Callable[[Any], Any] = tuple
) -> Any:
    """The value of a type from its arrays and numbers."""
    t = program.unfold(t)
    if isinstance(t, Product):
        return product(tuple([put_together(program, item, parts, product) for item in t.items]))
    return next(parts)


__all__ = ["definition_called_back", "put_together", "taken_apart"]

"""A program that fails, made as small as it can be and still fail."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from lineara.crosscheck.language import (
    Program,
    R,
    Term,
    Type,
    app,
    free,
    let,
    num,
    subterms,
    var,
    with_parts,
)

TRIES = 5_000  # of smaller programs; each runs all engines


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The smallest program found, by one step at a time, for which `fails` still holds.

    >>> from lineara.crosscheck.language import op
    >>> x = var("x", R)
    >>> big = Program((("x", R),), op("add", op("sin", op("sin", x)), num(0.3)), (0.7,))
    >>> small = shrink(big, lambda p: any(e.held == "sin" for e in subterms(p.body)))
    >>> small.body.held, small.body.parts[0].head
    ('sin', 'var')
    """
    tries = 0
    smaller_yet = True
    while smaller_yet and tries < TRIES:
        smaller_yet = False
        for body in smaller(program.body, dict(program.inputs)):
            if _weight(body) >= _weight(program.body):
                continue
            tries += 1
            candidate = _with_body(program, body)
            if fails(candidate):
                program, smaller_yet = candidate, True
                break
            if tries >= TRIES:
                break
    return program


def _weight(e: Term) -> tuple[int, int]:
    """What gets smaller: constructs, then rounds of loops, and operands that are not variables."""
    rest = sum([1 + s.held if s.head == "loop" else s.head != "var" for s in subterms(e)])
    return e.size, rest


def _with_body(program: Program, body: Term) -> Program:
    """The body with the inputs that it reads; one input stays."""
    read = free(body)
    kept = [i for i, (name, _) in enumerate(program.inputs) if name in read] or [0]
    return Program(
        tuple([program.inputs[i] for i in kept]), body, tuple([program.at[i] for i in kept])
    )


def smaller(e: Term, scope: dict[str, Type]) -> Iterator[Term]:
    """The term with one place changed, the outermost places first."""
    yield from _instead(e, scope)
    for i, p in enumerate(e.parts):
        inner = scope
        if e.head == "lam":
            inner = {**scope, e.held: e.type.source}  # type: ignore[union-attr]
        elif e.head == "let" and i == 1:
            inner = {**scope, e.held: e.parts[0].type}
        for changed in smaller(p, inner):
            yield with_parts(e, (*e.parts[:i], changed, *e.parts[i + 1 :]))


def _instead(e: Term, scope: dict[str, Type]) -> Iterator[Term]:
    """What may stand in place of a term."""
    if e.head == "var":
        return
    if e.size > 1:
        for name, t in scope.items():
            if t == e.type:
                yield var(name, t)
        if e.type == R:
            yield num(0.5)
    for s in subterms(e):
        if s is not e and s.type == e.type and free(s).keys() <= scope.keys():
            yield s
    match e.head:
        case "let":
            yield substituted(e.parts[1], e.held, e.parts[0])
        case "app" if e.parts[0].head == "lam":
            f, a = e.parts
            yield let(f.held, a, f.parts[0])
        case "loop":
            f, x = e.parts
            yield app(f, x)
            if e.held > 1:
                yield replace(e, held=e.held - 1)


def substituted(e: Term, name: str, by: Term) -> Term:
    """The term with another in place of a variable; names are bound once, so nothing is caught."""
    if e.head == "var":
        return by if e.held == name else e
    return with_parts(e, tuple([substituted(p, name, by) for p in e.parts]))

"""Programs: files with definitions, what they import, and the term that they come to.

A program is one closed term: the instances of definitions that it uses are lets around its term.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lineara.calculus.infer import Definition, Inference
from lineara.calculus.parse import parse
from lineara.calculus.symbols import Symbol, standard
from lineara.calculus.syntax import Declaration, File, Syntax
from lineara.calculus.term_of_syntax import build
from lineara.calculus.terms import Let, Term
from lineara.calculus.types import TOO_DEEP, Arrow, Type, holes, is_ground, show
from lineara.calculus.vectors import vectors
from lineara.errors import CalculusError
from lineara.facts.gc_pause import uncollected
from lineara.text.language import Source, did_you_mean
from lineara.text.source_location import Place
from lineara.trampoline import run

PRELUDE = r"""
def rec fold f z l = if isnil l then z else f (head l) (fold f z (tail l))
def rec map f l = if isnil l then [] else cons(f (head l), map f (tail l))
def rec iterate n f x = if ile(n, 0i) then x else iterate (n - 1i) f (f x)
def rec range m n = if ile(n, m) then [] else cons(m, range (m + 1i) n)
def count l = fold (\x. \n. n + 1i) 0i l
def compose g f x = g (f x)
def grad f x = pull(f; \y:R. covec(1)) x
"""


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """The definitions of a text and of what it imports, and its own term."""

    text: Source
    symbols: Mapping[str, Symbol]
    definitions: Mapping[str, Definition]
    main: Syntax | None
    places: dict[Term, Place] = field(default_factory=dict)

    def type_of(self, name: str) -> Type:
        """The general type of a definition."""
        return self.named(name).type

    def named(self, name: str) -> Definition:
        """The definition of that name."""
        if name not in self.definitions:
            raise CalculusError(
                f"{self.text.file or 'the program'}: there is no definition {name}"
                + did_you_mean(name, self.definitions)
            )
        return self.definitions[name]

    @uncollected
    def term(self, name: str | None = None, stated: Type | None = None) -> Term:
        """The closed term of the program, or of one of its definitions."""
        if name is not None:
            d = self.named(name)
            return self._closed(Syntax("var", (), Place(1, 1), name), d.text, stated)
        if self.main is None:
            raise CalculusError(
                f"{self.text.file or 'the program'}: there is no term after its definitions; "
                "end it with `in` and a term, or choose a definition"
            )
        return self._closed(self.main, self.text, stated)

    def _closed(self, s: Syntax, text: Source, stated: Type | None) -> Term:
        """The term, with lets around it for the instances of definitions that it uses."""
        instances: dict[tuple[str, Type], str] = {}
        terms: dict[str, Term] = {}
        order = list(self.definitions)

        def instance(d: Definition, t: Type) -> str:
            key = (d.name, t)
            if key not in instances:
                count = sum([name == d.name for name, _ in instances])
                instances[key] = d.name if not count else f"{d.name}%{count}"
                wanted.append(key)
            return instances[key]

        wanted: list[tuple[str, Type]] = []
        body = self._elaborated(s, text, self.definitions, stated, instance)
        while wanted:
            name, t = wanted.pop()
            d = self.definitions[name]
            earlier = {n: self.definitions[n] for n in order[: order.index(name)]}
            terms[instances[name, t]] = self._elaborated(d.body, d.text, earlier, t, instance)
        for name, t in sorted(instances, key=lambda key: -order.index(key[0])):
            own = instances[name, t]
            body = Let((terms[own], body), own)
        return body

    def _elaborated(self, s: Syntax, text: Source, defined, stated, instance) -> Term:
        inference = Inference(text, self.symbols, defined)
        try:
            t = run(inference.infer(s))
            if stated is not None:
                inference.expect(s, stated, t)
            inference.close_types()
            term = build(inference, s, instance)
        except RecursionError:
            raise text.wrong(s.place, TOO_DEEP) from None
        self.places.update(inference.places)
        return term


def program(text: str, file: str = "") -> Program:
    """The program of a text.

    >>> from lineara.calculus.show import show
    >>> show(program("def double x = x + x in double 2").term())
    'let double = \\\\x:R. x + x in double 2'
    """
    return program_of([parse(text, file)])


def read(file: str) -> Program:
    r"""The program of a file.

    Raises CalculusError, with the place, for what cannot be read.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lineara.calculus.show import show
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "square.pb")
    ...     _ = file.write_text("def square x = x * x")
    ...     show(read(str(file)).term("square"))
    'let square = \\x:R. multiply(x, x) in square'
    """
    return program(_text_of(file), file)


def term(text: str) -> Term:
    r"""The term of a text.

    >>> from lineara.calculus.show import show
    >>> show(term("pull(\\x. x * x; \\_. covec(1)) 3"))
    'pull(\\x:R. multiply(x, x); \\_:R. covec(1)) 3'
    """
    return program(text).term()


def as_term(given: Term | str, asked: str) -> Term:
    """The term of a text; a term as it is.  CalculusError for anything else, naming who asked."""
    if isinstance(given, Term):
        return given
    if isinstance(given, str):
        return term(given)
    raise CalculusError(
        f"calculus.{asked} takes a term or a text, such as r'\\x. x * x', and got {given!r}; "
        "calculus.of(f) is the term of a Python function"
    )


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or f"it is not UTF-8: {error}"
        raise CalculusError(f"{file}: cannot be read: {why}") from None


@functools.cache
def _prelude() -> Mapping[str, Definition]:
    text = Source(PRELUDE, "<prelude>", CalculusError)
    definitions: dict[str, Definition] = {}
    for d in parse(PRELUDE, "<prelude>").declarations:
        _define(d, text, standard(), definitions)
    return definitions


def program_of(files: Sequence[File]) -> Program:
    """The program of the last of some files, which sees the definitions of those before it."""
    symbols, defined = {**standard(), **vectors()}, dict(_prelude())
    for file in files:
        _declare(file, symbols, defined, ())
    return Program(files[-1].text, symbols, defined, files[-1].term)


def _declare(file: File, symbols, defined, importing: tuple[Path, ...]) -> None:
    for d in file.declarations:
        if d.kind == "import":
            _import(d, file.text, symbols, defined, importing)
        elif d.kind == "def":
            _define(d, file.text, symbols, defined)
        else:
            _symbol(d, file.text, symbols, defined)


def _import(d: Declaration, text: Source, symbols, defined, importing: tuple[Path, ...]) -> None:
    path = (Path(text.file).parent / d.name).resolve()
    if path in importing or (text.file and path == Path(text.file).resolve()):
        raise text.wrong(d.place, f"{d.name} imports itself, by way of {text.file}")
    try:
        shown = str(Path(text.file).parent / d.name)
        declarations = parse(_text_of(shown), shown)
    except CalculusError as error:
        if "cannot be read" not in error.message:
            raise
        raise text.wrong(d.place, error.message) from None
    above = (*importing, Path(text.file).resolve()) if text.file else importing
    _declare(declarations, symbols, defined, above)


def _define(d: Declaration, text: Source, symbols, defined: dict[str, Definition]) -> None:
    assert d.body is not None
    inference = Inference(text, symbols, defined)
    t = run(inference.infer(d.body))
    inference.close_types()
    defined.pop(d.name, None)  # a later definition sees the one before it, and stands after it
    defined[d.name] = Definition(d.name, d.body, inference.types.whole(t), text)


def _symbol(d: Declaration, text: Source, symbols: dict[str, Symbol], defined) -> None:
    """A function symbol that a term declares: a closed map of numbers to numbers."""
    assert d.body is not None
    held = Program(text, symbols, defined, d.body)
    body = held.term()
    t = body.type
    if not isinstance(t, Arrow) or not is_ground(t.source) or not is_ground(t.target):
        raise text.wrong(
            d.place, f"a function symbol maps numbers to numbers, but {d.name} is {show(t)}"
        )
    assert not list(holes(t))
    symbols[d.name] = Symbol(d.name, t.source, t.target, body=body)

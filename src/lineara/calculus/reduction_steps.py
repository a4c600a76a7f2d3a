r"""Every step of a reduction, with its rule and its redex, as text, for a terminal, as a page.

>>> for s in trace("(\\x. x * x) 3"):
...     print(s)
  1  1     application               «(\x:R. multiply(x, x)) 3»
  2  3     symbol at numbers         «multiply(3, 3)»
"""

import html
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from lineara.calculus.program import as_term
from lineara.calculus.reducer import FUEL, Frame, Reducer, Rule, filled, path_of
from lineara.calculus.show import show
from lineara.calculus.terms import Term


class Traced(NamedTuple):
    """One step: its number, its rule, where its redex is, the redex, and what that becomes.

    A step shares its context with its neighbours: `term` and `path` are put together when asked
    for, and a text with `around` looks at no more of the term than it shows.
    """

    number: int
    rule: Rule
    context: Frame | None
    at: Term
    contractum: Term

    def __str__(self) -> str:
        return f"{self.head()}  {self.text()}"

    def head(self) -> str:
        """The number of the step, and the number and name of its rule."""
        return f"{self.number:3}  {self.rule.number:<5} {self.rule.name:<24}"

    @property
    def path(self) -> tuple[int, ...]:
        """The path to the redex in the whole term."""
        return path_of(self.context)

    @property
    def term(self) -> Term:
        """The whole term before the step."""
        return filled(self.context, self.at)

    def redex(self) -> Term:
        """The subterm that is about to change."""
        return self.at

    def text(self, around: int | None = None, marks: tuple[str, str] = ("«", "»")) -> str:
        r"""The term before the step with its redex between `marks`, or `around` levels about it.

        >>> step = next(trace("fst (snd <<1, 2>, <sin(3 + 4), <5, 6>>>)"))
        >>> step.text(around=2)
        '… <sin(«3 + 4»), …> …'
        """
        frames: list[Frame] = []
        context = self.context
        # one frame more than is shown says that there is more
        while context is not None and (around is None or len(frames) <= around):
            frames.append(context)
            context = context.outer
        spine, path = dict[int, Term](), list[int]()
        for frame in reversed(frames):
            spine[len(path)] = frame.parent
            path += frame.path
        spine[len(path)] = self.at
        return show(spine[0], path, marks, around, spine)

    def json(self, around: int | None = None) -> dict[str, Any]:
        """The step as an object for JSON; `around` cuts its texts to a window."""
        return {
            "step": self.number,
            "rule": self.rule.number,
            "name": self.rule.name,
            "path": list(self.path),
            "term": self.text(around, ("", "")),
            "redex": show(self.at, (), ("", ""), around),
            "contractum": show(self.contractum, (), ("", ""), around),
        }


def trace(
    term: Term | str, fuel: int = FUEL, first: int = 1, last: int | None = None
) -> Iterator[Traced]:
    r"""The steps of a closed term, or of a text, until there is a value.

    Only the steps from the number `first` to the number `last` are given, and no step after
    `last` is taken.  A step holds what it changes and its context, which it shares with the others.

    Raises CalculusError where `fuel` unfoldings of recursions do not reach a value.

    >>> [step.rule.name for step in trace("(\\x. x * x) 3")]
    ['application', 'symbol at numbers']
    >>> print(*trace("(\\x. x * x) 3", first=2))
      2  3     symbol at numbers         «multiply(3, 3)»
    """
    reducer = Reducer(as_term(term, "trace"), fuel)
    for n, done in enumerate(reducer, 1):
        if n >= first and (last is None or n <= last):
            yield Traced(n, *done)
        if n == last:
            return


def value_of(term: Term | str, fuel: int = FUEL) -> Term:
    """The value that a closed term reduces to.

    >>> show(value_of("pull(\\\\x. x * x; \\\\_. covec(1)) 3"))
    'covec(6)'
    """
    reducer = Reducer(as_term(term, "reduce"), fuel)
    reducer.run()
    return reducer.term()


def rich_text(step: Traced, around: int | None = None) -> Any:
    """The step for a terminal: a rich Text with the redex in colour."""
    from rich.text import Text

    text = Text(step.head(), style="dim")
    before, rest = step.text(around, ("\x01", "\x02")).split("\x01")
    redex, after = rest.split("\x02")
    text.append(f"  {before}")
    text.append(redex, style="bold reverse")
    return text.append(after)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }}
h1 {{ overflow-wrap: anywhere }}
table {{ border-collapse: collapse }}
th {{ text-align: left; padding-right: 0.8rem }}
td {{ vertical-align: top; padding: 0.2rem 0.8rem 0.2rem 0; border-top: 1px solid #ddd }}
tr:target {{ outline: 2px solid #c80 }}
code {{ font: 13px/1.6 ui-monospace, monospace; overflow-wrap: anywhere }}
mark {{ background: #ffe08a; border-radius: 3px; padding: 1px 2px;
 box-decoration-break: clone; -webkit-box-decoration-break: clone }}
@media (max-width: 40rem) {{ body {{ margin: 1rem }} tr {{ display: block; padding: 0.4rem 0 }}
 thead {{ display: none }} td {{ border: 0; display: inline }} td:last-child {{ display: block }} }}
@media (prefers-color-scheme: dark) {{
body {{ color: #ddd; background: #181818 }} td {{ border-color: #444 }}
mark {{ background: #7a5b00; color: #fff }} }}
</style></head><body><h1>{title}</h1>
<table><thead><tr><th>step</th><th>rule</th><th></th><th>term, with what the rule changes</th></tr>
</thead><tbody>
{rows}
</tbody></table><p>Value: <code>{value}</code></p></body></html>
"""


def page(
    steps: Iterable[Traced],
    value: Term,
    title: str = "A reduction",
    around: int | Callable[[Traced], int | None] | None = None,
) -> str:
    r"""The steps as a page of its own, each whole or as a window of `around` levels.

    `around` may be a function that says how many for each step.

    >>> text = page(trace("(\\x. x * x) 3"), value_of("(\\x. x * x) 3"))
    >>> text.count("<tr id=")
    2
    """
    rows = []
    for s in steps:
        levels = around(s) if callable(around) else around
        text = html.escape(s.text(levels, ("\x01", "\x02")))
        text = text.replace("\x01", "<mark>").replace("\x02", "</mark>")
        rows.append(
            f'<tr id="{s.number}"><td>{s.number}</td><td>{html.escape(s.rule.number)}</td>'
            f"<td>{html.escape(s.rule.name)}</td><td><code>{text}</code></td></tr>"
        )
    shown = html.escape(show(value))
    return _PAGE.format(title=html.escape(title), rows="\n".join(rows), value=shown)

r"""Every step of a reduction, with its rule and its redex, as text, for a terminal, as a page.

>>> for s in trace("(\\x. x * x) 3"):
...     print(s)
  1  1     application               «(\x:R. multiply(x, x)) 3»
  2  3     symbol at numbers         «multiply(3, 3)»
"""

import html
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lineara.calculus.program import term as term_of
from lineara.calculus.reducer import FUEL, Reducer, Rule
from lineara.calculus.show import show
from lineara.calculus.terms import Term


class Traced(NamedTuple):
    """One step: its number, its rule, the term before it, where the redex is, what that becomes."""

    number: int
    rule: Rule
    term: Term
    path: tuple[int, ...]
    contractum: Term

    def __str__(self) -> str:
        return f"{self.head()}  {show(self.term, self.path)}"

    def head(self) -> str:
        """The number of the step, and the number and name of its rule."""
        return f"{self.number:3}  {self.rule.number:<5} {self.rule.name:<24}"

    def json(self) -> dict[str, Any]:
        """The step as an object for JSON."""
        return {
            "step": self.number,
            "rule": self.rule.number,
            "name": self.rule.name,
            "path": list(self.path),
            "term": show(self.term),
            "redex": show(self.redex()),
            "contractum": show(self.contractum),
        }

    def redex(self) -> Term:
        """The subterm that is about to change."""
        term = self.term
        for i in self.path:
            term = term.parts[i]
        return term


def trace(term: Term | str, fuel: int = FUEL) -> Iterator[Traced]:
    r"""The steps of a closed term, or of a text, until there is a value.

    Raises CalculusError where `fuel` steps do not reach a value.

    >>> [step.rule.name for step in trace("(\\x. x * x) 3")]
    ['application', 'symbol at numbers']
    """
    reducer = Reducer(term_of(term) if isinstance(term, str) else term, fuel)
    for n in itertools.count(1):
        if not reducer.seek():
            return
        before, path = reducer.term(), reducer.path()
        done = reducer.step()
        assert done is not None
        yield Traced(n, done.rule, before, path, done.contractum)


def value_of(term: Term | str, fuel: int = FUEL) -> Term:
    """The value that a closed term reduces to.

    >>> show(value_of("pull(\\\\x. x * x; \\\\_. covec(1)) 3"))
    'covec(6)'
    """
    reducer = Reducer(term_of(term) if isinstance(term, str) else term, fuel)
    reducer.run()
    return reducer.term()


def rich_text(step: Traced) -> Any:
    """The step for a terminal: a rich Text with the redex in colour."""
    from rich.text import Text

    text = Text(step.head(), style="dim")
    before, rest = show(step.term, step.path, ("\x01", "\x02")).split("\x01")
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


def page(steps: Iterable[Traced], value: Term, title: str = "A reduction") -> str:
    r"""The steps as a page of its own.

    >>> text = page(trace("(\\x. x * x) 3"), value_of("(\\x. x * x) 3"))
    >>> text.count("<tr id=")
    2
    """
    rows = []
    for s in steps:
        text = html.escape(show(s.term, s.path, ("\x01", "\x02")))
        text = text.replace("\x01", "<mark>").replace("\x02", "</mark>")
        rows.append(
            f'<tr id="{s.number}"><td>{s.number}</td><td>{html.escape(s.rule.number)}</td>'
            f"<td>{html.escape(s.rule.name)}</td><td><code>{text}</code></td></tr>"
        )
    shown = html.escape(show(value))
    return _PAGE.format(title=html.escape(title), rows="\n".join(rows), value=shown)

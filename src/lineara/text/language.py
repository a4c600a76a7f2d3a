"""Parsers from grammars, with errors that say what stands at a place and what could."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from lineara.errors import LinearaError
from lineara.text.source_location import Place, located

# A name is one of Python's: every character beyond ASCII, except for spaces, may stand in it.
_BEYOND = (
    r"\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\U0010ffff"
)
FIRST: str = f"A-Za-z_{_BEYOND}"  # within brackets of a regular expression: what begins a name
NEXT: str = f"0-9{FIRST}"  # and what goes on in it

MOST = 6  # expected terminals that a message lists
KNOWN = 4000  # names among which a similar one is looked for


def with_names(grammar: str) -> str:
    """A grammar in whose regular expressions `@FIRST@` and `@NEXT@` are the characters of names.

    >>> import re
    >>> bool(re.fullmatch(with_names("[@FIRST@][@NEXT@]*"), "θ1"))
    True
    """
    return grammar.replace("@FIRST@", FIRST).replace("@NEXT@", NEXT)


class Source(NamedTuple):
    """A text, the file that it stands in, and the class of errors about it."""

    text: str
    file: str
    error: type[LinearaError]

    def wrong(self, place: Place, message: str) -> LinearaError:
        """The error with `file:line:column`, the line and a caret."""
        return self.error(located(self.text, self.file, place, message))


class Language:
    """A grammar, the class of its errors, and what messages call its terminals.

    `summed_up` replaces sets of terminals that stand for one thing, such as all that begin a term.
    """

    def __init__(
        self,
        grammar: str,
        error: type[LinearaError],
        terminals: Mapping[str, str],
        summed_up: Callable[[set[str]], set[str]] = lambda expected: expected,
    ) -> None:
        self.grammar = grammar
        self.error = error
        self.terminals = terminals
        self.summed_up = summed_up

    @cached_property
    def parser(self) -> Any:
        """Lark's parser, made when the first text is read."""
        from lark import Lark

        return Lark(self.grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)

    def source(self, text: str, file: str = "") -> Source:
        """A text of the language."""
        return Source(text, file, self.error)

    def tree(self, source: Source) -> Any:
        """The tree of a text; an error shows the place of what does not parse."""
        from lark.exceptions import UnexpectedInput

        try:
            return self.parser.parse(source.text)
        except UnexpectedInput as error:
            raise self._unexpected(error, source) from None

    def _unexpected(self, error: Any, source: Source) -> LinearaError:
        text, token = source.text, getattr(error, "token", None)
        place = Place(error.line, error.column)
        if token is None:
            what = f"the character {text[error.pos_in_stream]!r} has no meaning"
        elif token.type == "$END":
            lines = text.split("\n")
            place, what = Place(len(lines), len(lines[-1]) + 1), "the text ends here"
        else:
            what = f"{str(token)!r} is not expected here"
        expected = getattr(error, "accepts", None) or getattr(error, "expected", None) or ()
        names = self.summed_up(set(expected))
        shown = sorted({self.terminals.get(t, t.lower()) for t in names})
        hint = f"; expected {' or '.join(shown)}" if 0 < len(shown) <= MOST else ""
        return source.wrong(place, what + hint)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean x?` for the most similar known name, or nothing.

    >>> did_you_mean("sine", ["sin", "cos"]), did_you_mean("f", [])
    ('; did you mean sin?', '')
    """
    near = difflib.get_close_matches(name, islice(known, KNOWN), 1)
    return f"; did you mean {near[0]}?" if near else ""

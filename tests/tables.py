"""Laws over a table: one test for each entry, which tries every law that holds for the entry.

pytest makes an item of each test in each of its processes, which costs 0.3 ms, and reports each
one: a test for each of the 25,000 pairs of a law and an entry would take longer than most laws.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


class Laws:
    """The laws of one module, each with the entries for which it holds."""

    def __init__(self) -> None:
        self.table: dict[Any, tuple[Any, list[Callable[[Any], None]]]] = {}

    def of(self, entries: Iterable[Any]) -> Callable[[Any], Any]:
        """Declare a law, a function of one entry, which raises where the law is broken."""

        def declare(law: Any) -> Any:
            for entry in entries:
                key = entry if isinstance(entry, str) else id(entry)
                laws = self.table.setdefault(key, (entry, []))[1]
                if law not in laws:
                    laws.append(law)
            return law

        return declare

    def test(self) -> Callable[..., None]:
        """The test of all laws that were declared: a module assigns it as its last line."""
        cases = [pytest.param(*case, id=str(case[0])) for case in self.table.values()]

        @pytest.mark.parametrize(("entry", "laws"), cases)
        def test_laws(entry: Any, laws: list[Callable[[Any], None]]) -> None:
            try_all(entry, laws)

        return test_laws


def try_all(entry: Any, laws: Iterable[Callable[[Any], None]]) -> None:
    """Try every law; an error names its law and the entry, and several come together."""
    errors = []
    for law in laws:
        try:
            law(entry)
        except Exception as e:
            e.add_note(f"the law {getattr(law, '__name__', law)} of {entry}")
            errors.append(e)
    if len(errors) > 1:
        raise ExceptionGroup(f"{len(errors)} laws are broken by {entry}", errors)
    if errors:
        raise errors[0]

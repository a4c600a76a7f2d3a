"""Laws over a table: one test for each entry, which tries every law that holds for the entry.

pytest makes an item of each test in each of its processes, which costs 0.3 ms, and reports each
one: a test for each of the 25,000 pairs of a law and an entry would take longer than most laws.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

Law = tuple[Callable[[Any], None], Callable[[Any], bool] | None]


class Laws:
    """The laws of one module, each with the entries for which it holds."""

    def __init__(self) -> None:
        self.table: dict[Any, tuple[Any, list[Law]]] = {}

    def of(self, entries: Iterable[Any], where: Any = None) -> Callable[[Any], Any]:
        """Declare a law, a function of one entry, which raises where the law is broken.

        `where` is asked of an entry when its test runs, which a condition that computes waits for:
        the table is made in each of pytest's processes.
        """

        def declare(law: Any) -> Any:
            for entry in entries:
                key = entry if isinstance(entry, str) else id(entry)
                laws = self.table.setdefault(key, (entry, []))[1]
                if law not in [declared for declared, _ in laws]:
                    laws.append((law, where))
            return law

        return declare

    def test(self) -> Callable[..., None]:
        """The test of all laws that were declared: a module assigns it as its last line."""
        cases = [pytest.param(*case, id=str(case[0])) for case in self.table.values()]

        @pytest.mark.parametrize(("entry", "laws"), cases)
        def test_laws(entry: Any, laws: list[Law]) -> None:
            try_all(entry, [law for law, where in laws if where is None or where(entry)])

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

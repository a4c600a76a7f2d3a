"""Numbers as texts of the command line."""

import argparse
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """A reader of whole numbers of at least that much; others are wrong use.

    >>> at_least(1)("3")
    3
    """

    def whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"a whole number of at least {least} is needed, {text!r} was given"
            )
        return int(text)

    return whole_number

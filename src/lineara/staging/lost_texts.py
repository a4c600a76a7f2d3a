"""The text of an exception that was caught as the program runs, where it says staged values."""

from typing import Any, NoReturn

from lineara.errors import StagingError


class LostText:
    """What stands in an exception for a text that its handler cannot ask for."""

    __lineara_leaf__ = True
    what: str


def lost_text(what: str) -> LostText:
    """The text of what something raises."""
    text = LostText()
    text.what = what
    return text


def _refuse(text: LostText, *_: Any, **__: Any) -> NoReturn:
    raise StagingError(
        f"the text of the exception of {text.what} was asked for, which was caught as the program "
        "runs: it says values that are not known while a program is written; give one of your own"
    )


def refuse_lost(error: BaseException) -> None:
    """Refuse to raise an exception again of which the text is lost."""
    for a in error.args:
        if isinstance(a, LostText):
            _refuse(a)


_ASKS = "str repr format eq ne hash bool len iter contains getitem add radd mod rmod"
for _name in _ASKS.split():
    setattr(LostText, f"__{_name}__", _refuse)

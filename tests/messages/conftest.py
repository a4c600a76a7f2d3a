"""What an error says, whole: its class, its message, and the user's line without the place."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lineara.errors import LinearaError


def _said(act: Callable[[], Any]) -> str:
    with pytest.raises(LinearaError) as caught, np.errstate(all="ignore"):
        act()
    text = re.sub(r"\n  at \S+:\d+ in ", "\n  at ", str(caught.value))
    return f"{type(caught.value).__name__}: {text}"


@pytest.fixture
def said() -> Callable[..., str]:
    """Calls a function that must fail, and gives the text of the failure."""
    return _said

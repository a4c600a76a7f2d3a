"""Recursion without Python's stack: a function that recurs is a generator that yields its calls.

Programs nest as deep as they like, so nothing here may end in a RecursionError.

>>> def depth(t):
...     return 1 + (yield depth(t[0])) if t else 0
>>> t = ()
>>> for _ in range(10_000):
...     t = (t,)
>>> run(depth(t))
10000
"""

from collections.abc import Generator
from typing import Any

Deep = Generator[Any, Any, Any]


def run(call: Deep) -> Any:
    """The result of a generator whose yields are calls of others."""
    stack, value = [call], None
    while stack:
        try:
            stack.append(stack[-1].send(value))
            value = None
        except StopIteration as done:
            stack.pop()
            value = done.value
    return value

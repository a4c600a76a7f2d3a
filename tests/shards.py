"""Random programs in shards, so that workers share them; all but the first are slow."""

import pytest


def shards(n: int) -> list[object]:
    """The numbers of n shards, as cases of a test."""
    return [0, *[pytest.param(i, marks=pytest.mark.slow("more of the same")) for i in range(1, n)]]

"""What unzip refuses."""

import pytest

from lineara.errors import ProgramError
from lineara.linear_a.parse import parse
from lineara.passes.checkpoint import recompute_all
from lineara.passes.compose import vjp


def test_a_policy_is_not_ignored_where_halves_exist():
    program = vjp(parse("def f(x: f64;) -> (f64;) = let y = sin(x) in y * y"), "f")
    assert vjp(program, "f").defs["f.jvp.nl"] is program.defs["f.jvp.nl"]
    with pytest.raises(ProgramError) as error:
        vjp(program, "f", recompute_all)
    assert str(error.value) == (
        "unzip: the program has halves of f.jvp already, made under some policy; to choose "
        "another one, start from a program without f.jvp.nl"
    )

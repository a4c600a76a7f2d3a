"""A block that is dropped is transposed to zeros, whatever is bound in it."""

import pytest

from lineara.linear_a.check import check
from lineara.linear_a.evaluate import run
from lineara.linear_a.parse import parse
from lineara.passes.transpose import transpose

TEXT = """
def f(k: f64; ~p: <f64, f64>, ~b: f64) -> (; f64) =
  let (;) = drop({
    let ~<~u, ~v> = ~p in
    let ~w = k * ~u in
    (; ~w, ~v)
  }) in
  ~b
"""


@pytest.mark.parametrize("exact", [False, True])
def test_a_product_that_is_taken_apart_and_dropped_has_the_cotangent_zero(exact):
    program = check(transpose(check(parse(TEXT)), "f", exact))
    assert run(program, "f.t", 3.0, 2.0).lresults == ((0.0, 0.0), 2.0)

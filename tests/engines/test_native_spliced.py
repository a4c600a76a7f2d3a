"""What is called once stands in its caller: the lines, and what errors say of them."""

from dataclasses import replace

import numpy as np
import pytest

from lineara.engines import ENGINES, run
from lineara.engines.native.spliced import spliced
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_def
from lineara.linear_a.syntax import Block, Let

pytest.importorskip("llvmlite")

NATIVE = next(e for e in ENGINES if e.name == "native")
TEXT = """
def once(x: f64, y: f64;) -> (f64, <f64, f64>;) =
  let a: f64 = sin(x) in
  let t: <f64, f64> = <a, y> in
  (a, t;)
def twice(x: f64;) -> (f64;) = x * x
def back(t: <f64, f64>, c: f64;) -> (f64;) =
  let <a: f64, y: f64> = t in
  let b: f64 = twice(a;) in
  let d: f64 = y * b in
  d + c
def f(x: f64;) -> (f64;) =
  let a: f64 = twice(x;) in
  let (r: f64, t: <f64, f64>;) = once(x, a;) in
  back(t, r;)
"""


def test_what_is_called_once_stands_in_its_caller():
    program = parse(TEXT)
    made, origins = spliced(program, "f")
    lines = [line.strip() for line in show_def(made.defs["f"]).splitlines()]
    assert lines == [
        "def f(x: f64;) -> (f64;) =",
        "let a: f64 = twice(x;) in",
        "let a2: f64 = sin(x) in",
        "let t2: <f64, f64> = <a2, a> in",
        "let b: f64 = twice(a2;) in",
        "let d: f64 = a * b in",
        "d + a2",
    ]
    every = {id(e): f for f, d in program.defs.items() for e in (d.body.leaf,)}
    assert every[id(origins[made.defs["f"].body.leaf])] == "back"


def test_definitions_may_have_variables_in_common():
    program = parse("""
    def inner(x: f64;) -> (f64;) = let y: f64 = cos(x) in y + y
    def outer(x: f64;) -> (f64;) =
      let y: f64 = sin(x) in
      let z: f64 = inner(y;) in
      y * z
    def f(x: f64;) -> (f64;) = let y: f64 = outer(x;) in x - y
    """)
    outer, inner, f = (program.defs[name] for name in ("outer", "inner", "f"))
    (x,), y, z = outer.params, outer.body.bindings[0].vars[0], outer.body.bindings[1].vars[0]
    for d, called in ((inner, y), (f, z)):
        at = {d.params[0]: x, d.body.bindings[0].vars[0]: called}
        (b,), leaf = d.body.bindings, d.body.leaf
        body = Block((Let((called,), b.rhs.renamed(at.get)),), leaf.renamed(at.get))
        program = program.with_(replace(d, params=(x,), body=body))
    expected = run(program, "f", 0.7, engine="interpreter").results
    assert run(program, "f", 0.7, engine=NATIVE).results == expected
    assert np.allclose(expected, 0.7 - 2 * np.sin(0.7) * np.cos(np.sin(0.7)))
    made, _ = spliced(program, "f")
    lines = [line.strip() for line in show_def(made.defs["f"]).splitlines()]
    assert lines == [
        "def f(x: f64;) -> (f64;) =",
        "let y: f64 = sin(x) in",
        "let y2: f64 = cos(y) in",
        "let z2: f64 = y2 + y2 in",
        "let z: f64 = y * z2 in",
        "x - z",
    ]


def test_what_calls_itself_stays():
    program = parse("""
    def down(n: i64;) -> (i64;) = again(n;)
    def again(n: i64;) -> (i64;) = down(n;)
    """)
    made, _ = spliced(program, "down")
    assert [*made.reached("down")] == ["down"]


def test_an_error_speaks_of_the_program_as_it_was():
    program = parse("""
    def read(x: f64[3], i: i64;) -> (f64;) =
      let y: f64 = index[at=(i,)](x) in
      y * y
    def f(x: f64[3], i: i64;) -> (f64;) =
      let y: f64 = read(x, i;) in
      sin(y)
    """)
    said = []
    for engine in ("interpreter", NATIVE):
        with pytest.raises(IndexError) as raised:
            run(program, "f", np.arange(3.0), np.int64(7), engine=engine)
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "let y: f64 = index[at=(i,)](x) in" in said[0]

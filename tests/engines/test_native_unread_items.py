"""What a gradient does not read is on none of its tapes; what it reads is right."""

import itertools
import re

import numpy as np
import pytest
from random_loops import RandomLoops, W

import lineara
from lineara.engines import run
from lineara.engines.native import Native, lower
from lineara.engines.native.unread_items import unread_items
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")


def layers(x, w, b):
    """Rounds in rounds, whose arguments all have cotangents."""
    h, total = np.zeros(3), 0.0
    for t in range(x.shape[0]):
        h = np.tanh(w @ h + x[t] * b)
        for k in range(3):
            total = total + h[k] * np.sin(b[k] * total)
    return total


def taped(jitted, *args):
    """How many numbers of each round are on tapes: of those with three elements, and of others."""
    told = lineara.explain(jitted, *args).machine_code
    lines = [re.fullmatch(r"on a tape: (?:(\d+) times )?(\S+) in each of .*", s) for s in told]
    counts = {"f64[3]": 0, "f64": 0}
    for m in filter(None, lines):
        counts[m[2]] += int(m[1] or 1)
    return counts["f64[3]"], counts["f64"]


@pytest.mark.parametrize("rounds", [5, 20])
def test_a_tape_holds_what_the_arguments_of_the_gradient_need(rounds):
    rng = np.random.default_rng(0)
    args = rng.normal(size=(rounds, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    expected = lineara.jit(lineara.grad(layers, (0, 1, 2)), engine="interpreter")(*args)
    held = {}
    for places in [p for n in (1, 2, 3) for p in itertools.combinations(range(3), n)]:
        jitted = lineara.jit(lineara.grad(layers, places), engine="native")
        for i, slope in zip(places, jitted(*args), strict=True):
            np.testing.assert_allclose(slope, expected[i], rtol=1e-13)
        held[places] = taped(jitted, *args)
    assert held == {
        (0,): (1, 9),
        (1,): (2, 9),
        (2,): (2, 12),
        (0, 1): (2, 9),
        (0, 2): (2, 12),
        (1, 2): (3, 12),
        (0, 1, 2): (3, 12),
    }


@pytest.mark.parametrize("shard", range(2))
def test_gradients_of_random_loops_in_some_arguments_are_the_interpreters(shard):
    x = np.linspace(0.3, 0.9, 4)
    for seed in range(shard, 24, 2):
        drawn = RandomLoops(seed)
        drawn.lines[0] = "def f(x, n, w):"
        f = drawn.function()
        for places in (0, 2, (0, 2)):
            slopes = [
                lineara.jit(lineara.grad(f, places), engine=engine)(x, 3, W)
                for engine in ("native", "interpreter")
            ]
            np.testing.assert_allclose(*map(np.array, slopes), rtol=1e-11, atol=1e-14)


READERS = {
    "one": ("let <a: f64, b: f64, c: f64> = r in a * d", {1, 2}),
    "two": ("let <a: f64, b: f64, c: f64> = r in let e: f64 = a * c in e * d", {1}),
    "none": ("let (;) = drop((r;)) in d + d", {0, 1, 2}),
    "what is dropped": (
        "let <a: f64, b: f64, c: f64> = r in let (;) = drop(sin(b)) in a * d",
        {1, 2},
    ),
    "what checks": (
        "let <a: f64, b: f64, c: f64> = r in "
        "let k: f64 = python_divide(d, b) in let (;) = drop(k) in a * d",
        {2},
    ),
    "a call": ("let e: f64 = second(r;) in e * d", {0, 2}),
    "another name": ("let e: f64 = other(r;) in e * d", set()),
    "a branch": (
        "let p: bool = less(d, 0.1) in cond[second, first](p, r;)",
        {2},
    ),
    "a recursion": ("let k = 2_i64 in let (u: f64, v: f64;) = deep(k, r;) in u * d", {2}),
    "a product around": ("let q: <t, f64> = <r, d> in outer(q;)", {0, 1}),
}


LOOPS = {
    "4": "let (e: f64, ts: stack[4, t];) = scan[there, 4, fwd, 0, 1, 0](x;) in",
    "None": """
      let i: i64 = 0_i64 in
      let (n: i64, e: f64, ts: stack[t];) = while[go, step, 0](i, x;) in
      let (;) = drop((n;)) in
    """,
}


def program_of(reader, rounds, times, back="back"):
    """A loop whose rows one or two others read."""
    text, _ = READERS[reader]
    again = f"let (z: f64;) = scan[again, {rounds}, rev, 0, 1, 0](x, ts;) in y * z"
    return parse(f"""
    type t = <f64, f64, f64>
    type u = <f64, f64, f64>
    def there(c: f64;) -> (f64, t;) =
      let a: f64 = sin(c) in
      let b: f64 = cos(a) in
      let r: t = <a, b, c> in
      (b, r;)
    def go(i: i64;) -> (bool;) = let n: i64 = 4_i64 in less(i, n)
    def step(i: i64, c: f64;) -> (i64, f64, t;) =
      let k: i64 = 1_i64 in
      let j: i64 = i + k in
      let (e: f64, r: t;) = there(c;) in
      (j, e, r;)
    def first(r: t;) -> (f64;) = let <a: f64, b: f64, c: f64> = r in a * a
    def second(r: t;) -> (f64;) = let <a: f64, b: f64, c: f64> = r in b * b
    def other(r: u;) -> (f64;) = let <a: f64, b: f64, c: f64> = r in c * b
    def outer(q: <t, f64>;) -> (f64;) =
      let <r: t, d: f64> = q in
      let <a: f64, b: f64, c: f64> = r in
      c * d
    def last(k: i64, r: t;) -> (f64, f64;) =
      let (;) = drop(k) in
      let <a: f64, b: f64, c: f64> = r in
      (a, b;)
    def less_deep(k: i64, r: t;) -> (f64, f64;) =
      let one = 1_i64 in
      let i = k - one in
      let (u: f64, v: f64;) = deep(i, r;) in
      let s = u + v in
      (s, u;)
    def deep(k: i64, r: t;) -> (f64, f64;) =
      let none = 0_i64 in
      let p: bool = less(none, k) in
      cond[less_deep, last](p, k, r;)
    def {back}(d: f64, r: t;) -> (f64;) = {text}
    def again(d: f64, r: t;) -> (f64;) = let <a: f64, b: f64, c: f64> = r in b * d
    def f(x: f64;) -> (f64;) =
      {LOOPS[rounds]}
      let (y: f64;) = scan[{back}, {rounds}, rev, 0, 1, 0](e, ts;) in
      {again if times > 1 else "y + x"}
    """)


def test_what_goes_out_is_read():
    program = program_of("one", "4", 1)
    text = str(program).replace("def f(x: f64;) -> (f64;)", "def f(x: f64;) -> (f64, stack[4, t];)")
    (last,) = re.findall(r"  y \+ x\n", text)
    program = parse(text.replace(last, "  let s: f64 = y + x in\n  (s, ts;)\n"))
    assert unread_items(program, "f", True) == {"t": frozenset()}


@pytest.mark.parametrize("reader", READERS)
def test_an_item_is_unread_where_no_run_needs_it(reader, monkeypatch):
    """Also where a round that reads rows is called back as a whole."""
    lowered = lower._lowered

    def refusing_back2(*of):
        return lowered(*of[:5], {"back2": "it is refused here"}, *of[6:])

    for rounds, times in itertools.product(LOOPS, (1, 2)):
        program, (_, unread) = program_of(reader, rounds, times), READERS[reader]
        known = unread_items(program, "f", True)
        assert known == {"t": frozenset(unread - ({1} if times > 1 else set()))}
        expected = run(program, "f", 0.3, engine="interpreter").results
        for engine in (Native(), Native(exact=True)):
            assert run(program, "f", 0.3, engine=engine).results == expected
        with monkeypatch.context() as m:
            m.setattr(lower, "_lowered", refusing_back2)
            program = program_of(reader, rounds, times, "back2")
            assert run(program, "f", 0.3, engine=Native()).results == expected
            (code,) = program.noted["native code"].values()
            assert [site for site in code.sites if "since it is refused here" in site.what]

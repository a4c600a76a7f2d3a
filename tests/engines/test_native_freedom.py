"""What machine code may do with loops: what is known of places, and cotangents in any order.

Of arrays that a loop reads and writes at several places the code knows which are never the same:
what lies where is not read again, stores that nobody reads are left out, and LLVM is told of loops
whose rounds are apart.  Exact, all of it has the interpreter's bits.  By default sums and products
of cotangents may be contracted and added in any order, within the bound of `rounding.py`.
"""

import itertools
import random
import re
from typing import Any

import numpy as np
import pytest
from test_native import bits
from test_native_kinds import agree_of
from test_native_kinds import of as program_of

import lineara
from lineara.engines import run
from lineara.engines.native import Native, emitted, memory
from lineara.engines.native.cotangents import of_cotangents
from lineara.engines.native.lower import lowered
from lineara.engines.native.numbers import Affine, Arr, Buffer, Num, Round
from lineara.engines.native.places import Place, Places, Reached, differ, may_be_later
from lineara.facts.types import ArrayType
from lineara.linear_a.parse import parse
from lineara.linear_a.show import show_leaf

pytest.importorskip("llvmlite")

EXACT, NATIVE = Native(exact=True), Native()
N = 9
CUT = 3  # an offset from the edge, so that no place is outside


def agree(f, *args):
    """Exact code has the interpreter's bits, the other code is within the bound."""
    agree_of(*program_of(f, *args), None, None, (EXACT, NATIVE))


def text_of(f, *args):
    """The code of f's gradient as it is by default, without what calls it."""
    program, name, _ = program_of(lineara.grad(f), *args)
    return lowered(program, name, True, False).text.partition("define i32 @run")[0]


# --- places of arrays -----------------------------------------------------------------------------


def woven(draw):
    """A function whose loops write an array at places that lie anywhere to each other."""
    o = [tuple([draw.randrange(-CUT, CUT + 1) for _ in range(2)]) for _ in range(8)]
    if draw.random() < 0.5:
        o[2] = o[0]  # a place that is written from what it has
    if draw.random() < 0.5:
        o[5] = o[4]
    adds, triangle = draw.random() < 0.5, draw.choice([0, 1, 2])

    def place(i, j, k):
        return i + CUT + o[k][0], j + CUT + o[k][1]

    def f(x):
        a = x.copy()
        for i in range(N):
            for j in range(N if triangle == 0 else i if triangle == 1 else N - i):
                a[place(i, j, 0)] = 0.5 * a[place(i, j, 2)] - 0.25 * a[place(i, j, 3)]
                if adds:
                    a[place(i, j, 1)] += 0.75 * a[place(i, j, 6)]
                a[place(i, j, 4)] = a[place(i, j, 5)] + a[place(i, j, 7)] * x[i, j]
        total = 0.0
        for i in range(N + 2 * CUT):
            for j in range(N + 2 * CUT):
                total = total + a[i, j] * (1.0 + 0.1 * i - 0.01 * j)
        return total

    return f


def test_what_lies_at_a_place_is_known_only_as_long_as_it_lies_there(request):
    for i in range(8 if request.config.option.all else 3):
        draw = random.Random(f"{request.config.option.seed} {i}")
        x = np.random.default_rng(i).normal(size=(N + 2 * CUT, N + 2 * CUT))
        f = woven(draw)
        agree(f, x)
        agree(lineara.grad(f), x)


def lines(d, n=24):
    """Loops of one array that read d places away from where they write, in several ways."""

    def stencil(x):
        y = x.copy()
        for i in range(n):
            y[i + 8] = y[i + 8] - 0.5 * y[i + 8 + d] * x[i]
        return y.sum()

    def strided(x):
        y = x.copy()
        for i in range(n):
            y[2 * i] = y[2 * i] + 0.5 * y[i + 8 + d] * x[i]
        return y.sum()

    def against(x):
        y = x.copy()
        for i in range(n):
            y[i + 8] = y[i + 8] + 0.25 * y[n + 8 + d - i] * x[i]
        return y.sum()

    return stencil, strided, against


@pytest.mark.parametrize("d", [-8, -3, -1, 0, 1, 4, 7])
def test_rounds_that_reach_each_other_keep_their_order(d):
    x = np.random.default_rng(d + 9).normal(size=60)
    for f in lines(d):
        agree(f, x)
        agree(lineara.grad(f), x)


def reached(a, rounds):
    """The place in each of the rounds."""
    out = []
    for values in itertools.product(*[range(r.n) for r in rounds]):
        b = a
        for r, k in zip(rounds, values, strict=True):
            b = b.at(r, Affine(k))
        out.append((values, b.constant))
    return out


def test_places_that_are_said_to_differ_do():
    draw = random.Random(7)
    apart = 0
    for _ in range(400):
        rounds = [Round(draw.randrange(1, 5)) for _ in range(2)]
        x, w = [
            Affine(
                draw.randrange(-9, 9),
                tuple([(r, k) for r in rounds if (k := draw.randrange(-3, 4))]),
            )
            for _ in range(2)
        ]
        if draw.random() < 0.3:
            w = x
        if differ(x, w, rounds[-1]):
            apart += 1
            for (v, at), (u, to) in itertools.product(reached(x, rounds), reached(w, rounds)):
                assert v[:-1] != u[:-1] or v[-1] == u[-1] or at != to
    assert apart > 40


def test_what_lies_at_a_place_is_known_until_it_may_be_stored_over():
    r, double = Round(4), ArrayType((100,), np.dtype(float))
    x = Arr(Buffer("%x", 800, True), double)
    number, other = Num("f64", "%a"), Num("f64", "%b")

    def at(constant, k=1):
        return Num("i64", affine=Affine(constant, ((r, k),)))

    places = Places()
    places.know(x, at(5), number, 7)
    assert places.read(x, at(5)) == number
    assert places.read(x, at(4)) is None  # it lies beside
    assert places.over(x, at(9, 0)) is None  # four rounds do not come that far
    assert places.over(x, at(5)) == Place(at(5).affine, number, 7)  # that store is taken back
    assert places.read(x, at(5)) is None
    places.know(x, at(5), number, 7)
    assert places.read(x, at(8, 0)) is None  # which may be that place, so the store stays
    assert places.over(x, at(5)) == Place(at(5).affine, number)
    for where in (at(5, 2), at(6, 0), at(8, 0)):  # they meet in one of the rounds
        places.know(x, at(5), number, 7)
        assert places.over(x, where) is None
        assert places.read(x, at(5)) is None
    places.know(x, at(5), number, 7)
    floats = Arr(x.buffer, ArrayType((200,), np.dtype(np.float32)))
    assert places.read(floats, at(5)) is None
    assert places.over(floats, at(30)) is None  # other numbers, of which no place is known
    assert places.read(x, at(5)) is None
    places.know(floats, at(5), number)
    assert places.read(floats, at(5)) is None
    for i in range(12):
        places.know(x, at(10 * i), other, i)
    assert places.read(x, at(0)) is None
    assert places.over(x, at(110)) == Place(at(110).affine, other, 11)
    inside = Arr(x.buffer, double, "%v1")
    places.know(inside, at(1), number)
    assert places.read(inside, at(1)) is None


def test_what_is_known_is_not_read_again():
    program = parse("""
        def f(u: f64[3], x: f64;) -> (f64[3], f64;) =
          let v = put[0](u, x) in
          let a = index[at=(1,)](u) in
          let b = a * x in
          let c = index[at=(1,)](u) in
          let d = b + c in
          let e = index[at=(0,)](v) in
          let g = d - e in
          (v, g;)
    """)
    text = lowered(program, "f", True, False).text
    assert text.partition("@body(")[2].partition("\n}")[0].count("load double") == 1


def test_what_is_copied_over_is_not_known_any_more():
    program = parse("""
        def f(x: f64[3], s: f64;) -> (f64, f64[3];) =
          let y: f64[3] = zeros[f64[3]] in
          let y2: f64[3] = put[0](y, s) in
          let a: f64 = index[at=(0,)](y2) in
          let b: f64[2] = index[at=(1:,)](x) in
          let y3: f64[3] = put[:2](y2, b) in
          let c: f64 = index[at=(0,)](y3) in
          let d = a * c in
          (d, y3;)
    """)
    agree_of(program, "f", (np.array([1.0, 2.0, 3.0]), 7.0), None, None, (EXACT, NATIVE))


def rounds_of(draw):
    """Loops within each other; the inner ones have as many rounds as the outer ones say."""
    rounds = [Round(draw.randrange(1, 4))]
    for _ in range(2):
        told = [(r, k) for r in rounds if (k := draw.randrange(-1, 2))]
        rounds.append(Round(None, Affine(draw.randrange(1, 5), tuple(told))))
    return rounds


def in_order(rounds, at=()):
    """The values of the rounds, in the order in which they come."""
    if len(at) == len(rounds):
        return [at]
    most = rounds[len(at)].most
    for r, k in zip(rounds, at, strict=False):
        most = most.at(r, Affine(k))
    return [out for k in range(most.constant) for out in in_order(rounds, (*at, k))]


def value(a, rounds, at):
    for r, k in zip(rounds, at, strict=True):
        a = a.at(r, Affine(k))
    return a.constant


def test_what_no_later_round_writes_is_not_written():
    draw = random.Random(8)
    stays = 0
    for _ in range(1000):
        rounds = rounds_of(draw)
        others = draw.choice([rounds, rounds[:1], [*rounds[:1], *rounds_of(draw)[:1]], rounds[:2]])
        mine = rounds[: draw.randrange(1, 4)]

        def place(loops):
            terms = [(r, k) for r in loops if (k := draw.choice([-7, -2, -1, 0, 1, 2, 7, 7]))]
            return Affine(draw.randrange(-9, 9), tuple(terms))

        p, q = place(mine), place(others)
        if may_be_later(p, mine, q, others):
            continue
        stays += 1
        both = len([r for r, s in zip(mine, others, strict=False) if r is s])
        for v, u in itertools.product(in_order(mine), in_order(others)):
            if u[:both] >= v[:both]:
                assert value(p, mine, v) != value(q, others, u)
    assert stays > 40


def test_of_places_of_which_too_little_is_known_nothing_is_said():
    told, any_ = Round(4), Round(None)

    def at(constant, *rounds):
        return Affine(constant, tuple([(r, 1) for r in rounds]))

    assert Reached("!1").are_apart(told)
    assert not Reached().are_apart(told)
    assert not differ(at(0), None, told)
    assert not differ(None, at(0), told)
    for p, end in ((9, 1), (-9, -1)):  # nine rounds on, which the loop has not
        assert not may_be_later(at(p), [told], at(0, told).times(end), [told])
        assert may_be_later(at(p), [told], at(0, told, any_).times(end), [told, any_])
        assert may_be_later(at(p), [any_], at(0, any_).times(end), [any_])


def eliminated(x):
    """The determinant by elimination."""
    u, product = x.copy(), 1.0
    for k in range(N):
        product = product * u[k, k]
        for i in range(k + 1, N):
            factor = u[i, k] / u[k, k]
            for j in range(k + 1, N):
                u[i, j] = u[i, j] - factor * u[k, j]
    return product


MATRIX = np.random.default_rng(3).normal(size=(N, N)) + 4 * np.eye(N)


def test_the_way_back_clears_no_row_that_it_adds_to_again():
    agree(lineara.grad(eliminated), MATRIX)
    text = text_of(eliminated, MATRIX)
    assert "store double 0x0000000000000000" not in text  # zeros come by memset
    assert len(re.findall("llvm.loop.parallel_accesses", text_of_all(eliminated, MATRIX))) == 1


def test_a_loop_whose_rounds_are_apart_is_told_to_be():
    def scaled(x):
        y = x.copy()
        for i in range(40):
            y[i] = y[i] * x[i]
        return y

    program, name, _ = program_of(scaled, np.ones(40))
    text = lowered(program, name, True, False).text
    (fact,) = re.findall(r"(!\d+) = !{!\"llvm.loop.parallel_accesses", text)
    (loop,) = re.findall(rf"(!\d+) = distinct !{{.*{fact}\b", text)
    assert len(re.findall(rf"br label %\w+, !llvm.loop {loop}\n", text)) == 1


def text_of_all(f, *args):
    """The whole text of the gradient."""
    program, name, _ = program_of(lineara.grad(f), *args)
    return lowered(program, name, True, False).text


def filled(x):
    y = np.zeros(40)
    y[0] = x[0]
    for i in range(1, 40):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


def test_rounds_that_reach_each_other_are_not_said_to_be_apart():
    agree(lineara.grad(filled), np.linspace(-0.5, 0.5, 40))
    assert "parallel_accesses" not in text_of_all(filled, np.ones(40))


# --- what is read again ---------------------------------------------------------------------------


def table(x):
    """A table that is filled once, of what lies above and before."""
    u = np.zeros((N, N))
    u[0, 0] = x[0, 0]
    for i in range(1, N):
        u[i, 0] = u[i - 1, 0] * x[i, 0]
        u[0, i] = u[0, i - 1] + x[0, i]
    for i in range(1, N):
        for j in range(1, N):
            u[i, j] = u[i - 1, j] * u[i, j - 1] * 0.5 + x[i, j] * u[i - 1, j - 1]
    return u[N - 1, N - 1] + u[3, 4]


def stepped(x):
    """An array that each step writes over."""
    u = x[0].copy()
    for i in range(1, N):
        for j in range(1, N):
            u[j] = u[j] * u[j - 1] + x[i, j]
    return u.sum()


def written_later(x):
    """What one loop has read the next one writes over, in part or all of it."""
    u = filled_of(x[0])
    for i in range(2, N):
        u[i - 2] = u[i - 2] * u[i] * x[1, i]
    total = u.sum()
    u = u * x[2]
    u[3] = 0.0
    return total + (u * u).sum()


def filled_of(x):
    y = x.copy()
    for i in range(1, N):
        y[i] = 0.5 * y[i - 1] * x[i] + y[i - 1]
    return y


def anew_in_each_round(x):
    """An array of which each round of a loop makes another one."""
    total = 0.0
    for i in range(N):
        total = total * 0.5 + (filled_of(x[i]) * filled_of(x[i] * total)).sum()
    return total


def called(x):
    """An array that a function of NumPy's fills in each round."""
    total = 0.5
    for i in range(N):
        y = np.exp(0.1 * x[i])
        for j in range(N):
            total = total * 0.5 + y[j] * total * x[j, i]
    return total


def descent(x):
    """A gradient in each round."""
    y = x[0].copy()
    for i in range(1, 4):
        y = y - 0.01 * lineara.grad(lambda z, i=i: (filled_of(z) * x[i]).sum())(y)
    return y.sum()


def chosen(x):
    """A loop in a branch, and branches in it."""
    u = x[0].copy()
    if x[1, 1] > 0:
        for i in range(1, N):
            u[i] = u[i - 1] * x[1, i] if x[2, i] > 0 else u[i - 1] * u[i]
    else:
        for i in range(1, N):
            u[i] = u[i - 1] * x[2, i]
    return u.sum()


def early(x):
    """What the outer loop reads and the inner one goes on with."""
    u = x.copy()
    for i in range(N - 1):
        first = u[i, i]
        for j in range(N):
            u[i + 1, j] = u[i + 1, j] * first + u[i, j] * first
    return u.sum() + u[2, 3] * u[4, 4]


def swapped(x):
    """Two arrays that change places."""
    u, w = x[0].copy(), x[1].copy()
    for i in range(1, N):
        u[i] = u[i - 1] * w[i - 1]
        w[i] = u[i] + w[i - 1] * x[2, i]
        u, w = w, u
    return u.sum() + 2.0 * w[3]


def backwards(x):
    u = x[0].copy()
    for i in range(N - 2, -1, -1):
        u[i] = u[i + 1] * x[1, i] + u[i]
    return (u * x[2]).sum()


AGAIN = (
    table, stepped, written_later, anew_in_each_round, called, descent, chosen, early, swapped,
    backwards, eliminated, lambda x: filled_of(x[0]).sum(),
)  # fmt: skip


@pytest.mark.parametrize("held", [0.5, 1e9])
@pytest.mark.parametrize("f", AGAIN)
def test_what_is_read_again_is_what_was_read(f, held, monkeypatch):
    monkeypatch.setattr(memory, "HELD", held)
    monkeypatch.setattr(emitted, "key_of", lambda *_: "")
    x = np.random.default_rng(2).normal(size=(N, N)) + np.eye(N)
    agree(lineara.grad(f), x)
    slope: Any = lineara.grad(f)
    agree(lineara.grad(lambda x: (slope(x) * np.cos(x)).sum()), x)


def test_what_is_read_again_in_woven_loops_is_what_was_read(request, monkeypatch):
    monkeypatch.setattr(memory, "HELD", 1e9)
    monkeypatch.setattr(emitted, "key_of", lambda *_: "")
    for i in range(12 if request.config.option.all else 4):
        draw = random.Random(f"{request.config.option.seed} {i} again")
        x = np.random.default_rng(i).normal(size=(N + 2 * CUT, N + 2 * CUT))
        agree(lineara.grad(woven(draw)), x)


def taped(f, *args):
    """How many columns the gradient has on its tapes."""
    program, name, _ = program_of(lineara.grad(f), *args)
    return len(lowered(program, name, True, False).taped)


def test_a_row_that_stays_is_on_no_tape(monkeypatch):
    fewer = taped(eliminated, MATRIX)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "HELD", 0)
        assert taped(eliminated, MATRIX) == fewer + 1
    columns = [taped(f, MATRIX) for f in AGAIN]
    monkeypatch.setattr(memory, "HELD", 1e9)
    fewest = [taped(f, MATRIX) for f in AGAIN]
    saved = {f.__name__: n - k for f, n, k in zip(AGAIN, columns, fewest, strict=True)}
    assert saved["table"] >= 3
    assert saved["stepped"] == 0
    assert sum(saved.values()) > 5


def test_what_was_read_before_the_loops_is_stored():
    program = parse("""
type row = <f64>
def one(z: f64, s: f64, x: f64;) -> (f64, row;) =
  let y = s * z in let w = y + x in let t: row = <z> in (w, t;)
def back(c: f64, t: row;) -> (f64;) = let <z: f64> = t in c * z
def f(x: f64[40], w: f64[4];) -> (f64;) =
  let u = exp(w) in
  let z = index[at=(3,)](u) in
  let (s: f64, ts: stack[40, row];) = scan[one, 40, fwd, 1, 1, 0](z, 0.5, x;) in
  scan[back, 40, rev, 0, 1, 0](s, ts;)
""")
    values = np.linspace(0.0, 0.1, 40), np.linspace(-0.1, 0.1, 4)
    agree_of(program, "f", values, None, None, (EXACT, NATIVE))


# --- cotangents -----------------------------------------------------------------------------------


COTANGENTS = """
type tape = <f64, bool>

def f'nl(x: f64;) -> (f64, tape;) =
  let y = sin(x) in
  let none = 0.0 in
  let p = greater(x, none) in
  let t: tape = <x, p> in
  (y, t;)

def f'lin't(t: tape, c: f64, live: bool;) -> (f64, f64;) =
  let <x: f64, p: bool> = t in
  let k = cos(x) in
  let k2 = k * x in
  let k3 = where(live, k2, x) in
  let (d: f64, e: f64;) = { let d = k * c in (k2, d;) } in
  let k4 = square(d) in
  let q = less(e, c) in
  let k5 = where(q, k3, k4) in
  let (a: f64, b: f64, w: f64;) = scan[turned, 3, fwd, 1, 3, 0](k5, k, k2, c;) in
  let g = cond[one, other](p, a, k2;) in
  let g2 = k2 + k5 in
  let h = g + g2 in
  let (;) = drop((b, w;)) in
  (h, e;)

def turned(s: f64, a: f64, b: f64, w: f64;) -> (f64, f64, f64;) =
  let y = exp(s) in
  let z = w * y in
  let b2 = abs(b) in
  (b2, z, w;)

def one(a: f64, k: f64;) -> (f64;) = let y = tanh(k) in let z = a / y in (z;)

def other(a: f64, k: f64;) -> (f64;) = let y = log(k) in let z = a - y in (z;)

def f'vjp(x: f64, c: f64, live: bool;) -> (f64, f64;) =
  let (y: f64, t: tape;) = f'nl(x;) in
  let (g: f64, h: f64;) = f'lin't(t, c, live;) in
  let (;) = drop(y) in
  (g, h;)

def f(x: f64, c: f64;) -> (f64, f64;) = let live = true in f'vjp(x, c, live;)
"""


def test_what_is_made_of_cotangents_is_told_from_what_stands_beside_it():
    program = parse(COTANGENTS)
    agree_of(program, "f", (0.3, 0.7), None, None, (EXACT, NATIVE))
    free = sorted([show_leaf(e).partition("[")[0] for e in of_cotangents(program, "f")])
    assert free == ["a - y", "a / y", "abs(b)", "cond", "g + g2", "k * c", "less(e, c)", "scan",
                    "w * y"]  # fmt: skip


def test_only_what_calculates_with_cotangents_is_rounded_otherwise():
    def compensated(x):  # Kahan's sum, of which nothing may be put in another order
        total, lost = 0.0, 0.0
        for i in range(40):
            y = x[i] * x[i] - lost
            t = total + y
            lost = (t - total) - y
            total = t
        return total

    x = np.random.default_rng(0).normal(size=40)
    program, name, values = program_of(lineara.value_and_grad(compensated), x)
    text = lowered(program, name, True, False).text
    assert "reassoc nsz contract" in text
    expected = run(program, name, *values, engine="interpreter").results
    ours = run(program, name, *values, engine=NATIVE).results
    assert bits(ours[:1]) == bits(expected[:1])
    assert "contract" not in lowered(program, name, True, True).text
    assert "contract" not in lowered(program, name, False, False).text
    value, name, _ = program_of(compensated, x)
    assert not of_cotangents(value, name)
    assert "contract" not in lowered(value, name, True, False).text


def test_lines_of_arrays_are_rounded_as_they_are_written():
    weights = np.linspace(0.1, 1.0, 40)

    def lines(x):
        return np.sum(np.cumsum(np.cumsum(x) * weights))

    def lines_after_numbers(x):
        s = np.sum(np.sin(x) * x)
        return np.sin(s) * s

    for f, free in ((lines, 0), (lines_after_numbers, 4)):
        assert text_of_all(f, weights).count("contract double") == free
        agree(lineara.grad(f), weights)


def test_a_compensated_sum_of_gradients_keeps_its_order():
    def g(x):
        return np.sum(x * x * x)

    def summed(x):
        total, lost = np.zeros(7), np.zeros(7)
        for i in range(20):
            y = lineara.grad(g)(x * (1.0 + i)) - lost
            t = total + y
            lost = (t - total) - y
            total = t
        return total, lost

    x = np.random.default_rng(0).normal(size=7)
    program, name, values = program_of(summed, x)
    expected = run(program, name, *values, engine="interpreter").results
    ours = run(program, name, *values, engine=NATIVE).results
    assert np.allclose(ours[0], expected[0], rtol=1e-15, atol=0)
    assert np.any(ours[1] != 0)  # what each sum has lost


def test_a_factor_that_is_not_finite_is_noticed_after_the_loops():
    def rooted(x):
        total = 0.0
        for i in range(4):
            for j in range(4):
                y = np.sqrt(x[i, j])
                total = total + np.where(x[i, j] > 0, y, 0.0)
        return total

    x = np.arange(16.0).reshape(4, 4) % 5
    f = lineara.jit(lineara.grad(rooted), engine="native")
    expected = lineara.grad(rooted)(x)
    assert np.isfinite(expected).all()
    assert np.array_equal(f(x), expected)
    assert np.array_equal(f(x + 1), lineara.grad(rooted)(x + 1))


def test_a_factor_that_is_not_finite_is_noticed_where_a_loop_carries_a_product():
    program = parse("""
type pair = <f64, f64>
def f'nl(x: f64;) -> (f64, f64;) = let y = sqrt(x) in let k = 0.5 / y in (y, k;)
def back(k: f64, live: bool, p: pair;) -> (pair;) =
  let <a: f64, b: f64> = p in
  let none = 0.0 in
  let factor = live_factor(live, k, none) in
  let c = factor * a in
  let q: pair = <c, b> in
  (q;)
def f'lin't(k: f64, c: f64, live: bool;) -> (f64;) =
  let p: pair = <c, c> in
  let q: pair = scan[back, 3, fwd, 2, 1, 0](k, live, p;) in
  let <a: f64, b: f64> = q in
  let s = a + b in
  (s;)
def f'vjp(x: f64, c: f64, live: bool;) -> (f64;) =
  let (y: f64, k: f64;) = f'nl(x;) in
  let g: f64 = f'lin't(k, c, live;) in
  let (;) = drop(y) in
  (g;)
def f(x: f64, c: f64;) -> (f64;) =
  let live = greater(x, 0.0) in
  let g: f64 = f'vjp(x, c, live;) in
  (g;)
""")
    with np.errstate(divide="ignore"):
        for x in (0.0, 0.7):
            ours, theirs = [
                run(program, "f", x, 0.7, engine=e).results for e in (NATIVE, "interpreter")
            ]
            assert ours == pytest.approx(theirs, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e150, 1e300])
def test_sums_of_factors_that_are_too_large_are_done_again(scale):
    def grown(x):
        y = 1e-9
        for i in range(3):
            y = x[i] * y + scale * y
        return y

    x = np.array([0.5, 0.25, 0.125]) * scale
    f = lineara.jit(lineara.grad(grown), engine="native")
    with np.errstate(all="ignore"):
        expected = lineara.jit(lineara.grad(grown), engine="interpreter")(x)
        assert np.allclose(f(x), expected, rtol=1e-13, atol=0, equal_nan=True)

"""A derivative costs a constant times the value: arrays in loops are threaded, never copied.

Work and bytes are counted by the evaluator at n and 4 n; the slope is that of log work over log n.
"""

import math
import random

import numpy as np
import pytest

from lineara.engines import run
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad, vjp
from lineara.passes.jvp import jvp
from lineara.passes.rules_in_text import custom_jvp

SCAN = """
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let (i2: i64, s2: f64;) = scan[round, N, fwd, 1, 2, 0](x, i, s;) in
  let (;) = drop(i2) in
  s2
"""
COUNT = "let one: i64 = 1_i64 in let j: i64 = i + one in"
PROGRAMS = {
    "read": f"""
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = sin(a) in
  let t = b * s in
  let u = s + t in
  {COUNT}
  (j, u;)
{SCAN}""",
    "branch": f"""
def yes(x: f64[N], i: i64, s: f64;) -> (f64;) =
  let a = index[at=(i,)](x) in let b = sin(a) in b * s
def no(x: f64[N], i: i64, s: f64;) -> (f64;) =
  let (;) = drop((x, i;)) in let k = 0.5 in k * s
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let one_: f64 = 1.0 in
  let c = less(s, one_) in
  let t = cond[yes, no](c, x, i, s;) in
  let u = s + t in
  {COUNT}
  (j, u;)
{SCAN}""",
    "nested loop": f"""
def inner(x: f64[N], i: i64, k: i64, t: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = index[at=(k,)](x) in
  let p = a * b in
  let q = t + p in
  let one: i64 = 1_i64 in
  let l: i64 = k + one in
  (l, q;)
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let k: i64 = 0_i64 in
  let (k2: i64, t: f64;) = scan[inner, 3, fwd, 2, 2, 0](x, i, k, s;) in
  let (;) = drop(k2) in
  let u = sin(t) in
  {COUNT}
  (j, u;)
{SCAN}""",
    "call": f"""
def g(x: f64[N], i: i64;) -> (f64;) = let a = index[at=(i,)](x) in sin(a)
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = g(x, i;) in
  let t = a * s in
  let u = s + t in
  {COUNT}
  (j, u;)
{SCAN}""",
    "while": f"""
def p(x: f64[N], i: i64, s: f64;) -> (bool;) =
  let (;) = drop((x, s;)) in
  let n: i64 = N_i64 in
  less(i, n)
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = sin(a) in
  let t = b * s in
  let u = s + t in
  {COUNT}
  (j, u;)
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let (i2: i64, s2: f64;) = while[p, round, 1](x, i, s;) in
  let (;) = drop(i2) in
  s2
""",
    "fill": f"""
def round(x: f64[N], i: i64, y: f64[N];) -> (i64, f64[N];) =
  {COUNT}
  let a = index[at=(i,)](y) in
  let k = 0.9 in
  let b = k * a in
  let c = index[at=(j,)](x) in
  let d = c * a in
  let e = b + d in
  let z = put[j](y, e) in
  (j, z;)
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let y: f64[N] = zeros[f64[N]] in
  let end: i64 = 0_i64 in
  let first = index[at=(end,)](x) in
  let y0 = put[end](y, first) in
  let (i2: i64, y2: f64[N];) = scan[round, N_1, fwd, 1, 2, 0](x, i, y0;) in
  let (;) = drop(i2) in
  sum[axis=(0,), keepdims=false](y2)
""",
    "two arrays": f"""
def round(x: f64[N], z: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in
  let b = index[at=(i,)](z) in
  let p = a * b in
  let t = p * s in
  let u = s + t in
  {COUNT}
  (j, u;)
def f(x: f64[N], z: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let (i2: i64, s2: f64;) = scan[round, N, fwd, 2, 2, 0](x, z, i, s;) in
  let (;) = drop(i2) in
  s2
""",
}


def rounds(round_, helpers=""):
    """The loop over a round that gives u from x, i and s."""
    return f"""
{helpers}
def round(x: f64[N], i: i64, s: f64;) -> (i64, f64;) =
  {round_}
  {COUNT}
  (j, u;)
{SCAN}"""


ONE = "let a = index[at=(i,)](x) in"
PAIR = "def g(x: f64[N], y: f64[N], i: i64;) -> (f64;) = let a = index[at=(i,)](x) in "
PAIR += "let b = index[at=(i,)](y) in let c = a * b in sin(c)"
READ = "def g(x: f64[N], i: i64;) -> (f64;) = let a = index[at=(i,)](x) in sin(a)"
PROGRAMS |= {
    "one array twice": rounds("let a = g(x, x, i;) in let u = a + s in", PAIR),
    "one array twice, last": rounds(
        "let a = h(x, i;) in let u = a + s in",
        PAIR + "def h(x: f64[N], i: i64;) -> (f64;) = let y = x in g(x, y, i;)",
    ),
    "another name": rounds(
        f"let y = x in let b = index[at=(i,)](y) in {ONE} let c = a * b in let u = s + c in"
    ),
    "a block": rounds(f"let t: f64 = {{ {ONE} let b = sin(a) in b * s }} in let u = s + t in"),
    "a drop": rounds(f"let (;) = drop({{ {ONE} sin(a) }}) in {ONE} let u = s + a in"),
    "reshape": rounds(
        "let z = reshape[shape=(Q,4)](x) in let q: i64 = 4_i64 in "
        "let r = floor_divide(i, q) in "
        "let a = index[at=(r, 0)](z) in let b = sin(a) in let u = s + b in"
    ),
    "reshape and transpose": rounds(
        "let z = reshape[shape=(Q,4)](x) in let w = permute_dims[axes=(1, 0)](z) in "
        "let q: i64 = 4_i64 in let r = floor_divide(i, q) in "
        "let a = index[at=(0, r)](w) in let b = g(w, r;) in let c = a * b in let u = s + c in",
        "def g(w: f64[4,Q], r: i64;) -> (f64;) = let a = index[at=(1, r)](w) in sin(a)",
    ),
    "tuple": rounds(
        "let one_: f64 = 2.0 in let t = <x, one_> in let a = g(t, i;) in "
        "let <y, k> = t in let b = index[at=(i,)](y) in let c = a * b in "
        "let d = c * k in let u = s + d in",
        "def g(t: <f64[N], f64>, i: i64;) -> (f64;) = let <y, k> = t in "
        "let a = index[at=(i,)](y) in a * k",
    ),
    "record": """
def g(t: {a: f64[N], b: <f64[N], f64>}, i: i64;) -> (f64;) =
  let <y, z> = t in
  let <v, k> = z in
  let a = index[at=(i,)](y) in let b = index[at=(i,)](v) in let c = a * b in c * k
def round(t: {a: f64[N], b: <f64[N], f64>}, i: i64, s: f64;) -> (i64, f64;) =
  let a = g(t, i;) in
  let <y, z> = t in
  let (;) = drop(z) in
  let b = index[at=(i,)](y) in
  let c = a * b in
  let u = s + c in
  let one: i64 = 1_i64 in let j: i64 = i + one in
  (j, u;)
def f(x: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 1.0 in
  let y: f64[N] = x + x in
  let z = <y, s> in
  let t: {a: f64[N], b: <f64[N], f64>} = {a: x, b: z} in
  let (i2: i64, s2: f64;) = scan[round, N, fwd, 1, 2, 0](t, i, s;) in
  let (;) = drop(i2) in
  s2
""",
    "switch": rounds(
        "let q: i64 = 3_i64 in let r = remainder(i, q) in "
        "let t = switch[g, no, g](r, x, i;) in let u = s + t in",
        READ + " def no(x: f64[N], i: i64;) -> (f64;) = let (;) = drop((x, i;)) in 0.5",
    ),
    "recursion": """
def stop(x: f64[N], i: i64;) -> (f64;) = let a = index[at=(i,)](x) in sin(a)
def go(x: f64[N], i: i64;) -> (f64;) =
  let one: i64 = 1_i64 in
  let k = i - one in
  let r = f_(x, k;) in
  let a = index[at=(i,)](x) in
  let p = r * a in
  sin(p)
def f_(x: f64[N], i: i64;) -> (f64;) =
  let end: i64 = 0_i64 in
  let c = equal(i, end) in
  cond[stop, go](c, x, i;)
def f(x: f64[N];) -> (f64;) = let i: i64 = N_1_i64 in f_(x, i;)
""",
    "tree": """
def stop(x: f64[N], i: i64, k: i64;) -> (f64;) =
  let (;) = drop(k) in let a = index[at=(i,)](x) in sin(a)
def go(x: f64[N], i: i64, k: i64;) -> (f64;) =
  let two: i64 = 2_i64 in
  let h = floor_divide(k, two) in
  let j = i + h in
  let a = t(x, i, h;) in
  let b = t(x, j, h;) in
  a * b
def t(x: f64[N], i: i64, k: i64;) -> (f64;) =
  let one: i64 = 1_i64 in
  let c = equal(k, one) in
  cond[stop, go](c, x, i, k;)
def f(x: f64[N];) -> (f64;) = let i: i64 = 0_i64 in let k: i64 = N_i64 in t(x, i, k;)
""",
    "sized": rounds(
        "let q: i64 = 3_i64 in let a = sized[g, 0](q, x, i;) in let u = s + a in",
        "def g(m: i64, x: f64[N], i: i64;) -> (f64;) = let a = index[at=(i,)](x) in "
        "let b = broadcast_to[shape=(m,)](a) in sum[axis=(0,), keepdims=false](b)",
    ),
    "row": rounds(
        "let z = reshape[shape=(Q,4)](x) in let q: i64 = 4_i64 in "
        "let r = floor_divide(i, q) in let w: f64[4] = index[at=(r,)](z) in "
        "let a = index[at=(2,)](w) in let b = sin(a) in let u = s + b in"
    ),
    "a while loop in a loop": rounds(
        "let k: i64 = 0_i64 in let (k2: i64, t: f64;) = while[p, w, 2](x, i, k, s;) in "
        "let (;) = drop(k2) in let b = sin(t) in let u = b + s in",
        """
def p(x: f64[N], i: i64, k: i64, t: f64;) -> (bool;) =
  let (;) = drop((x, i, t;)) in let m: i64 = 3_i64 in less(k, m)
def w(x: f64[N], i: i64, k: i64, t: f64;) -> (i64, f64;) =
  let a = index[at=(i,)](x) in let b = index[at=(k,)](x) in let c = a * b in let d = t + c in
  let one: i64 = 1_i64 in let l = k + one in (l, d;)
""",
    ),
}


def numbered(text, n):
    """The text about arrays of n numbers."""
    text = text.replace("N_1", str(n - 1)).replace("N_i64", f"{n}_i64").replace("Q", str(n // 4))
    return text.replace("[N", f"[{n}").replace(", N,", f", {n},")


def measured(text, n, args):
    """The work, and the bytes written, of the value and of its derivatives of two orders."""
    program = check(parse(text))
    rng = np.random.default_rng(n)
    xs = [rng.uniform(0.1, 0.6, n) for _ in range(args)]
    ds = [rng.standard_normal(n) for _ in range(args)]
    first = check(grad(jvp(program, "f"), "f"))
    over = check(jvp(first, "f.grad"))
    back = check(vjp(first, "f.grad"))
    runs = {
        "value": run(program, "f", *xs),
        "jvp": run(first, "f.jvp", *xs, *ds),
        "gradient": run(first, "f.grad", *xs),
        "forward over reverse": run(over, "f.grad.jvp", *xs, *ds),
        "reverse over reverse": run(back, "f.grad.vjp", *xs, *ds),
    }
    (dy,), g = runs["jvp"].lresults, runs["gradient"].results
    assert dy == pytest.approx(sum(map(np.dot, g, ds)), rel=1e-9, abs=1e-12)
    forward, reverse = (runs[k].lresults for k in ("forward over reverse", "reverse over reverse"))
    for u, v in zip(forward, reverse, strict=True):  # a Hessian is symmetric
        np.testing.assert_allclose(u, v, rtol=1e-8, atol=1e-8)
    works = {what: found.work for what, found in runs.items()}
    return works | {f"{what}, bytes": found.written for what, found in runs.items()}


def number_of_arguments(text):
    """How many arrays f takes."""
    return text.split("def f(")[1].split(";")[0].count("f64[")


def linear(text):
    """The slopes that are more than 1.02, and more than that of the value."""
    small, large = (measured(numbered(text, n), n, number_of_arguments(text)) for n in (16, 64))
    slopes = {k: math.log(large[k] / small[k], 4) for k in small}
    return {
        k: s for k, s in slopes.items()
        if s > 0.02 + max(1.0, slopes["value, bytes" if "bytes" in k else "value"])
    }  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_and_bytes_of_every_order_are_linear_in_the_number_of_rounds(name):
    assert linear(PROGRAMS[name]) == {}


# --- rounds at random -----------------------------------------------------------------------------


class Rounds:
    """A loop whose rounds read and write arrays in ways that are drawn."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.defs = []
        self.count = 0

    def name(self, like):
        self.count += 1
        return f"{like}_{self.count}"

    def text(self):
        body, (y, t) = self.body(self.rng.randint(3, 6), 2)
        return "\n".join(
            [
                *self.defs,
                f"""
def round(x: f64[N], z: f64[N], i: i64, y: f64[N], s: f64;) -> (i64, f64[N], f64;) =
  let (;) = drop((x, z;)) in
  {body}
  let half = 0.5 in
  let s_ = half * s in
  let u_ = sin({t}) in
  let u = s_ + u_ in
  {COUNT}
  (j, {y}, u;)
def f(x: f64[N], z: f64[N];) -> (f64;) =
  let i: i64 = 0_i64 in
  let s: f64 = 0.3 in
  let y = sin(z) in
  let (i2: i64, y2: f64[N], s2: f64;) = scan[round, N, fwd, 2, 3, 0](x, z, i, y, s;) in
  let (;) = drop(i2) in
  let r = sum[axis=(0,), keepdims=false](y2) in
  r * s2
""",
            ]
        )

    def body(self, steps, depth):
        """Lines over x, z, i, y, s, and the names of the array that is written and a number."""
        lines, numbers, y = [], ["s"], "y"
        for _ in range(steps):
            ways = [self.read, self.read, self.view, self.twice, self.put, self.dropped]
            ways += [self.call, self.branch, self.loop, self.record] if depth else []
            line, t, y = self.rng.choice(ways)(y, self.rng.choice(numbers), depth)
            lines.append(line)
            numbers += [t] if t else []
        while len(numbers) > 1:
            a, b = numbers.pop(), numbers.pop()
            c = self.name("c")
            lines.append(f"let {c} = {a} {self.rng.choice('*+')} {b} in")
            numbers.append(c)
        return "\n  ".join(lines), (y, numbers[0])

    def array(self, y):
        return self.rng.choice(["x", "z", y])

    def read(self, y, t, depth):
        a = self.name("a")
        return f"let {a} = index[at=(i,)]({self.array(y)}) in", a, y

    def view(self, y, t, depth):
        v, w, q, r, a = map(self.name, "vwqra")
        line = f"let {v} = reshape[shape=(Q,4)]({self.array(y)}) in let {q}: i64 = 4_i64 in "
        line += f"let {r} = floor_divide(i, {q}) in "
        if self.rng.random() < 0.5:
            return line + f"let {a} = index[at=({r}, 1)]({v}) in", a, y
        line += f"let {w} = permute_dims[axes=(1, 0)]({v}) in "
        return line + f"let {a} = index[at=(2, {r})]({w}) in", a, y

    def twice(self, y, t, depth):
        x, a, b, c = map(self.name, "xabc")
        line = f"let {x} = {self.array(y)} in let {a} = index[at=(i,)]({x}) in "
        return line + f"let {b} = {a} * {t} in let {c} = sin({b}) in", c, y

    def put(self, y, t, depth):
        y2, b = self.name("y"), self.name("b")
        return f"let {b} = sin({t}) in let {y2} = put[i]({y}, {b}) in", None, y2

    def dropped(self, y, t, depth):
        a = self.name("a")
        return (
            f"let (;) = drop({{ let {a} = index[at=(i,)]({self.array(y)}) in {a} * {t} }}) in",
            None,
            y,
        )

    def helper(self, depth):
        """A definition on three arrays, of which it writes one."""
        f = self.name("h")
        body, (y, t) = self.body(self.rng.randint(1, 3), depth - 1)
        self.defs.append(
            f"def {f}(x: f64[N], z: f64[N], i: i64, y: f64[N], s: f64;) -> (f64[N], f64;) =\n"
            f"  let (;) = drop((x, z, i, s;)) in\n  {body}\n  let t_ = sin({t}) in ({y}, t_;)"
        )
        return f

    def call(self, y, t, depth):
        y2, b, f = self.name("y"), self.name("b"), self.helper(depth)
        x, z = self.rng.choice(["x", "z"]), self.rng.choice(["x", "z"])
        return f"let ({y2}, {b};) = {f}({x}, {z}, i, {y}, {t};) in", b, y2

    def branch(self, y, t, depth):
        y2, b, p, k = map(self.name, ("y", "b", "p", "k"))
        f, g = self.helper(depth), self.helper(depth)
        x = self.rng.choice(["x", "z"])
        line = f"let {k} = 0.4 in let {p} = less({t}, {k}) in "
        return line + f"let ({y2}, {b};) = cond[{f}, {g}]({p}, {x}, z, i, {y}, {t};) in", b, y2

    def loop(self, y, t, depth):
        y2, b, f = self.name("y"), self.name("b"), self.helper(depth)
        x = self.rng.choice(["x", "z"])
        line = f"let ({y2}, {b};) = scan[{f}, 2, fwd, 3, 2, 0]({x}, z, i, {y}, {t};) in"
        return line, b, y2

    def record(self, y, t, depth):
        f, p, b, v, w = map(self.name, ("r", "p", "b", "v", "w"))
        x = self.rng.choice(["x", "z"])
        kind = "{a: f64[N], b: f64}"
        self.defs.append(
            f"def {f}(p: {kind}, i: i64;) -> (f64;) = let <v, w> = p in "
            "let a = index[at=(i,)](v) in let b = a * w in sin(b)"
        )
        a = self.name("a")
        line = f"let {p}: {kind} = {{a: {x}, b: {t}}} in let {b} = {f}({p}, i;) in "
        line += f"let <{v}, {w}> = {p} in let {a} = index[at=(i,)]({v}) in let {p}_ = {a} * {w} in "
        return line + f"let {b}_ = {p}_ + {b} in", f"{b}_", y


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.slow("counts the work of random rounds at two sizes: 16 s")
def test_work_and_bytes_of_random_rounds_are_linear_in_their_number(seed):
    assert linear(Rounds(seed).text()) == {}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_both_orders_are_those_of_differences(name):
    n = 8
    program = check(parse(numbered(PROGRAMS[name], n)))
    rng = np.random.default_rng(1)
    xs = [rng.uniform(0.2, 0.9, n) for _ in range(number_of_arguments(PROGRAMS[name]))]
    first = check(grad(program, "f"))
    (*g,) = run(first, "f.grad", *xs).results
    second = check(vjp(first, "f.grad"))
    cs = [rng.standard_normal(n) for _ in g]
    h = run(second, "f.grad.vjp", *xs, *cs).lresults
    for k in range(len(xs)):
        for i in range(n):
            e = np.zeros(n)
            e[i] = 1e-5
            moved = [[x + s * e * (j == k) for j, x in enumerate(xs)] for s in (1, -1)]
            up, down = (run(program, "f", *at).results[0] for at in moved)
            assert g[k][i] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-8)
            up, down = (sum(map(np.dot, run(first, "f.grad", *at).results, cs)) for at in moved)
            assert h[k][i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-7)


def test_a_rule_of_the_users_is_served_where_arrays_are_threaded():
    call = "let a = index[at=(i,)](x) in let b = index[at=(i,)](y) in"
    text = f"""
def g(x: f64[8], y: f64[8], i: i64;) -> (f64;) = {call} a * b
def rule(x: f64[8], y: f64[8], i: i64; ~dx: f64[8], ~dy: f64[8]) -> (f64; f64) =
  {call}
  let (; ~p, ~u) = read[i](~dx) in
  let (; ~q, ~v) = read[i](~dy) in
  let (;) = drop((; ~u, ~v)) in
  let z = a * b in
  let ~c = b * ~p in
  let ~d = a * ~q in
  let ~e = ~c + ~d in
  (z; ~e)
def h(x: f64[8], y: f64[8], i: i64;) -> (f64;) =
  let (;) = drop(y) in let a = index[at=(i,)](x) in sin(a)
def round(x: f64[8], i: i64, s: f64;) -> (i64, f64;) =
  let k = 0.5 in
  let p = less(s, k) in
  let a = cond[g, h](p, x, x, i;) in
  let b = g(x, x, i;) in
  let c = a + b in
  let u = sin(c) in
  {COUNT}
  (j, u;)
{numbered(SCAN, 8)}"""
    program, x = check(parse(text)), np.linspace(0.2, 0.9, 8)
    (expected,) = run(grad(program, "f"), "f.grad", x).results
    ruled = check(grad(custom_jvp(program, "g", "rule"), "f"))
    np.testing.assert_allclose(run(ruled, "f.grad", x).results[0], expected, rtol=1e-12)
    assert "g.jvp.on0.as0'1" in ruled.defs  # in the branch; it calls g.jvp on copies
    assert "g.jvp.lin" in ruled.defs

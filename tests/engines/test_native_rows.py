"""Narrow rows: the same bits as through memory, the interpreter's values, and its errors."""

import itertools
import math

import numpy as np
import pytest

import lineara
from lineara.engines import run
from lineara.engines.native import Native, emitted, row_blocks, rows
from lineara.engines.native.lower import Lowered
from lineara.errors import ProgramError
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")

HARD = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e300, 5e-324]


class Random:
    """A function of narrow rows, which follows from a seed."""

    def __init__(self, seed: int, n: int) -> None:
        self.seed = seed
        self.n = n
        self.tables = 5 + seed % 7

    def __call__(self, x, w, table, at, pairs):
        rng = np.random.default_rng(self.seed)
        wide, thin = [x, x[:, 1:3], table[at]], [x[:, 0], w[0] * x[:, 3]]
        for _ in range(int(rng.integers(4, 14))):
            wide, thin = self.more(rng, wide, thin, w, table, at, pairs)
        out = np.zeros(np.shape(table))
        if rng.random() < 0.6:
            np.add.at(out, at, self.fitted(rng, wide, np.shape(table)[1]))
        total = np.sum(wide[-1]) + np.sum(thin[-1])
        kept = [wide[int(rng.integers(len(wide)))], thin[int(rng.integers(len(thin)))]]
        return total + np.sum(out * out), out, *kept

    def fitted(self, rng, wide, k):
        """So many columns."""
        y = self.one(rng, wide)
        have = np.shape(y)[1]
        return y[:, :k] if have >= k else np.concatenate([y] + [y[:, :1]] * (k - have), axis=1)

    def one(self, rng, values):
        return values[int(rng.integers(len(values)))]

    def more(self, rng, wide, thin, w, table, at, pairs):
        """One line more."""
        y, z, s, t = (
            self.one(rng, wide),
            self.one(rng, wide),
            self.one(rng, thin),
            self.one(rng, thin),
        )
        k = min(np.shape(y)[1], np.shape(z)[1])
        match int(rng.integers(22)):
            case 0:
                new = np.sin(y) * 0.5
            case 1:
                new = y[:, :k] * z[:, :k] + w[1]
            case 2:
                new = y / (2.0 + z[:, :1] * z[:, :1])
            case 3:
                new = np.concatenate([y, z[:, ::-1]], axis=1)[:, :5]
            case 4:
                new = np.stack([s, t, s * t], axis=1)
            case 5:
                new = y - np.max(y, axis=1)[:, None]
            case 6:
                new = np.where(y[:, :k] > z[:, -k:], y[:, :k], 0.25 * z[:, :k])
            case 7:
                a, b = self.fitted(rng, wide, 3), self.fitted(rng, wide, 3)
                new = np.cross(a, b)
            case 8:
                new = y.copy()
                new[:, -1] += s
            case 9:
                new = y.copy()
                new[:, : k // 2 + 1] = z[:, : k // 2 + 1] ** 2
            case 10:
                new = np.transpose(np.stack([s, t]) * 0.5)
            case 11:
                new = (y[:, :, None] * z[:, None, :2])[:, -1, :]
            case 12:
                new = (y[:, :2, None] - z[:, None, :2]).reshape(self.n, -1)
            case 13:
                new = table[at] * s[:, None]
            case 14:
                new = np.sum(table[pairs], axis=1)
            case 15:
                new = np.broadcast_to(w[:2], (self.n, 2)) * y[:, :1]
            case 16:
                return wide, [*thin, np.sum(y, axis=1)]
            case 17:
                return wide, [*thin, np.tanh(s) + y[:, -1]]
            case 18:
                return wide, [*thin, np.exp(-s * s) * t]
            case 19:
                return wide, [*thin, np.sqrt(np.sum(y * y, axis=1) + 0.5)]
            case 20:
                return wide, [*thin, np.min(y, axis=1) * np.abs(t)]
            case _:
                return wide, [*thin, table[at, 0] + s]
        return [*wide, new], thin

    def arguments(self, kind: str):
        """Arrays of a kind; some of the numbers may be hard."""
        rng = np.random.default_rng(self.seed + 1)
        x = rng.normal(size=(self.n, 4))
        if kind == "hard":
            places = rng.random(x.shape) < 0.05
            x[places] = rng.choice(HARD, places.sum())
        table = rng.normal(size=(self.tables, 3))
        at = rng.integers(-self.tables, self.tables, self.n)
        dtype = np.float32 if kind == "float32" else float
        floats = [a.astype(dtype) for a in (x, rng.normal(size=3), table)]
        return *floats, at, rng.integers(0, self.tables, (self.n, 2))


def total(f):
    return lambda *args: f(*args)[0]


def both(f):
    """Values, and the gradient of the first of them."""
    return f, lineara.value_and_grad(total(f), (0, 1, 2))


def bits(results):
    """What two results have in common if no bit is another; any NaN is as good as another one."""
    if isinstance(results, tuple | list):
        return [bits(v) for v in results]
    a = np.array(results)
    if a.dtype.kind == "f":
        a[a != a] = np.nan
    return a.shape, a.dtype.str, a.tobytes()


@pytest.fixture(autouse=True)
def _nothing_on_disk(monkeypatch):
    """What is on disk was made of the same program, with other sizes."""
    monkeypatch.setattr(emitted, "key_of", lambda *_: "")


def compiled(f, args):
    """The program, and the regions of narrow rows in its code."""
    p = lineara.jit(f).program(*args)
    engine = Native()
    code = engine.code(p.program, p.name)
    assert isinstance(code, Lowered), code
    told = [words for words, _ in code.fused if "narrow rows" in words]
    return p, engine, told


def check(f, args, monkeypatch, sums=0):
    """Code has the interpreter's values, and the bits of code that has no narrow rows.

    The first `sums` results may be sums of views, which through memory are in another order.
    """
    with np.errstate(all="ignore"):
        p, engine, told = compiled(f, args)
        values = p.operands(args)
        ours = run(p.program, p.name, *values, engine=engine).results
        expected = run(p.program, p.name, *values, engine="interpreter").results
        for a, b in zip(ours, expected, strict=True):
            assert np.shape(a) == np.shape(b)
            size = 1e-9 if args[0].dtype == float else 1e-3
            assert np.allclose(a, b, rtol=size, atol=size, equal_nan=True)  # sums have an order
        with monkeypatch.context() as patch:
            patch.setattr(rows, "MANY", math.inf)
            p, engine, none = compiled(f, args)  # a program keeps the code that it has
            assert not none
            through_memory = run(p.program, p.name, *values, engine=engine).results
    assert bits(ours[sums:]) == bits(through_memory[sums:])
    for words in told:  # less than two blocks are one
        n = int(words.partition(" over ")[2].split()[0].replace(",", ""))
        assert ("at a time" in words) == (n >= 2 * row_blocks.BLOCK)
    return told


@pytest.mark.parametrize("kind", ["float64", "hard", "float32"])
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("way", [0, 1], ids=["values", "gradient"])
def test_random_rows_have_the_interpreters_values(kind, seed, way, monkeypatch):
    monkeypatch.setattr(rows, "MANY", 20)
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    monkeypatch.setattr(row_blocks, "FAR", (0, row_blocks.FAR)[seed % 2])
    f = Random(seed, (131, 64, 257, 20, 100, 200)[seed % 6])
    assert check(both(f)[way], f.arguments(kind), monkeypatch, sums=1)


# --- which lines ----------------------------------------------------------------------------------

N = 131
ROWS = np.linspace(-1.0, 1.0, 4 * N).reshape(N, 4)
CONSTANTS = np.linspace(-2.0, 2.0, 21).reshape(7, 3)
PICKED = np.arange(N) * 5 % 7 - 3


def written(y, part, value, adds):
    """A copy, a part of which was written."""
    new = y.copy()
    if adds:
        new[part] += value
    else:
        new[part] = value
    return new


def scattered(at, rows):
    out = np.zeros((7, 3))
    np.add.at(out, at, rows)
    return out


LINES = {  # of y and z, which other lines make: (131, 4) and (131, 3)
    "columns": lambda y, z, *_: y[:, 1:3],
    "a column": lambda y, z, *_: y[:, -1],
    "columns backwards": lambda y, z, *_: y[..., ::-1],
    "an axis more": lambda y, z, *_: y[:, None, :2] * z[:, :, None],
    "axes exchanged": lambda y, z, *_: y.T + z[:, 0],
    "another shape": lambda y, z, *_: y.reshape(N, 2, 2)[:, 1],
    "shapes after a transpose": lambda y, z, *_: y.T.reshape(2, 2, N)[0],
    "stacked": lambda y, z, *_: np.stack([y[:, 0], z[:, 1], y[:, 3]], axis=1),
    "stacked in front": lambda y, z, *_: np.stack([y[:, 0], z[:, 1]]),
    "joined": lambda y, z, *_: np.concatenate([y, z], axis=1),
    "joined of two kinds": lambda y, z, *_: np.concatenate([y > 0, z], axis=1),
    "broadcast": lambda y, z, w, *_: np.broadcast_to(w, (N, 3)) * y[:, :1],
    "a sum in a row": lambda y, z, *_: np.sum(y, axis=1),
    "a sum of two axes": lambda y, z, *_: np.sum(y.reshape(N, 2, 2), axis=(1, 2)),
    "a largest one": lambda y, z, *_: np.max(y, axis=1) - np.min(z, axis=1),
    "a sum of whole numbers": lambda y, z, w, t, a, p: np.sum(p * 3 - 1, axis=1) * y[:, 0],
    "added in place": lambda y, z, *_: written(y, np.s_[:, 1:3], z[:, :2], True),
    "put": lambda y, z, *_: written(y, np.s_[:, -1], z[:, 1], False),
    "a choice": lambda y, z, *_: np.where(y[:, :3] > z, y[:, 1:], 0.25 * z),
    "a function of two": lambda y, z, *_: np.arctan2(y[:, :3], z),
    "a function of a number": lambda y, z, w, *_: np.hypot(y, w[0]),
    "a function after another": lambda y, z, *_: np.exp(-(np.sin(y) ** 2)) / (1 + np.exp(y)),
    "a cross product": lambda y, z, *_: np.cross(y[:, 1:], z),
    "rows of a table": lambda y, z, w, t, a, p: t[a] * z,
    "rows of a constant": lambda y, z, w, t, a, p: CONSTANTS[a] * z,
    "a constant's places": lambda y, z, w, t, a, p: t[PICKED] * z,
    "a place of rows": lambda y, z, w, t, a, p: t[a, 1] + y[:, 0],
    "two rows each": lambda y, z, w, t, a, p: np.sum(t[p], axis=1) * z,
    "rows of the text": lambda y, z, *_: y * ROWS,
    "truth": lambda y, z, *_: (y[:, :3] > 0.1) & ~(z < y[:, 1:]),
}
OTHERS = {  # what is in part no line
    "two tables": lambda y, z, w, t, a, p: t[a] * z + (t * 0.5)[a],
    "wide": lambda y, z, *_: (y[:, :, None] * np.concatenate([y, z], axis=1)[:, None])[:, -1],
    "numbers without rows": lambda y, z, w, t, *_: z * np.sum(t[:, :, None] * w, axis=(0, 1)),
    "a table without rows": lambda y, z, w, t, *_: z * (t * w)[-1] + np.concatenate([t, t])[3],
    "whole numbers in a row": lambda y, z, w, t, a, p: np.max(p * 3, axis=1) * y[:, 0],
    "rows backwards": lambda y, z, *_: y[::-1, :3] * z,
    "some rows": lambda y, z, *_: y[1:, :3] * z[:-1] + y[0, 0],
    "rows joined": lambda y, z, *_: np.concatenate([y[:, :3], z]) * 2.0,
    "rows folded into rows": lambda y, z, *_: (y * 2.0).reshape(2 * N, 2)[:N],
    "some rows written": lambda y, z, *_: written(y, np.s_[3:, :3], z[3:], False),
    "added at positions": lambda y, z, w, t, a, p: scattered(a, z * 2.0),
    "added twice": lambda y, z, w, t, a, p: scattered(a, z + t[a]) + scattered(a, t[a] * 2.0),
    "a sum over rows": lambda y, z, *_: np.sum(y * 2.0, axis=0),
    "extrema over rows": lambda y, z, *_: np.max(y, axis=0)[:3] - np.min(z * 2.0, axis=0),
    "a matrix": lambda y, z, w, *_: y @ np.outer(ROWS[5], w),
    "places in a table": lambda y, z, *_: np.searchsorted(ROWS[:, 0], y)[:, 1] * z[:, 0],
    "columns and rows": lambda y, z, *_: np.where(y[:, 0] > 0.1, y[:, :1], z[:, 1:2])[:, :3],
}


def of_lines(line):
    def f(x, w, table, at, pairs):
        return line(x[:, ::-1] * w[0] + 0.5, x[:, 1:] - w, w, table, at, pairs) * 2.0

    return f


@pytest.mark.parametrize("kind", ["hard", "float32"])
@pytest.mark.parametrize("line", [*LINES, *OTHERS])
def test_each_line_of_rows_is_in_one_region_with_those_around_it(line, kind, monkeypatch):
    monkeypatch.setattr(rows, "MANY", 20)
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    f = of_lines({**LINES, **OTHERS}[line])
    told = check(f, Random(2, N).arguments(kind), monkeypatch)
    if line in LINES and kind == "hard":
        assert len(told) == 1
        assert len(told[0].partition("stored: ")[2].split(", ")) == 1


def test_what_is_added_where_rows_were_read_lies_in_no_memory(monkeypatch):
    """Terms of a sum at positions are numbers of a row, as what is read there is."""
    monkeypatch.setattr(rows, "MANY", 20)
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    f = of_lines(lambda y, z, w, t, a, p: scattered(a, z + t[a]))
    args = Random(2, N).arguments("float64")
    assert len(check(f, args, monkeypatch)) == 1
    p, engine, _ = compiled(f, args)
    assert engine.code(p.program, p.name).workspace == 0


@pytest.mark.parametrize(
    ("axis", "keepdims"), [(0, False), (0, True), (None, True), ((0, 2), False)]
)
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_sums_over_rows_have_the_bits_of_those_through_memory(
    axis, keepdims, columns, kind, monkeypatch
):
    def f(x, w, table, at, pairs):
        y = x[:, 4 - columns :] * w[0] + 0.5
        return np.sum(np.stack([y, y * y], axis=1), axis=axis, keepdims=keepdims)

    monkeypatch.setattr(rows, "MANY", 20)
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    assert check(f, Random(2, 1000).arguments(kind), monkeypatch)


def after_a_branch(x, w, table, at, pairs):
    if w[0] > 0.0:
        y, z = x * 2.0, x[:, 1:] + 1.0
    else:
        y, z = x + w[1], x[:, 1:] * 3.0
    return np.sin(y[:, ::-1][:, :3] * z) + w


REGIONS = {  # how many regions there are, which begin where something moves and leave reads alone
    "numbers at positions": (1, lambda x, w, t, a, p: (t[a, 1] * x[:, 0] + 1.0) * t[a, 0]),
    "numbers of a line at positions": (1, lambda x, w, t, a, p: (t[:, 1] * 2.0)[a] ** 2 + 1.0),
    "after a branch": (3, after_a_branch),
    "what is read is folded": (0, lambda x, *_: x[:, 1:].sum(axis=0) * x[:, 1:].max(axis=0)),
    "parts of rows, backwards": (1, lineara.grad(lambda x, *_: np.sum(x[:, 1:3] * x[:, :2] ** 2))),
    "nothing moves": (0, lambda x, w, *_: (x * w[0] + 1.0) / (2.0 + x * x)),
}


@pytest.mark.parametrize("name", REGIONS)
def test_where_regions_begin(name, monkeypatch):
    monkeypatch.setattr(rows, "MANY", 20)
    monkeypatch.setattr(row_blocks, "BLOCK", 64)
    count, f = REGIONS[name]
    told = check(lambda *args: [f(*args)], Random(2, N).arguments("hard"), monkeypatch)
    assert len(told) == count
    assert not told or len(told[-1].partition("stored: ")[2].split(", ")) == 1


@pytest.mark.parametrize(("n", "regions"), [(5, 1), (6, 2)])
def test_a_table_of_more_numbers_than_a_narrow_row_has_is_no_line(n, regions, monkeypatch):
    def f(x, w, *_):
        y = x[:, 3:0:-1] * w
        return [y[:, ::-1] + y * np.stack([w] * n)[2]]

    monkeypatch.setattr(rows, "MANY", 20)
    assert len(check(f, Random(2, N).arguments("hard"), monkeypatch)) == regions


UNPACKED = """
def f(x: f64[300,3], w: f64;) -> (f64[300,2];) =
  let y: f64[300,3] = x * w in
  let t: <f64[300,3]> = <x> in let <z: f64[300,3]> = t in
  let a: f64[300,2] = index[at=(:, 1:)](y) in let b: f64[300,2] = index[at=(:, :2)](z) in
  let c: f64[300,2] = a * b in (c;)
"""


def test_what_is_taken_apart_between_lines_of_rows_is_none_of_them():
    x = np.arange(900.0).reshape(300, 3)
    program, engine = parse(UNPACKED), Native()
    (y,) = run(program, "f", x, 0.5, engine=engine).results
    np.testing.assert_array_equal(y, 0.5 * x[:, 1:] * x[:, :2])
    assert "narrow rows" in engine.code(program, "f").fused[0][0]


# --- positions that are not there -----------------------------------------------------------------


def outcome(f, args, engine):
    """The results, or the exception with what it says."""
    try:
        return bits(lineara.jit(f, engine=engine)(*args))
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", [])


def placed(x, table, at, more, i):
    """Rows at two arrays of positions, and between these a place that is a value."""
    y = table[at] * x
    z = y[:, ::-1] + x[i]
    return np.sum(table[more] * z * z[:, :1])


def placed_in_a_branch(x, table, at, more, i):
    """The same; the place is in a branch."""
    y = table[at] * x
    z = y[:, ::-1] + (x[i] if x[0, 0] < 9.0 else x[i + 1])
    return np.sum(table[more] * z * z[:, :1])


def placed_together(x, table, at, more, i):
    """Rows at two arrays of positions, and nothing between these."""
    return np.sum(table[at] * x * table[more][:, :1]) + x[0, 0] * i


@pytest.mark.parametrize("f", [placed, placed_in_a_branch, placed_together])
@pytest.mark.parametrize("derived", [lambda f: f, lambda f: lineara.grad(f, (0, 1))])
@pytest.mark.parametrize("first", [5, -5, 7, -8, 2**62, -(2**63)])
@pytest.mark.parametrize("block", [64, 512])
def test_the_first_position_that_is_not_there_is_told(f, derived, first, block, monkeypatch):
    """Also where that of another array, which is read later, is in an earlier block of rows."""
    monkeypatch.setattr(row_blocks, "BLOCK", block)
    rng = np.random.default_rng(0)
    x, table = rng.normal(size=(300, 3)), rng.normal(size=(7, 3))
    at, more = rng.integers(0, 7, (2, 300))
    at[211], f = first, derived(f)
    for more[3], i in itertools.product((0, 9), (-1, 300, 301)):
        args = x, table, at, more, i
        ours, expected = outcome(f, args, "native"), outcome(f, args, "interpreter")
        if not isinstance(expected[0], type):
            ours, expected = [[b[:2] for b in bits_of_each(o)] for o in (ours, expected)]
        assert ours == expected, (more[3], i)


@pytest.mark.parametrize(("far", "times"), [(2000, 4), (2001, 0)])
def test_what_lies_far_is_asked_for_before_it_is_read_or_added_to(far, times, monkeypatch):
    """Of an array of 2,000 bytes, with positions up to its ends, in blocks and in the rest."""
    monkeypatch.setattr(row_blocks, "FAR", far)
    monkeypatch.setattr(row_blocks, "BLOCK", 128)
    at = np.array([*range(-250, 250)] * 3)[:1419]

    def picked(x):
        return np.sum(np.sin(x[at]) * np.arange(1419.0))

    f = lineara.jit(lineara.grad(picked), engine="native")
    x = np.linspace(-1.0, 1.0, 250)
    expected = np.zeros(250)
    np.add.at(expected, at, np.cos(x[at]) * np.arange(1419.0))
    assert np.allclose(f(x), expected)
    text = str(lineara.stages(picked, x).machine_code)
    assert text.count('call void @"llvm.prefetch.p0"') == times


def test_a_block_that_may_fail_comes_before_positions_after_it():
    program = parse("""
        def f(x: f64[300,3], table: f64[7,3], more: i64[300], i: i64;) -> (f64[300,3];) =
          let y: f64[300,3] = index[at=(:, ::-1)](x) in
          let z: f64[3] = { let z: f64[3] = index[at=(i,)](x) in (z;) } in
          let z2: f64[300,3] = broadcast_to[shape=(300, 3)](z) in
          let w: f64[300,3] = index[at=more](table) in
          let w2: f64[300,3] = w * y in
          let w3: f64[300,3] = w2 + z2 in
          (w3;)
    """)
    rng = np.random.default_rng(0)
    args = rng.normal(size=(300, 3)), rng.normal(size=(7, 3)), np.full(300, 9), np.int64(300)
    for engine in (Native(), "interpreter"):
        with pytest.raises(ProgramError, match="index 300 is out of bounds for axis 0"):
            run(program, "f", *args, engine=engine)


def test_zeros_that_were_there_before_the_rows_are_still_there():
    program = parse("""
        def f(x: f64[300,3];) -> (f64[300,3], f64[300,3];) =
          let z: f64[300,3] = zeros[f64[300,3]] in
          let t: f64[3,300] = permute_dims[axes=(1, 0)](x) in
          let g: f64[3,3] = matmul(t, z) in
          let h: f64[3] = index[at=(0,)](g) in
          let h2: f64[300,3] = broadcast_to[shape=(300, 3)](h) in
          let y: f64[300,3] = x + h2 in
          let y2: f64[3,300] = permute_dims[axes=(1, 0)](y) in
          let w: f64[3,300] = y2 * y2 in
          let w2: f64[300,3] = permute_dims[axes=(1, 0)](w) in
          let v: f64[300,3] = z - w2 in
          (w2, v;)
    """)
    x, engine = np.arange(900.0).reshape(300, 3), Native()
    ours, theirs = [run(program, "f", x, engine=e).results for e in (engine, "interpreter")]
    assert [a.tolist() for a in ours] == [b.tolist() for b in theirs]
    assert "narrow rows" in engine.code(program, "f").fused[0][0]


def bits_of_each(results):
    return results if isinstance(results, list) else [results]


def test_rows_are_told():
    def reached(x, table, at):
        return np.sum(np.cross(x, table[at])[:, 1:], axis=1) * x[:, 0]

    rng = np.random.default_rng(0)
    args = rng.normal(size=(4000, 3)), rng.normal(size=(9, 3)), rng.integers(0, 9, 4000)
    f = lineara.jit(reached, engine="native")
    told = [s for s in lineara.explain(f, *args).machine_code if s.startswith("fused")]
    (words,) = told
    names, _, rest = words.removeprefix("fused: reached: ").partition(" over ")
    assert names.split(", ")[-3:] == ["v26", "v27", "v29"]  # v28 only reads
    assert rest == "4,000 narrow rows, 160 at a time; stored: v29"
    size = [s for s in lineara.explain(f, *args).machine_code if "workspace" in s]
    assert int(size[0].split()[2].replace(",", "")) < 100_000


def test_bundle_adjustment_is_one_region():
    """Both halves of the derivative meet, and no array of rows is stored."""
    rng = np.random.default_rng(0)
    n = 1000
    cameras, points = rng.normal(size=(5, 6)), rng.normal(size=(40, 3))
    of_camera, of_point = rng.integers(0, 5, n), rng.integers(0, 40, n)
    pixels = rng.normal(size=(n, 2))

    def bundle(cameras, points):
        c, x = cameras[of_camera], points[of_point]
        seen = x - c[:, 3:] + np.cross(c[:, :3], x) * np.sin(c[:, 0])[:, None]
        off = seen[:, :2] / (5.0 + seen[:, 2:] ** 2) - pixels
        return 0.5 * np.sum(off * off)

    f = lineara.jit(lineara.value_and_grad(bundle, (0, 1)), engine="native")
    told = [s for s in lineara.explain(f, cameras, points).machine_code if s.startswith("fused")]
    assert len(told) == 1
    stored = told[0].partition("stored: ")[2].split(", ")
    assert len(stored) == 2  # the gradients
    value, gradient = f(cameras, points)
    expected = lineara.value_and_grad(bundle, (0, 1))(cameras, points)
    assert np.allclose(value, expected[0])
    assert all([np.allclose(a, b) for a, b in zip(gradient, expected[1], strict=True)])

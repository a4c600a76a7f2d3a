"""Lines that are fused: the same bits as each line alone, in less memory, and told."""

import itertools
import math
import random
import re

import numpy as np
import pytest
from test_native_kinds import agree_of
from test_native_kinds import of as program_of

import lineara
from lineara.engines import run
from lineara.engines.native import Native, emitted, lower, regions
from lineara.engines.native.emit import Emitter
from lineara.engines.native.lower import Lowered, Lowering, lowered
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")

rng = np.random.default_rng(17)
EXACT, NATIVE = Native(exact=True), Native()


def agree(f, *args):
    """Exact code has the interpreter's bits, the other code is within the bound."""
    agree_of(*program_of(f, *args), None, None, (EXACT, Native()))


def logsumexp(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def rows(x, w):
    """Sums over rows, over columns and over all, with broadcasting both ways."""
    z = np.tanh(x + w) * w
    s = z - np.max(z, axis=1)[:, None]
    each = np.log(np.sum(np.exp(s), axis=1))
    columns = np.sum(s * s, axis=0) + np.min(s, axis=0)
    return each + np.sum(z), columns, np.where(x > w, s, 2.0)


def deep(x, w):
    """Three axes, of which the middle one is summed too; a reshape between lines."""
    y = x[:, None, :] - w[None, :, :]
    d = np.sum(y * y, axis=2)
    by_axis = np.sum(np.abs(y), axis=(0, 2)) + np.sum(y, axis=(0, 1))[0]
    return -0.5 * d, by_axis, (y / 3.0).reshape(x.shape[0], -1) + 1.0


def special(x):
    """What is infinite or no number, signs of zeros, and truth."""
    y = np.log(x) * 0.0
    big = np.isfinite(y) & (x > 0.5)
    return np.max(y), np.sum(big), np.where(big, -y, 1.0 / x), np.sign(x) * np.floor(x)


def turned(x, w):
    """Lines that read an array across."""
    y = x.T
    return np.sum(np.reshape(np.abs(y) * y + w[0, 0], (5, 203, 1)), axis=1), y * 2.0


def gradient(f):
    return lineara.grad(lambda *args: sum([np.sum(y * y) for y in f(*args)]), (0, 1))


X = rng.normal(size=(203, 5))
ODD = np.concatenate([rng.normal(size=200), [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, 0.5]])
CASES = {
    "logsumexp": (lineara.grad(logsumexp), (rng.normal(size=1003),)),
    "rows": (rows, (X, rng.normal(size=5))),
    "rows, gradient": (gradient(rows), (X, rng.normal(size=5))),
    "deep": (deep, (X, rng.normal(size=(4, 5)))),
    "deep, gradient": (gradient(deep), (X, rng.normal(size=(4, 5)))),
    "special": (special, (ODD,)),
    "one column": (
        lambda x, w: (np.sum(x[:, :1] * 2.0, axis=0), np.sum(w * 3.0, keepdims=True), w - 1.0),
        (X, rng.normal(size=203)),
    ),
    "turned": (turned, (X, X)),
    "places": (lambda x, w: (np.tanh(x * 2.0) - x, np.sqrt(np.abs(x)) * w[0]), (X, X[0])),
    "one number in all places": (
        lambda x: np.cumsum(np.broadcast_to(x[0], (207,)) * x + 1.0),
        (ODD,),
    ),
    "neighbours, gradient": (
        gradient(lambda x, w: (np.sin(x[1:-1] + w * (x[2:] - 2.0 * x[1:-1] + x[:-2])),)),
        (X, X[0]),
    ),
    "neighbours both ways, gradient": (
        gradient(lambda x, w: (x[1:, 1:] * x[:-1, :-1] - x[::-1, 1:][1:] * w[0],)),
        (X, X[0]),
    ),
    "parts of one array, gradient": (
        gradient(lambda x, w: (np.tanh(x[1:]) * x[:-1] + w[0], np.sin(x[:100]) * x[103:])),
        (X, X[0]),
    ),
    "differences, gradient": (
        gradient(lambda x, w: (np.tanh(x)[1:] - np.tanh(x)[:-1], np.tanh(x) * w)),
        (X, X),
    ),
    "read across": (lambda x, w: np.exp(x.T * 2.0) / (1.0 + w[:, None]), (X, rng.normal(size=5))),
}


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch):
    """What is on disk was made of the same program, with other sizes."""
    monkeypatch.setattr(emitted, "key_of", lambda *_: "")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(regions, "BLOCK", 256)
    monkeypatch.setattr(regions, "BLOCKED", 512)


def bits(results):
    return [(np.asarray(y).dtype, np.asarray(y).tobytes()) for y in results]


def regions_and_results(case, engine):
    """Which lines an engine fuses, and the results."""
    f, args = case
    p = lineara.jit(f).program(*args)
    told = ()
    if isinstance(engine, Native):
        code = engine.code(p.program, p.name)
        assert isinstance(code, Lowered), code
        told = tuple([words for words, _ in code.fused])
    with np.errstate(all="ignore"):
        return told, run(p.program, p.name, *p.operands(args), engine=engine).results


@pytest.mark.parametrize("name", CASES)
def test_fused_lines_have_the_bits_of_lines_alone(name, small_blocks, monkeypatch):
    fused, y = regions_and_results(CASES[name], Native())
    monkeypatch.setattr(regions, "LEAST", math.inf)
    none, z = regions_and_results(CASES[name], Native())
    assert fused
    assert not none
    assert bits(y) == bits(z)


@pytest.mark.parametrize("name", ["logsumexp", "special", "places"])
def test_exact_code_that_is_fused_has_the_bits_of_the_interpreter(name, small_blocks):
    fused, y = regions_and_results(CASES[name], Native(exact=True))
    _, z = regions_and_results(CASES[name], "interpreter")
    assert fused
    assert bits(y) == bits(z)


@pytest.mark.parametrize("name", CASES)
def test_exact_code_is_refused_for_what_it_would_be_alone(name, monkeypatch):
    f, args = CASES[name]
    why = []
    for least in (32, math.inf):
        monkeypatch.setattr(regions, "LEAST", least)
        p = lineara.jit(f).program(*args)
        why.append(Native(exact=True).takes(p.program, p.name))
    assert why[0] == why[1]


def arrays_of_rows(f, args):
    """How many arrays of as many elements as the argument has the code stores."""
    p = lineara.jit(f).program(*args)
    code = lowered(p.program, *Native().key(p.program, p.name))
    sizes = re.findall(r"ptr noalias align 8 dereferenceable\((\d+)\) %s", code.text)
    return len([n for n in sizes if int(n) == args[0].nbytes])


def test_the_gradient_stores_fewer_arrays(monkeypatch):
    case = lineara.grad(logsumexp), (rng.normal(size=20_000),)
    fused = arrays_of_rows(*case)
    monkeypatch.setattr(regions, "LEAST", math.inf)
    assert (fused, arrays_of_rows(*case)) == (1, 2)  # exponentials, which become the result


def tangled(draw):
    """A function of two matrices whose lines read arrays across, in part and again later."""
    ways = {
        "across": lambda a, b: a.T + b,
        "back": lambda a, b: a[::-1] * b,
        "row": lambda a, b: a[0] - b,
        "column": lambda a, b: a * b[:, :1],
        "other row": lambda a, b: a - b[:, 2],
        "all": lambda a, b: a / (2.0 + np.abs(b[0, 0])),
        "called": lambda a, b: np.sin(a) + b,
        "alone": lambda a, b: np.maximum(a, 0.5 * b),
        "shape": lambda a, b: (a.reshape(-1) * 1.5).reshape(a.shape) - b,
        "chosen": lambda a, b: np.where(a > b, a, -b),
    }
    plan = [(draw.choice([*ways]), draw.random(), draw.random()) for _ in range(14)]

    def f(x, y):
        made = [x * 2.0, y + 1.0]
        for way, *which in plan:
            a, b = [made[-1 - int(w * w * min(len(made), 6))] for w in which]
            made.append(ways[way](a, b) / 3.0)
        return made[-1], made[-3], made[-2][0]

    return f


@pytest.mark.parametrize("i", range(12))
def test_lines_over_what_they_are_made_of_have_the_bits_of_lines_elsewhere(
    i, small_blocks, monkeypatch, request
):
    f = tangled(random.Random(f"{request.config.option.seed} {i}"))
    x, y = np.random.default_rng(i).normal(size=(2, 24, 24))
    cases = (f, (x, y)), (gradient(lambda *args: f(*args)[:2]), (x, y))
    over = [bits(regions_and_results(case, Native())[1]) for case in cases]
    assert over[0] == bits(regions_and_results(cases[0], "interpreter")[1])
    monkeypatch.setattr(Emitter, "is_left", lambda *_: False)
    assert over == [bits(regions_and_results(case, Native())[1]) for case in cases]


LATER = {
    "across": lambda x: (z := np.cumsum(x, axis=1)) + z.T,
    "across, in a region": lambda x: np.exp((z := np.cumsum(x, axis=1)) * 2.0) - z.T * z,
    "summed later": lambda x: ((z := np.cumsum(x, axis=1)) * 2.0 + 1.0, np.sum(z)),
    "called later": lambda x: ((z := np.cumsum(x, axis=1)) * 2.0 + 1.0, np.sum(np.sin(z))),
    "spread": lambda x: np.cumsum(x, axis=1)[0] * np.ones((40, 40)) * x,
    "kept": lambda x: ((z := np.cumsum(x, axis=1)) * 2.0, z.reshape(-1)),
}


@pytest.mark.parametrize("name", LATER)
def test_a_line_is_put_over_no_array_that_is_read_later(name, small_blocks, monkeypatch):
    case = LATER[name], (rng.normal(size=(40, 40)),)
    over = bits(regions_and_results(case, Native())[1])
    monkeypatch.setattr(Emitter, "is_left", lambda *_: False)
    assert over == bits(regions_and_results(case, Native())[1])


def test_a_line_is_put_over_what_it_is_made_of():
    x = rng.normal(size=20_000)
    assert arrays_of_rows(lambda x: np.sin(np.exp(x) * 2.0) * 3.0, (x,)) <= 2
    assert arrays_of_rows(lambda x: np.cumsum(np.cumsum(x) * 2.0), (x,)) == 2
    _, (y, z) = regions_and_results((lambda x: ((y := np.cumsum(x)) * 2.0, y), (x,)), Native())
    assert np.array_equal(y, 2.0 * np.cumsum(x))
    assert np.array_equal(z, np.cumsum(x))


def test_a_sum_that_is_known_is_not_added_up_again(monkeypatch):
    case = lineara.grad(logsumexp), (rng.normal(size=20_000),)
    told, (y,) = regions_and_results(case, Native())
    monkeypatch.setattr(lower, "cotangent_sums", lambda program, *_: program)
    more, (z,) = regions_and_results(case, Native())
    assert (len(told), len(more)) == (2, 3)
    assert np.allclose(y, z, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", [(40, 40), (33, 5), (1, 70)])
def test_cotangent_sums_are_those_of_their_axes(axis, keepdims, shape):
    def f(x):
        m = np.max(x, axis=axis, keepdims=True)
        s = np.sum(np.exp(x - m), axis=axis, keepdims=keepdims)
        return np.sum(np.log(s) * np.cos(np.arange(s.size)).reshape(s.shape))

    agree(lineara.grad(f), rng.normal(size=shape))


@pytest.mark.parametrize("spread", [(), (1,), (3,), (1, 1), (1, 3), (4, 1), (4, 3)])
def test_a_known_sum_is_scaled_by_what_is_the_same_along_its_axes(spread):
    x, c = rng.normal(size=(4, 3)), rng.normal(size=spread)
    steps = np.broadcast_to(c, x.shape).strides
    for axes, first, second in itertools.product(
        [(0,), (1,), (0, 1)], [True, False], [True, False]
    ):
        ends = [np.sum(x, axes, keepdims=k).shape for k in (first, second)]
        types = ["f64[" + ",".join(map(str, shape)) + "]" for shape in (*ends, spread)]
        p = parse(f"""
            def f(x: f64[4,3], c: {types[2]};) -> ({types[0]}, {types[1]};) =
              let s = sum[axis={axes}, keepdims={str(first).lower()}](x) in
              let b = broadcast_to[shape=(4, 3)](c) in
              let p = x * b in
              let t = sum[axis={axes}, keepdims={str(second).lower()}](p) in
              (s, t;)
        """)
        assert lower.cotangent_sums(p, "f", lambda e: False).defs["f"].body is p.defs["f"].body
        known = lower.cotangent_sums(p, "f", lambda e: True)
        leaves = ir.leaves(known.defs["f"].body)
        sums = [e for e in leaves if isinstance(e, ir.Prim) and e.name == "sum"]
        assert len(sums) == 1 + any([steps[i] for i in axes])
        s, t = run(known, "f", x, c, engine="interpreter").results
        assert (np.shape(s), np.shape(t)) == (*ends,)
        assert np.allclose(t, np.sum(x * c, axes, keepdims=second))


def test_a_known_sum_is_scaled_by_no_argument_of_the_factor():
    p = parse("""
        def f(x: f64[1,3], d: f64[1,3];) -> (f64[3], f64[3];) =
          let s = sum[axis=(0,), keepdims=false](x) in
          let c = sin(d) in
          let p = x * c in
          let t = sum[axis=(0,), keepdims=false](p) in
          (s, t;)
    """)
    d = np.array([[0.0, 1.0, 2.0]])
    known = lower.cotangent_sums(p, "f", lambda e: True)
    assert known.defs["f"].body is not p.defs["f"].body
    _, t = run(known, "f", np.ones((1, 3)), d, engine="interpreter").results
    assert np.array_equal(t, np.sin(d[0]))


@pytest.mark.parametrize("large", [1.0, 1e308])
def test_a_known_sum_that_is_infinite_is_in_doubt(large):
    def f(x):  # the sum is infinite, and its logarithm's cotangent zero
        a = large * x
        return np.log(np.sum(np.exp(x[0] - x) * a)) + np.sum(x[0] * a)

    x = np.linspace(1.0, 2.0, 50)
    g = lineara.jit(lineara.grad(f), engine="native")
    with np.errstate(all="ignore"):
        expected = lineara.jit(lineara.grad(f), engine="interpreter")(x)
        assert np.allclose(g(x), expected, rtol=1e-12, atol=0, equal_nan=True)


PRODUCTS = [
    ("einsum[subscripts='nki,kij->nkj']", "nki", "kij", "nkj"),
    ("einsum[subscripts='kij,nki->jnk']", "kij", "nki", "jnk"),
    ("einsum[subscripts='nn,nk->nk']", "nn", "nk", "nk"),
    ("einsum[subscripts='ab,cd->abcd']", "ab", "cd", "abcd"),
    ("matmul", "ij", "jk", "ik"),
]
LENGTHS = dict(zip("nkijabcd", (4, 3, 2, 5, 2, 3, 4, 1), strict=True))


def float_of(letters):
    return f"f64[{','.join([str(LENGTHS[c]) for c in letters])}]"


@pytest.mark.parametrize(("product", "first", "second", "out"), PRODUCTS)
def test_a_sum_comes_before_a_product_with_what_is_the_same_along_it(product, first, second, out):
    x, y = [rng.normal(size=[LENGTHS[c] for c in letters]) for letters in (first, second)]
    places = range(len(out))
    for axes in [a for n in range(1, len(out) + 1) for a in itertools.combinations(places, n)]:
        gone = {out[i] for i in axes}
        one = [gone.isdisjoint(of) for of in (first, second)]
        repeats = len({*(second if one[0] else first)}) < 2
        for keepdims, again in itertools.product([False, True], [False, True]):
            result = "".join(["d" if c in gone else c for c in out if keepdims or c not in gone])
            p = parse(
                f"""
                def f(x: {float_of(first)}, y: {float_of(second)}, k: f64;)
                    -> ({float_of(result)}, {float_of(out)};) =
                  let z: {float_of(out)} = {product}(x, y) in
                  let r: {float_of(out)} = reshape[shape={tuple([LENGTHS[c] for c in out])}](z) in
                  let p = r * k in
                  let s = sum[axis={axes}, keepdims={str(keepdims).lower()}](p) in
                  (s, {"z" if again else "w"};)
            """.replace("(s, w;)", f"let w = zeros[{float_of(out)}] in (s, w;)")
            )
            assert lower.cotangent_sums(p, "f", lambda e: False).defs["f"].body is p.defs["f"].body
            early = lower.cotangent_sums(p, "f", lambda e: True)
            s, _ = run(early, "f", x, y, -1.5, engine="interpreter").results
            expected, _ = run(p, "f", x, y, -1.5, engine="interpreter").results
            assert s.shape == expected.shape
            assert np.allclose(s, expected, rtol=1e-13)
            is_early = early.defs["f"].body is not p.defs["f"].body
            marked = [
                e
                for e in ir.leaves(early.defs["f"].body)
                if getattr(e, "name", "") == "live_factor"
            ]
            assert len(marked) == 3 * is_early  # the sum, what it is multiplied by, and k
            assert is_early == (any(one) and not again and not repeats), (axes, keepdims, again)


def test_a_sum_comes_before_no_product_that_is_infinite():
    def f(c, w):
        return np.sum(np.exp((X - c) @ w))

    g = lineara.jit(lineara.grad(f, (0, 1)), engine="native")
    for special in (np.inf, -np.inf, np.nan, 1e308):
        c, w = np.zeros(X.shape[1]), np.ones((X.shape[1], 3))
        w[1] = special, -special, 1.0
        with np.errstate(all="ignore"):
            expected = lineara.jit(lineara.grad(f, (0, 1)), engine="interpreter")(c, w)
            for ours, theirs in zip(g(c, w), expected, strict=True):
                assert np.allclose(ours, theirs, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(
    ("cotangents", "w"),
    [([1.0, -2.0], np.inf), ([1.0, -2.0], np.nan), ([1e308, 1e308], 0.1), ([np.inf, 1.0], 0.0)],
)
def test_a_run_in_which_one_factor_of_an_early_sum_is_not_finite_is_in_doubt(cotangents, w):
    x, g = np.zeros((2, 1)), np.array(cotangents)[:, None]

    def f(b, w):
        return np.sum(((x - b) @ w) * g)

    args = np.zeros(1), np.array([[w]])
    with np.errstate(all="ignore"):
        ours, theirs = [
            lineara.jit(lineara.grad(f), engine=engine)(*args)
            for engine in ("native", "interpreter")
        ]
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_the_product_that_a_sum_comes_before_is_not_made():
    def f(means, roots):
        y = np.einsum("kij,nkj->nki", roots, X[:, None, :] - means)
        return np.sum(np.tanh(y))

    args = rng.normal(size=(3, X.shape[1])), rng.normal(size=(3, X.shape[1], X.shape[1]))
    program, name, values = program_of(lineara.grad(f, (0, 1)), *args)
    agree_of(program, name, values, None, None, (EXACT, Native()))
    lines = lowered(program, name, True, False, listed=True).text.splitlines()
    made = [re.search(r"(f64\S+) = einsum", line) for line in lines]
    made = [m.group(1) for m in made if m is not None]
    assert made == ["f64[203,3,5]", "f64[3,5,5]", "f64[3,5]"]


def test_rows_are_normalised_in_one_region():
    def softmax(x):
        e = np.exp(x - np.max(x, axis=1)[:, None])
        return e / np.sum(e, axis=1)[:, None]

    told, (y,) = regions_and_results((softmax, (X,)), Native())
    assert len(told) == 1
    assert np.allclose(np.sum(y, axis=1), 1.0)


def test_a_region_is_told():
    f = lineara.jit(lambda x: np.sum(np.exp(x * 2.0) - 1.0), engine="native")
    (told,) = [s for s in lineara.explain(f, np.ones(20_000)).machine_code if "fused" in s]
    assert told == "fused: f: v, v2, v3, v4 over 20,000 rows, 800 at a time; stored: none"


SLICES = [(":40", 40), ("20:", 44), ("::-1", 64), ("1::2", 32), ("40:0:-1", 40), (":, 1:", 64)]


def random_additions(seed):
    """A program that adds lines to slices of arrays, which others read before and after."""
    r = random.Random(seed)
    width = r.choice([0, 0, 3])
    whole = "f64[64,3]" if width else "f64[64]"
    axes = "(0, 1)" if width else "(0,)"
    arrays, lines = ["x"], []
    for k in range(r.randint(2, 6)):
        at, n = r.choice(SLICES if width else SLICES[:-1])
        t = f"f64[{n},{width - (at == ':, 1:')}]" if width else f"f64[{n}]"
        target = r.choice(["zeros", "fresh", *arrays])
        if target in ("zeros", "fresh"):
            made = f"zeros[{whole}]" if target == "zeros" else f"sin({r.choice(arrays)})"
            lines.append(f"let t{k}: {whole} = {made} in")
            target = f"t{k}"
        source = r.choice(arrays)
        index = f"({at})" if "," in at else f"({at},)"
        lines.append(f"let a{k}: {t} = index[at={index}]({source}) in")
        lines.append(f"let b{k}: {t} = a{k} * c in")
        lines.append(f"let v{k}: {t} = b{k} - a{k} in")
        if r.random() < 0.3:
            lines.append(f"let n{k}: {whole} = {target} * c in")
            arrays.append(f"n{k}")
        lines.append(f"let d{k}: {whole} = accum[{at}]({target}, v{k}) in")
        arrays.append(f"d{k}")
        if r.random() < 0.3:
            lines.append(f"let s{k}: {t} = v{k} * b{k} in")
            lines.append(f"let m{k}: f64 = max[axis={axes}, keepdims=false](s{k}) in")
            lines.append(f"let o{k}: {whole} = {r.choice(arrays)} * m{k} in")
            arrays.append(f"o{k}")
        if r.random() < 0.5:
            arrays.pop(r.randrange(len(arrays)))
            arrays = arrays or [f"d{k}"]
    text = " ".join([*lines, *arrays])
    made = ["x", "c", *re.findall(r"let (\w+):", text)]
    unused = [v for v in made if len(re.findall(rf"\b{v}\b", text)) < 1 + (v not in ("x", "c"))]
    lines += [f"let (;) = drop({v}) in" for v in unused]
    lines.append(f"({', '.join(arrays)};)")
    body = "\n  ".join(lines)
    return check(
        parse(f"def f(x: {whole}, c: f64;) -> ({', '.join([whole] * len(arrays))};) =\n  {body}")
    )


@pytest.mark.parametrize("blocks", [False, True])
def test_what_lines_add_to_slices_has_the_interpreters_bits(blocks, request):
    if blocks:
        request.getfixturevalue("small_blocks")
    added = 0
    for seed in range(60):
        p = random_additions(seed)
        x = np.random.default_rng(seed).normal(size=p.defs["f"].params[0].type.shape)
        x.flat[::7], x.flat[1::7], x.flat[3] = -0.0, 0.0, np.inf
        before = x.copy()
        with np.errstate(all="ignore"):
            ours = run(p, "f", x, -0.5, engine=Native()).results
            expected = run(p, "f", x, -0.5, engine="interpreter").results
        ours, expected = [[np.where(np.isnan(y), np.nan, y) for y in of] for of in (ours, expected)]
        assert bits(ours) == bits(expected), seed
        assert bits([x]) == bits([before])
        (code,) = p.noted["native code"].values()
        added += len([words for words, _ in code.fused if re.search(r"stored:.* d\d", words)])
    assert added > 24


def test_what_is_added_to_zeros_at_a_place_that_is_a_value_is_there():
    p = check(parse("""
        def f(a: f64, b: f64[3], i: i64;) -> (f64[4], f64[4,3], f64[2,4], f64[4], f64[4];) =
          let z: f64[4] = zeros[f64[4]] in
          let d: f64[4] = accum[i](z, a) in
          let y: f64[4,3] = zeros[f64[4,3]] in
          let e: f64[4,3] = accum[i](y, b) in
          let x: f64[2,4] = zeros[f64[2,4]] in
          let c: f64[2,4] = accum[0, i](x, a) in
          let w: f64[4] = zeros[f64[4]] in
          let g: f64[4] = accum[2](w, a) in
          let v: f64[4] = zeros[f64[4]] in
          let h: f64[4] = accum[1:](v, b) in
          (d, e, c, g, h;)
    """))  # fmt: skip

    def outcome(i, engine):
        try:
            return bits(run(p, "f", -0.0, np.array([-0.0, np.nan, 2.0]), i, engine=engine).results)
        except IndexError as error:
            return str(error)

    for i in range(-6, 6):
        assert outcome(i, Native()) == outcome(i, "interpreter")


def told_of(text, engine=NATIVE):
    """Which lines of a definition are fused, and the bytes of its workspace."""
    p = check(parse(text))
    code = lowered(p, *engine.key(p, "f"))
    return [words for words, _ in code.fused], code.workspace


def test_lines_go_on_around_a_product():
    told, _ = told_of("""
def f(x: f64[200], p: <f64, f64>;) -> (f64[200], <f64, f64>;) =
  let y: f64[200] = x * x in let q: <f64, f64> = (p;) in let z: f64[200] = sin(y) in (z, q;)
""")
    assert told == ["f: y, z over 200 rows; stored: z"]


@pytest.mark.parametrize(
    ("n", "result", "end", "memory"),
    [
        (200, "f64[200]", "(w;)", 0),
        (20_000, "f64", "let s: f64 = sum[axis=(0,), keepdims=false](w) in (s;)", 6400),
    ],
)
def test_what_one_loop_makes_and_reads_has_no_memory(n, result, end, memory):
    """The numbers of y and z are in registers; those of a sum lie in blocks of 800."""
    t = f"f64[{n}]"
    _, workspace = told_of(f"""
def f(x: {t};) -> ({result};) =
  let y: {t} = x * x in let z: {t} = x + y in let w: {t} = z * y in {end}
""")
    assert workspace == memory


def test_zeros_that_one_line_adds_to_are_not_read():
    """So the lines that make what is added are fused with the addition."""
    told, _ = told_of("""
def f(x: f64[100];) -> (f64[100];) =
  let z: f64[100] = zeros[f64[100]] in let a: f64[40] = index[at=(:40,)](x) in
  let v: f64[40] = a * a in let d: f64[100] = accum[:40](z, v) in let w: f64[100] = d * x in
  let e: f64[40] = index[at=(60:,)](w) in let u: f64[40] = sin(e) in
  let y: f64[100] = zeros[f64[100]] in let g: f64[100] = accum[60:](y, u) in
  let h: f64[100] = g + w in (h;)
""")
    assert told == ["f: v, d over 40 rows; stored: d", "f: u, g over 40 rows; stored: g"]


def test_zeros_that_many_lines_read_are_zeros_in_each():
    p = check(
        parse("""
def f(x: f64[100];) -> (f64[100], f64[100], f64[100];) =
  let z: f64[100] = zeros[f64[100]] in let a: f64[40] = index[at=(:40,)](x) in
  let v: f64[40] = a * a in let d: f64[100] = accum[:40](z, v) in
  let e: f64[100] = accum[:40](z, a) in let s: f64[100] = z + x in (d, e, s;)
""")
    )
    assert NATIVE.takes(p, "f") is None
    x, rest = np.arange(100.0), np.zeros(60)
    for ours, expected in zip(
        run(p, "f", x, engine=NATIVE).results,
        [np.append(x[:40] ** 2, rest), np.append(x[:40], rest), x],
        strict=True,
    ):
        np.testing.assert_array_equal(ours, expected)


def test_a_name_of_what_is_stored_is_not_stored_again():
    told, workspace = told_of("""
def f(x: f64[200];) -> (f64[200,1], f64[200,1];) =
  let y: f64[200] = x * x in let r: f64[200,1] = reshape[shape=(200,1)](y) in
  let z: f64[200,1] = sin(r) in (r, z;)
""")
    assert told == ["f: y, z over 200 rows; stored: y, z"]
    assert workspace == 0


def test_an_index_that_only_makes_axes_is_a_name():
    told, _ = told_of("""
def f(x: f64[200];) -> (f64[200,1];) =
  let y = x * x in let r = index[at=(..., None)](y) in let z = sin(r) in (z;)
""")
    assert told == ["f: y, z over 200 rows; stored: z"]


def test_a_broadcast_that_no_line_reads_is_no_line():
    told, _ = told_of("""
def f(x: f64[200];) -> (f64[200,3], f64[200];) =
  let y: f64[200] = x * x in let r: f64[200,1] = reshape[shape=(200,1)](y) in
  let b: f64[200,3] = broadcast_to[shape=(200,3)](r) in let z: f64[200] = sin(y) in (b, z;)
""")
    assert told == ["f: y, z over 200 rows; stored: y, z"]


def test_a_number_in_all_rows_is_a_line_of_exact_code_too():
    told, _ = told_of(
        """
def f(x: f64[200], k: f64;) -> (f64[200];) =
  let y = x * x in let b = broadcast_to[shape=(200,)](k) in let z = y * b in (z;)
""",
        EXACT,
    )
    assert told == ["f: y, b, z over 200 rows; stored: z"]


def test_factors_of_a_region_that_are_not_finite_are_in_doubt():
    g = lineara.grad(lambda x: np.sum(np.where(x > 0.0, np.sqrt(x), 0.0)))
    x = np.linspace(0.1, 1.0, 2000)
    odd = np.array([0.0, -1.0, *x[2:]])
    told, (doubted,) = regions_and_results((g, (odd,)), NATIVE)
    assert len(told) == 1
    assert np.array_equal(doubted, lineara.jit(g, engine="interpreter")(odd))


def test_a_chain_of_calls_needs_memory_for_two_blocks():
    def chain(n):
        lines = [f"let x{i + 1}: f64[4000] = tanh(x{i}) in" for i in range(n)]
        return told_of(f"def f(x0: f64[4000];) -> (f64[4000];) = {' '.join(lines)} (x{n};)")[1]

    assert chain(2) < chain(3) == chain(4) == chain(8)


def test_a_chain_of_calls_in_narrow_rows_needs_memory_for_two_blocks():
    def chain(n):
        lines = [f"let x{i + 1} = tanh(x{i}) in" for i in range(n)]
        (told,), size = told_of(f"""
def f(x0: f64[4000,3];) -> (f64[4000,3];) =
  {" ".join(lines)}
  let a = index[at=(:, 0:1)](x{n}) in let b = index[at=(:, 1:3)](x{n}) in
  let s = sum[axis=(1,), keepdims=true](b) in let c = a * s in
  let d = broadcast_to[shape=(4000,3)](c) in d * x{n}
""")
        assert "narrow rows, 160 at a time" in told
        return size

    assert chain(1) == chain(2) == chain(8)


def test_what_is_called_back_is_called_once_for_all_rows(small_blocks):
    """Python is asked for powers of whole numbers."""
    x = np.arange(2000) % 7
    p, native = lineara.jit(lambda x: ((x * 2) ** (x + 1) - 1) * 3).program(x), Native()
    (y,) = run(p.program, p.name, *p.operands((x,)), engine=native).results
    assert np.array_equal(y, ((x * 2) ** (x + 1) - 1) * 3)
    assert [times for times, _ in native.kernel(p.program, p.name).asked] == [1]


def test_what_is_left_of_a_block_is_not_copied_for_each_line(monkeypatch):
    """A copy for each line is quadratic in straight lines."""
    seen = []
    before = Lowering.region

    def region(em, block, start, runs, env):
        seen.append((block, runs))
        return before(em, block, start, runs, env)

    monkeypatch.setattr(Lowering, "region", region)
    lines = [f"let x{i + 1}: f64 = x{i} * x{i} in" for i in range(50)]
    lowered(parse(f"def f(x0: f64;) -> (f64;) = {' '.join(lines)} (x50;)"), "f")
    blocks = {id(block): {id(r) for b, r in seen if b is block} for block, _ in seen}
    assert len(seen) == 50
    assert all([len(sets) == 1 for sets in blocks.values()])


def of_any_with_its_axis(x):
    return np.where(np.any(2 * x > 1.0, axis=1, keepdims=True), x, 2 * x)


def of_all_with_its_axis(x):
    return np.where(np.all(np.sin(x) > -0.5, axis=1, keepdims=True), x * x, 2 * x)


def of_any_row(x):
    return np.any(np.exp(x) > 1.5, axis=0) * 1.0 + x


def of_lanes_written_where_negative(x):
    def relu(row):
        a = row.copy()
        a[a < 0] *= 0.5
        return np.sum(a)

    return lineara.vmap(relu)(x)


@pytest.mark.parametrize(
    "f",
    [of_any_with_its_axis, of_all_with_its_axis, of_any_row, of_lanes_written_where_negative],
)
def test_whether_any_or_all_hold_is_asked_of_whole_rows(f):
    for shape in ((7, 3), (50, 1), (50, 5), (300, 20)):
        x = np.random.default_rng(shape[0]).normal(size=shape)
        for engine in (NATIVE, EXACT):
            np.testing.assert_allclose(lineara.jit(f, engine=engine)(x), f(x), rtol=1e-14)

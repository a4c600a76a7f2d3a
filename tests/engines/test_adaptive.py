"""A program is interpreted until compiling it pays, and is machine code from then on."""

import linecache
import math
import subprocess
import sys

import numpy as np
import pytest

import lineara
from lineara.engines import ENGINES, Ask, is_exact, run, takes
from lineara.engines import adaptive as rule
from lineara.engines.evaluation import direct
from lineara.engines.native import kernel
from lineara.linear_a.parse import parse

ADAPTIVE = next(e for e in ENGINES if e.name == "adaptive")
LINE = "def f(x: f64;) -> (f64;) = let y = x * x in sin(y)"
LOOP = """
def step(k: f64, x: f64;) -> (f64;) = k * x
def f(x: f64;) -> (f64;) = scan[step, {n}, fwd, 1, 1, 0](x, x;)
"""
WHILE = """
def more(x: f64;) -> (bool;) = let k = 9.0 in less(x, k)
def twice(x: f64;) -> (f64;) = x + x
def f(x: f64;) -> (f64;) = while[more, twice, 0](x;)
"""
RECURSION = """
def f(x: f64;) -> (f64;) = let k = 9.0 in let p = less(x, k) in cond[again, same](p, x;)
def again(x: f64;) -> (f64;) = let y = x + x in f(y;)
def same(x: f64;) -> (f64;) = x
"""
BRANCH = """
def once(x: f64;) -> (f64;) = sin(x)
def thrice(x: f64;) -> (f64;) = let y = sin(x) in let z = sin(y) in sin(z)
def f(x: f64;) -> (f64;) = let k = 9.0 in let p = less(x, k) in cond[once, thrice](p, x;)
"""
SHARED = """
def g(x: f64;) -> (f64;) = sin(x)
def h(x: f64;) -> (f64;) = g(x;)
def f(x: f64;) -> (f64, f64;) = let y = g(x;) in let z = h(x;) in (y, z;)
"""


def is_compiled(program):
    return bool(program.noted["native"])


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        (LINE, 2),
        (LOOP.format(n=40), 40),
        (WHILE, math.inf),
        (RECURSION, math.inf),
        (BRANCH, 2 + 1 + 3),
        (SHARED, 2 + 3 + 1),
    ],
    ids=["line", "loop", "while", "recursion", "branch", "shared"],
)
def test_the_leaves_of_a_run_are_those_of_all_rounds(text, leaves):
    assert rule.evaluated(parse(text), "f") == leaves


def test_a_line_is_compiled_when_its_runs_have_taken_as_long():
    pytest.importorskip("llvmlite")
    program = parse(LINE)
    runs = rule.PAYS * (rule.SETUP + 2) // 2
    values = [run(program, "f", 3.0, engine="adaptive").results for _ in range(runs)]
    assert not is_compiled(program)
    values.append(run(program, "f", 3.0, engine="adaptive").results)
    assert is_compiled(program)
    assert {*values} == {run(program, "f", 3.0, engine="interpreter").results}


@pytest.mark.parametrize("text", [LOOP.format(n=5000), WHILE], ids=["counted", "while"])
def test_a_long_loop_is_compiled_before_its_first_run(text):
    pytest.importorskip("llvmlite")
    program = parse(text)
    found = run(program, "f", 1.0, engine="adaptive").results
    assert is_compiled(program)
    assert found == run(program, "f", 1.0, engine="interpreter").results


def test_a_short_loop_is_not_compiled_for_one_run():
    program = parse(LOOP.format(n=5))
    assert run(program, "f", 1.0, engine="adaptive").results == (1.0,)
    assert not is_compiled(program)


def test_what_only_the_interpreter_can_is_asked_of_it():
    program = parse(LOOP.format(n=5000))
    assert run(program, "f", 1.0, engine="adaptive", ask=Ask(work=True)).work == 5000
    assert not is_compiled(program)


def test_what_is_not_lowered_stays_interpreted():
    program = parse("""
    def same(n: i64;) -> (i64;) = n
    def f(n: i64, x: f64[n];) -> (f64;) =
      let m: i64 = scan[same, 9000, fwd, 0, 1, 0](n;) in
      let (;) = drop(m) in sum[axis=(0,), keepdims=false](x)
    """)
    assert run(program, "f", 3, np.ones(3), engine="adaptive").results == (3.0,)
    assert not is_compiled(program)


def test_what_exact_code_calls_back_as_a_whole_is_default_code():
    """The sum of what a loop carries, which NumPy may have laid out in another order."""
    pytest.importorskip("llvmlite")
    program = parse("""
    def turned(x: f64[40,30];) -> (f64[40,30];) =
      let y: f64[30,40] = permute_dims[axes=(1, 0)](x) in reshape[shape=(40, 30)](y)
    def f(x: f64[40,30];) -> (f64;) =
      let y: f64[40,30] = scan[turned, 9000, fwd, 0, 1, 0](x;) in
      sum[axis=(0, 1), keepdims=false](y)
    """)
    x = np.random.default_rng(0).normal(size=(40, 30))
    assert takes("native exact", program, "f")
    (found,) = run(program, "f", x, engine="adaptive").results
    assert is_compiled(program)
    assert found == pytest.approx(x.sum(), rel=1e-12)
    assert found == run(program, "f", x, engine="native").results[0]


def test_what_numpy_lays_out_in_an_unforeseen_way_is_default_code(monkeypatch):
    """Of which there is none yet once exact code has found that out."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(kernel, "lay_of", lambda _: None)
    program = parse("""
    def grown(x: f64[4,4];) -> (f64[4,4];) = let k = 0.9999 in k * x
    def f(x: f64[4,4];) -> (f64[4], f64[4,4];) =
      let y: f64[4,4] = scan[grown, 9000, fwd, 0, 1, 0](x;) in
      let z = logm(y) in
      let s = sum[axis=(0,), keepdims=false](z) in
      (s, z;)
    def g(x: f64[4,4];) -> (f64[4];) = let (s, z;) = f(x;) in let (;) = drop(z) in s
    """)
    x = np.random.default_rng(0).random((4, 4)) + 2.0 * np.eye(4)
    expected = run(program, "f", x, engine="interpreter").results
    for is_direct in (False, True):
        for engine in ("adaptive", "native exact"):
            for ours, theirs in zip(
                run(program, "f", x, engine=engine).results, expected, strict=True
            ):
                assert np.allclose(ours, theirs, rtol=1e-14)
        assert (direct("adaptive", program, "f", [False] * 2) is not None) is is_direct
    for name, is_direct in (("grown", True), ("g", False)):
        run(program, name, x, engine="native exact")
        assert (direct("native exact", program, name, [False]) is not None) is is_direct


@pytest.mark.parametrize(
    ("result", "exact"),
    [
        ("y", True),
        ("sum[axis=(0,), keepdims=false](y)", True),
        ("max[axis=(0,), keepdims=false](y)", False),
    ],
    ids=["a loop", "a sum of a row", "what exact code calls back"],
)
def test_code_is_exact_where_that_calls_nothing_more_back(result, exact):
    pytest.importorskip("llvmlite")
    program = parse(f"""
    def grown(x: f64[9];) -> (f64[9];) = let k = 0.9 in k * x
    def f(x: f64[9];) -> (f64{"[9]" if result == "y" else ""};) =
      let y: f64[9] = scan[grown, 9000, fwd, 0, 1, 0](x;) in {result}
    """)
    x = np.random.default_rng(0).normal(size=9)
    assert is_exact("adaptive", program, "f") is exact
    (found,) = run(program, "f", x, engine="adaptive").results
    assert is_compiled(program)
    assert np.allclose(found, run(program, "f", x, engine="interpreter").results[0], rtol=1e-14)


def test_without_llvmlite_it_says_so_once(monkeypatch):
    monkeypatch.setattr("lineara.engines.adaptive.is_installed", lambda: False)
    rule.warn_once.cache_clear()
    f = lineara.jit(filled)
    with pytest.warns(UserWarning, match="llvmlite") as seen:
        assert f(1.0) == f(1.0) == 45.0
    assert [str(w.message) for w in seen] == [
        "llvmlite is not installed, so programs are interpreted, which is slower than machine code "
        'where they have loops; install llvmlite, or ask for that: jit(f, engine="interpreter")'
    ]
    assert "f(1.0) == f(1.0)" in linecache.getline(seen[0].filename, seen[0].lineno)
    rule.warn_once.cache_clear()


WITHOUT = """
import sys
import warnings

sys.modules["llvmlite"] = sys.modules["llvmlite.binding"] = None  # an import of it fails
warnings.simplefilter("error", DeprecationWarning)

import numpy as np

import lineara


def f(x):
    total = 0.0
    while total < 9.0:
        total = total + x * x
    return total


for engine in ("adaptive", "interpreter"):
    g = lineara.jit(lineara.value_and_grad(f), engine=engine)
    print(*[g(0.3) for _ in range(5)][-1], g.captures)
assert "llvmlite, which is not installed" in str(lineara.explain(lineara.jit(f), 0.3))
print(lineara.jit(lambda p: p["x"] * 2.0)({"x": np.ones(2)}))
for refused in (
    lambda: lineara.jit(f, engine="native")(0.3), lambda: lineara.stages(f, 0.3).machine_code
):
    try:
        refused()
    except lineara.errors.LinearaError as error:
        print(str(error).splitlines()[0])
"""


@pytest.mark.slow("starts a Python of its own")
def test_a_process_without_llvmlite_interprets(tmp_path):
    file = tmp_path / "without.py"
    file.write_text(WITHOUT, "utf-8")
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("llvmlite is not installed") == 1
    adaptive, interpreted, doubled, *refused = ran.stdout.splitlines()
    assert adaptive == interpreted
    assert adaptive.endswith(" 1")
    assert doubled == "[2. 2.]"
    why = "it compiles with llvmlite, which is not installed"
    assert [why in line for line in refused] == [True, True]


def filled(x):
    total = 0.0
    k = 0.0
    while k < 45.0:
        total, k = total + x, k + x
    return total


@pytest.mark.parametrize("way", ["value", "gradient of jit", "jit of gradient"])
def test_jit_compiles_values_and_derivatives(way):
    pytest.importorskip("llvmlite")
    f = lineara.jit(lineara.grad(filled) if way == "jit of gradient" else filled)
    expected = {"value": 45.0}.get(way, 45.0)
    got = lineara.grad(f)(1.0) if way == "gradient of jit" else f(1.0)
    assert got == expected
    program = f.program(1.0).program
    derived = [d.program for d in program.noted["derived"].values()]
    assert any(map(is_compiled, [program, *derived]))
    if way == "gradient of jit":
        assert any(map(is_compiled, derived))


def test_jit_by_name_never_compiles():
    f = lineara.jit(filled, engine="interpreter")
    assert f(1.0) == 45.0
    assert not is_compiled(f.program(1.0).program)

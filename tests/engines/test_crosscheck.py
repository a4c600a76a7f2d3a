"""The four engines agree on random programs; what does not is found, made small and told."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mpmath
import pytest

from lineara.__main__ import main
from lineara.crosscheck import crosscheck, engines
from lineara.crosscheck.engines import ENGINES, notations
from lineara.crosscheck.judge import difference, judge
from lineara.crosscheck.language import (
    Array,
    Arrow,
    Program,
    R,
    Two,
    app,
    choice,
    lam,
    let,
    loop,
    num,
    op,
    pair,
    part,
    stack,
    subterms,
    total,
    var,
)
from lineara.crosscheck.oracle import COMPLEX, EdgeError, complex_step, fifty_digits
from lineara.crosscheck.oracle import mpmath as many_digits
from lineara.crosscheck.random_programs import BINARY, DIVIDED, OPERATIONS, Random
from lineara.crosscheck.report import SIZE
from lineara.engines.native import is_installed
from lineara.errors import LinearaError

x, y, v = var("x", R), var("y", R), var("v", Array(3))
SHARD = 200


def of_x(body, at=0.7):
    return Program((("x", R),), body, (at,))


# --- on random programs ---------------------------------------------------------------------------


@pytest.mark.slow("2,000 programs")
@pytest.mark.parametrize("shard", range(10))
def test_the_four_engines_and_the_complex_step_agree_on_random_programs(shard: int):
    report = crosscheck(SHARD, seed=10_000 + shard * SHARD, every=8)
    assert not report.wrong, "\n".join(report.found)
    assert report.programs == SHARD
    assert report.moving > 0.6 * SHARD
    assert report.higher_order > 0.4 * SHARD
    assert report.with_arrays > 0.4 * SHARD
    assert compared(report)
    assert report.edges + report.not_finite < 0.15 * SHARD


def test_the_four_engines_and_the_complex_step_agree_on_a_few_random_programs():
    report = crosscheck(32, seed=20_000, every=4)
    assert not report.wrong, "\n".join(report.found)
    assert report.programs == 32
    assert report.moving > 10
    assert compared(report)


def compared(report):
    """Whether every engine was compared with the first and with the oracle, also machine code."""
    numbers = report.against - report.between  # of all programs, each once
    of_machine_code = report.between - 4 * numbers
    return 0 < of_machine_code < numbers if is_installed() else of_machine_code == 0


@pytest.mark.skipif(not is_installed(), reason="machine code is not compiled")
def test_machine_code_takes_part_and_is_counted(place_of_cache):
    seeds = range(300, 308)
    reports = [crosscheck(1, seed, every=4) for seed in seeds]
    assert [r.compiled for r in reports] == [
        r.judged * (s % 4 == 0) for s, r in zip(seeds, reports, strict=True)
    ]
    assert not any(r.wrong for r in reports)
    assert "run as machine code, too\n" in reports[0].text()
    assert not [*place_of_cache.iterdir()]


@pytest.fixture
def place_of_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LINEARA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_without_llvmlite_four_engines_are_compared_and_it_is_said(monkeypatch):
    monkeypatch.setattr("lineara.crosscheck.engines.is_installed", lambda: False)
    report = crosscheck(2, seed=300)
    assert report.compiled == 0
    assert report.judged
    assert "run as machine code, too: llvmlite is not installed\n" in report.text()


@pytest.mark.skipif(not is_installed(), reason="machine code is not compiled")
def test_machine_code_that_is_wrong_disagrees(monkeypatch):
    right = engines.machine_code
    monkeypatch.setattr(
        engines, "machine_code", lambda p: [1 + 1e-8 * right(p)[0] for _ in right(p)]
    )
    report = crosscheck(1, seed=300)
    assert report.wrong
    assert "machine code disagree" in report.found[0]


def test_the_random_programs_have_everything():
    heads, operations, types = set(), set(), set()
    for seed in range(1_000):
        for e in subterms(Random(seed, SIZE).program().body):
            heads.add(e.head)
            types.add(e.type)
            if e.head == "op":
                operations.add(e.held)
    assert operations == set(OPERATIONS)
    assert heads == {
        "var", "num", "lam", "let", "if", "op", "app", "pair", "first", "second", "loop", "sum",
        "index", "stack", "dot",
    }  # fmt: skip
    functions = Arrow(R, R)
    assert {Arrow(functions, R), Arrow(R, functions), Two(functions, R)} <= types


def test_a_program_is_the_same_in_every_run():
    a, b = Random(5).program(), Random(5).program()
    assert notations(a) == notations(b)
    assert a.at == b.at


# --- the oracle -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_oracle_knows_what_the_operations_are(name: str):
    arity = 2 if name in (*BINARY, *DIVIDED) else 1
    known = {
        "negative": lambda z: -z, "square": lambda z: z**2, "reciprocal": lambda z: 1 / z,
        "deg2rad": mpmath.radians, "rad2deg": mpmath.degrees, "abs": abs,
        "cbrt": lambda z: mpmath.sign(z) * mpmath.cbrt(abs(z)), "exp2": lambda z: 2**z,
        "log2": lambda z: mpmath.log(z, 2), "add": lambda z, w: z + w,
        "subtract": lambda z, w: z - w, "multiply": lambda z, w: z * w,
        "divide": lambda z, w: z / w, "maximum": max, "minimum": min,
        "logaddexp": lambda z, w: mpmath.log(mpmath.exp(z) + mpmath.exp(w)),
    }  # fmt: skip
    wanted = known.get(name) or getattr(mpmath, name)
    points = [(0.3, 0.8), (0.9, 0.6)]
    if name in ("atan2", "hypot", "add", "cbrt", "abs", "atan", "tan", "expm1"):
        points += [(-0.3, 0.8), (-0.9, -0.6), (0.3, -0.8), (-0.3, -0.8), (0.9, -0.2)]
    for point in points:
        args = point[:arity]
        names = ("x", "y")[:arity]
        program = Program(tuple([(n, R) for n in names]),
                          op(name, *[var(n, R) for n in names]), args)  # fmt: skip
        with mpmath.workdps(30):
            exact = [wanted(*map(mpmath.mpf, args))]
            for i in range(arity):

                def along(t, i=i, args=args):
                    return wanted(*[t if j == i else mpmath.mpf(a) for j, a in enumerate(args)])

                exact.append(mpmath.diff(along, args[i]))
        for found in (complex_step(program), fifty_digits(program)[0]):
            assert found == pytest.approx([float(e) for e in exact], rel=1e-14, abs=1e-15), point


def test_the_oracle_shares_nothing_with_the_library():
    source = Path(sys.modules["lineara.crosscheck.oracle"].__file__).read_text()
    imported = [line for line in source.splitlines() if line.startswith(("from ", "import "))]
    ours = [line for line in imported if "lineara" in line]
    assert ours == [
        "from lineara.crosscheck.language import Program, Term",
        "from lineara.errors import LinearaError",
    ]
    assert COMPLEX["tanh"] is __import__("cmath").tanh


def test_points_where_two_pieces_meet_are_left_out():
    for body in (op("maximum", x, x), op("abs", num(0)), choice(x, x, x, num(1))):
        assert judge(of_x(body)).outcome == "edge"
        with pytest.raises(EdgeError):
            complex_step(of_x(body))
    assert judge(of_x(op("reciprocal", num(0)))).outcome == "not finite"
    assert judge(of_x(op("exp", op("exp", num(9))))).outcome == "not finite"
    # where a number on the way is not, the literal passes multiply it by the zero slope of what is
    # dropped: zero times infinity
    squares = loop(9, lam("b", R, op("multiply", var("b", R), var("b", R))), op("add", x, num(9)))
    for dropped in (squares, op("square", op("multiply", num(1e200), x))):
        assert judge(of_x(let("a", dropped, x))).outcome == "not finite"


# --- each construct, by hand ----------------------------------------------------------------------

F = Arrow(R, R)
twice = lam("f", F, lam("a", R, app(var("f", F), app(var("f", F), var("a", R)))))
scaled = lam("c", R, lam("b", R, op("multiply", var("c", R), op("sin", var("b", R)))))
CASES = {
    "a function of functions": app(app(twice, app(scaled, x)), num(2)),
    "a choice of functions": app(
        choice(x, num(1), app(scaled, x), lam("d", R, op("exp", var("d", R)))), x
    ),
    "a choice of functions, of which the other overflows": app(
        choice(x, num(1), app(scaled, x), lam("o", R, op("exp", op("exp", op(
            "multiply", num(20), var("o", R)
        ))))), x
    ),
    "a function from a pair": app(part("first", pair(app(scaled, x), x)), x),
    "a loop over a pair": part(
        "second",
        loop(
            3,
            lam("p", Two(R, R), pair(op("cos", part("second", var("p", Two(R, R)))),
                                     op("add", part("first", var("p", Two(R, R))), x))),
            pair(x, num(0.5)),
        ),
    ),
    "a loop in a chosen function": app(
        choice(num(2), x, scaled, lam("e", R, scaled_e := lam("g", R, loop(
            2, lam("h", R, op("tanh", op("multiply", var("h", R), var("e", R)))), var("g", R)
        )))),
        x,
    ),
    "an array": let("w", stack(x, op("sin", x), num(2)), op("multiply", x, total(
        op("atan2", var("w", Array(3)), op("add", x, op("square", var("w", Array(3)))))
    ))),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].type == R])
def test_a_construct_is_right_in_every_engine(name: str):
    verdict = judge(of_x(CASES[name]))
    assert verdict.outcome == "judged"
    assert verdict.moves
    assert not verdict.disagreement, verdict


# --- what disagrees -------------------------------------------------------------------------------


def lying(program: Program) -> list[float]:
    """An engine that is wrong wherever there is a tanh."""
    value, *slopes = ENGINES["diagrams"](program)
    wrong = any(e.held == "tanh" for e in subterms(program.body))
    return [value, *[-s if wrong else s for s in slopes]]


TOLD = """
seed {seed}: diagrams disagree; value and gradient at {x} = {at}
--- Python
import math
import numpy as np


def f({x}):
    return math.tanh({x})
--- Linear A
def f({x}: f64;) -> (f64;) =
  let r1: f64 = tanh({x}) in
  (r1;)
--- calculus
\\at:R. let {x} = at in tanh({x})
--- diagram
(x1: R) =>
  v1 = tanh(x1)
  -> v1"""


def test_a_disagreement_shrinks_to_a_minimal_program_in_four_notations():
    engines = {"eager graph": ENGINES["eager graph"], "diagrams": lying}
    seed = next(s for s in range(100, 200) if crosscheck(1, s, engines=engines).wrong)
    report = crosscheck(1, seed, engines=engines)
    (told,) = report.found
    assert report.engines_disagree == 1
    lines = told.splitlines()
    _, _, where = lines[1].rpartition(" at ")
    name, _, at = where.partition(" = ")
    numbers = lines[2:5]
    assert [*lines[:2], *lines[5:]] == TOLD.format(seed=seed, x=name, at=at).splitlines()
    value, slope = math.tanh(float(at)), 1 - math.tanh(float(at)) ** 2
    known = {"complex step": slope, "eager graph": slope, "diagrams": -slope}
    for line, (engine, expected) in zip(numbers, known.items(), strict=True):
        assert line.startswith(f"  {engine:<12}  [")
        assert json.loads(line[16:]) == pytest.approx([value, expected], rel=1e-12)


def test_an_engine_that_raises_disagrees():
    def broken(program: Program) -> list[float]:
        raise NotImplementedError("no wires")

    verdict = judge(of_x(op("sin", x)), {**ENGINES, "diagrams": broken})
    assert verdict.engines_disagree == ["diagrams"]
    assert verdict.numbers["diagrams"] == "NotImplementedError: no wires"
    short = judge(of_x(op("sin", x)), {**ENGINES, "diagrams": lambda p: [0.0]})
    assert short.numbers["diagrams"] == "1 numbers, not 2"


def test_a_relative_error_of_1e8_is_found_and_rounding_is_not_an_error():
    def off_by(relative: float):
        return lambda p: [a * (1 + relative) for a in ENGINES["eager graph"](p)]

    program = of_x(op("multiply", x, op("sin", x)))
    assert judge(program, {**ENGINES, "off": off_by(1e-8)}).engines_disagree == ["off"]
    assert not judge(program, {**ENGINES, "off": off_by(1e-11)}).disagreement
    # the slope of atan2(x, 3 x) is 0, and what an engine finds instead is rounding
    cancels = of_x(op("atan2", x, op("add", x, op("add", x, x))), 0.75)
    verdict = judge(cancels, {**ENGINES, "rounds": lambda p: [math.atan2(1, 3), 2**-54]})
    assert verdict.rejudged > 0
    assert not verdict.disagreement
    nearly = judge(cancels, {**ENGINES, "off": lambda p: [math.atan2(1, 3), 1e-12]})
    assert nearly.engines_disagree == ["off"]


def test_a_slope_that_no_step_of_50_digits_is_small_for_is_judged_in_more():
    def half_a_place_on(p: Program) -> list[float]:  # as an engine that rounds otherwise finds
        return ENGINES["eager graph"](replace(p, at=(math.nextafter(p.at[0], 2),)))

    steep = Random(20358291, 16).program()  # a sine of 1e60 degrees
    assert abs(complex_step(steep)[1]) > 1e50
    verdict = judge(steep, {**ENGINES, "rounds": half_a_place_on})
    assert difference(*[verdict.numbers[e][1] for e in ("eager graph", "rounds")]) > 1e-3
    assert verdict.rejudged
    assert not verdict.disagreement


def test_a_slope_of_which_rounding_leaves_no_digit_is_any_number():
    """A tangent of 2 to the 122nd: what chance makes of it once is no bound for another time."""
    noise = op("tan", op("exp2", op("add", num(122), x)))
    chaotic = of_x(op("reciprocal", op("add", num(0.66), op("tanh", noise))))
    eager = ENGINES["eager graph"]
    verdict = judge(chaotic, {"eager": eager, "far": lambda p: [y * 1e30 for y in eager(p)]})
    assert verdict.rejudged
    assert not verdict.disagreement


def test_without_mpmath_a_disagreement_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mpmath", None)
    with pytest.raises(LinearaError) as caught:
        many_digits()
    assert caught.value.message == (
        "a disagreement is judged in 50 digits by mpmath, which is not installed; "
        "`pip install mpmath`, or `pip install lineara[test]`"
    )


# --- a wrong fact ---------------------------------------------------------------------------------

WRONG = """
import importlib.abc, importlib.util, json, sys
for folder in {folders}:
    sys.path.insert(0, folder)
text = open({file}).read()
right, wrong = '"tanh", lambda y, x: 1 - y * y', '"tanh", lambda y, x: 1 - y'
assert text.count(right) == 1

class Fault(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "lineara.ops.elementwise":
            return importlib.util.spec_from_loader(name, self)

    def exec_module(self, module):
        exec(compile(text.replace(right, wrong), "a wrong fact", "exec"), vars(module))

if {fault}:
    sys.meta_path.insert(0, Fault())
from lineara.crosscheck.random_programs import Random
from lineara.crosscheck.judge import judge
from lineara.crosscheck.language import subterms
between = against = there = 0
for seed in range(120):
    program = Random(seed).program()
    verdict = judge(program)
    there += any(e.held == "tanh" for e in subterms(program.body))
    between += bool(verdict.engines_disagree)
    against += bool(verdict.oracle_disagrees)
import test_primitives as table
laws = []
for line in [line for line in table.SMOOTH if line.name == "tanh"]:
    for law in (table.the_jvp_is_the_limit_of_differences,
                table.partials_have_full_precision):
        try:
            law(line)
        except AssertionError:
            laws.append(law.__name__)
print(json.dumps([there, between, against, sorted(set(laws))]))
"""


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.slow("starts a Python of its own, and runs tests in it")
def test_a_wrong_fact_is_shared_by_all_engines_and_found_by_the_tests_of_primitives(fault: bool):
    tests = Path(__file__).parent.parent
    folders = [str(tests / f) for f in ("", "linear_a", "ops")]
    file = str(tests.parent / "src/lineara/ops/elementwise.py")
    code = WRONG.format(folders=folders, file=repr(file), fault=fault)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    there, between, against, laws = json.loads(found.stdout)
    assert there > 3
    assert between == 0, "the engines agree, also on what is wrong"
    assert bool(against) == fault, "the complex step does not read the fact"
    assert bool(laws) == fault, "the tests of the primitive do not either"


# --- the command ----------------------------------------------------------------------------------


def test_the_command_counts(capsys: pytest.CaptureFixture[str]):
    assert main(["crosscheck", "--programs", "3", "--seed", "4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["programs"] == 3
    assert report["found"] == []
    assert main(["crosscheck", "--programs", "2", "--seed", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["2", "programs"]
    assert lines[-1].startswith("largest difference from the complex step ")


def test_the_command_fails_where_engines_disagree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(ENGINES, "diagrams", lambda p: [0.0] * (1 + len(p.numbers)))
    assert main(["crosscheck", "--programs", "1", "--seed", "2"]) == 1
    assert "--- diagram" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["0", "-3", "many"])
def test_the_command_wants_a_number_of_programs(text: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(["crosscheck", "--programs", text])
    assert caught.value.code == 2
    assert "--programs" in capsys.readouterr().err

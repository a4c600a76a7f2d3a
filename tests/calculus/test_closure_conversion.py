"""Closures in Linear A: what numbers decide stays a branch; derivatives are those of the passes.

Against closed forms and the machine; random programs against the complex step as well.
"""

import math

import numpy as np
import pytest
from agree import AT, agree_converted
from shards import shards

import lineara
from lineara import calculus
from lineara.calculus.closure_conversion import converted, sample
from lineara.calculus.types import Arrow
from lineara.engines import run
from lineara.errors import CalculusError, ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.passes.derivatives import grad


def convert(text):
    """The conversion itself, also where tracing would do."""
    term = calculus.term(text) if isinstance(text, str) else text
    samples, t = [], term.type
    while isinstance(t, Arrow):
        samples.append(sample(t.source))
        t = t.target
    made = converted(term, calculus.function(term), samples)
    check(made.program)
    return made


PRODUCT = "(rec f y. if less(y, 1) then y else f (y / 2) * x)"
CHOSEN = "(if less(x, 2) then (\\y. y * x) else (\\y. sin(y) + x))"
CPS = "let rec go n k = if less(n, 1) then k x else go (n - 1) (\\v. k (v * y)) in go 3.5 (\\v. v)"

PROGRAMS = [  # text, arguments, value in closed form
    ("\\x. if less(x, 2) then x * x else sin(x)", (1.5,), 2.25),
    ("\\x. if less(x, 2) then x * x else sin(x)", (3.0,), math.sin(3.0)),
    (f"\\x. let f = {CHOSEN} in f (f x)", (1.5,), 1.5**3),
    (f"\\x. let f = {CHOSEN} in f (f x)", (2.5,), math.sin(math.sin(2.5) + 2.5) + 2.5),
    (f"\\x. {PRODUCT} 5", (3.0,), 0.625 * 27),
    (f"\\x y. {CPS}", (2.0, 3.0), 54.0),
    ("\\<x, y>. fold (\\a. \\b. a * b) 1 [x, y, x]", ((2.0, 3.0),), 12.0),
    ("\\x. head (tail (map (\\y. y * x) [1, if less(x, 2) then x else 7]))", (3.0,), 21.0),
    ("\\x. fst (head [<\\y. y * x, 3>, <sin, 0>]) 4", (2.0,), 8.0),
    ("\\x. (sin + (\\y. y * x) + 0:(R -> R)) 2", (3.0,), math.sin(2.0) + 6),
    ("\\x. scale(x, \\y. y * y) 3", (2.0,), 18.0),
    ("\\x. <x, if less(x, 0) then -x else x>", (-2.0,), (-2.0, 2.0)),
    ("\\x. iterate 5i (\\y. if less(y, x) then y * 2 else y) 1", (10.0,), 16.0),
    ("\\x. <real(iadd(imul(2i, 3i), 1i)), ilt(1i, 2i)>", (0.0,), (7.0, True)),
    # derivatives
    ("\\x. J(\\y. if less(y, 2) then y * y * x else sin(y); 3) x", (1.5,), 13.5),
    ("\\x. pull(\\y. if less(y, 2) then y * y * x else sin(y); \\_. covec(1)) x @ 1", (1.5,), 4.5),
    (f"\\x. pull({PRODUCT}; \\y. covec(y)) 5 @ 1", (3.0,), 27 / 8 * (0.625 * 27)),
    (f"\\x. pull(\\x. {PRODUCT} 5; \\_. covec(1)) x", (3.0,), 0.625 * 27),
    (f"\\x y. pull(\\y. {CPS}; \\_. covec(1)) y", (2.0, 3.0), 54.0),
    (f"\\x. (J({CHOSEN}; 1)) x", (2.5,), math.cos(2.5)),
    (f"\\x. let d = J({CHOSEN}; 1) in d (d x)", (1.5,), 1.5),
    ("\\p. pull(\\<x, y>. if less(x, y) then x * y else x; \\_. covec(1)) p", ((1.0, 2.0),),
     (2.0, 1.0)),
    ("\\x. pull(\\y. <y * x, y>; \\p. [covec(fst p)|covec(1)]) 2 @ 1", (3.0,), 19.0),
    ("\\x. pull(sin + cos; \\_. covec(1)) x @ 1", (0.3,), math.cos(0.3) - math.sin(0.3)),
    ("\\x. dual(\\v. <v * x, v>; [covec(2)|covec(5)]) @ 1", (3.0,), 11.0),
    ("\\x. (J{sin}(2)) x + pull(square; \\_. covec(1)) x @ 1", (0.3,), 2 * math.cos(0.3) + 0.6),
    ("\\x. grad (\\x. grad (\\x. if less(x, 0) then x else x * x * x) x @ 1) x", (2.0,), 12.0),
    ("let g = \\x. grad (\\x. grad (\\x. if less(x, 0) then x else x * x * x * x) x @ 1) x @ 1 in "
     "\\x. grad g x", (2.0,), 48.0),
    ("\\x. fold (\\f. \\y. y + grad f x @ 1) 0 [sin, \\y. if less(y, 1) then y * y else y]", (0.5,),
     math.cos(0.5) + 1.0),
    ("\\x. pull(\\z. fold (\\a. \\b. a * b + z) x [z, x, z]; \\_. covec(1)) x @ 1", (5.0,), 311.0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "value"), PROGRAMS)
def test_a_program_has_the_value_of_the_machine_and_of_mathematics(text, at, value):
    made = convert(text)
    assert made(*at) == pytest.approx(value, rel=1e-14)
    assert calculus.function(text)(*at) == pytest.approx(value, rel=1e-14)
    assert made.program == parse(str(made.program))


@pytest.mark.parametrize(("text", "at", "value"), PROGRAMS)
def test_every_program_is_differentiated_by_the_passes(text, at, value):
    if isinstance(value, tuple):
        text = f"\\a. ({text}) a @ <1, 0>" if "pull" in text else f"\\a. fst (({text}) a)"
    made = convert(text)
    derived = check(grad(made.program, made.name))
    flat = [x for a in at for x in (a if isinstance(a, tuple) else (a,))]
    found = [float(x) for x in run(derived, f"{made.name}.grad", *flat).results]
    wanted = lineara.grad(calculus.function(text), argnums=tuple(range(len(at))))(*at)
    wanted = [x for a in wanted for x in (a if isinstance(a, tuple) else (a,))]
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-14)


def test_a_function_is_a_sum_of_environments_and_a_choice_a_branch():
    assert (
        str(convert(f"\\x. let f = {CHOSEN} in f x").program)
        == """\
type fn1 = [<f64> | <f64>]

def then1(x_2: f64;) -> (fn1;) =
  let env: <f64> = <x_2> in
  let f: fn1 = inj[0, fn1](env) in
  (f;)

def else1(x_2: f64;) -> (fn1;) =
  let env: <f64> = <x_2> in
  let f: fn1 = inj[1, fn1](env) in
  (f;)

def fn1_0(env: <f64>, x: f64;) -> (f64;) =
  let <env.0: f64> = env in
  let k: f64 = x * env.0 in
  (k;)

def fn1_1(env: <f64>, x: f64;) -> (f64;) =
  let <env.0: f64> = env in
  let k: f64 = sin(x) in
  let k2: f64 = k + env.0 in
  (k2;)

def calculus_function(x0: f64;) -> (f64;) =
  let k: f64 = 2.0 in
  let k2: bool = less(x0, k) in
  let y: fn1 = cond[then1, else1](k2, x0;) in
  let y2: f64 = case y of fn1_0 | fn1_1 with (x0;) in
  (y2;)
"""
    )


def test_the_work_of_a_fold_grows_with_its_length_forward_and_back():
    def work(n):
        made = convert(f"\\x. (rec go k. if less(k, 1) then 1 else go (k - 1) * x) {n}")
        derived = grad(made.program, made.name)
        return (
            run(made.program, made.name, 1.1).work,
            run(derived, f"{made.name}.grad", 1.1).work,
        )

    values, gradients = zip(*[work(n) for n in (10, 20, 40)], strict=True)
    assert values[2] - values[1] == 2 * (values[1] - values[0])
    assert gradients[2] - gradients[1] == 2 * (gradients[1] - gradients[0])


@pytest.mark.slow("thousands of calls")
def test_a_deep_recursion_and_a_long_chain_run_without_pythons_stack():
    made = convert("\\x. (rec go k. if less(k, 1) then 1 else go (k - 1) * x) 3000")
    derived = grad(made.program, made.name)
    assert float(run(derived, f"{made.name}.grad", 1.0).results[0]) == 3000.0
    lines = "".join([f"let x{k} = sin(x{k - 1}) + x{k - 1} in " for k in range(1, 1001)])
    chain = convert(f"\\x0. {lines} x1000")
    x = 0.1
    for _ in range(1000):
        x = math.sin(x) + x
    assert chain(0.1) == pytest.approx(x, rel=1e-12)


def test_linear_a_converts_where_tracing_ends():
    made = calculus.linear_a("\\x. if less(x, 2) then x else 3 * x")
    assert (made(1.0), made(5.0)) == (1.0, 15.0)
    assert lineara.grad(made)(5.0) == 3.0
    traced = calculus.linear_a("\\x. let f = \\y. y * x in f (f x)")
    assert list(traced.program.defs) == ["calculus_function"]


TOWER = "(rec f y. if less(y, 1) then y else pull(f; \\_. covec(1)) (y / 2) @ 1)"
REFUSED = [
    (f"\\x. if less(x, 0) then x else {TOWER} x",
     "linear_a: the derivative of what is called here is taken within rec f y:R -> R. if less(y, "
     "1) then y else pull(f; \\_:R. covec(1)) divide(y, 2) @ 1, which it may call itself; a "
     "program would have one derivative within another without end, and the machine has as many "
     "as it meets"),
    ("\\x. if less(x, 0) then x else pull(\\f:R -> R. f x; \\_. covec(1)) sin @ cos",
     "linear_a: pull(\\f:R -> R. f x; \\_:R. covec(1)) is a derivative of (R -> R) -> R; a program "
     "has those of functions from numbers to numbers, whatever they captured"),
    ("\\x. if less(x, 0) then x else (x |> covec(1)) @ sin",
     "linear_a: x |> covec(1) has no counterpart in a program; the machine has it, and so have the "
     "rules"),
    ("\\x. if less(x, 0) then [x] else [x, x]",
     "linear_a: a result of a program is made of numbers, not List R"),
    ("\\f:R -> R. f 2", "linear_a: an argument of a program is made of numbers, not R -> R"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_no_program_has_is_refused(text, said):
    with pytest.raises(CalculusError) as caught:
        calculus.linear_a(text)
    assert caught.value.message == said


def test_the_head_of_an_empty_list_ends_the_program():
    made = convert("\\x. head (if less(x, 0) then [x] else [])")
    assert made(-2.0) == -2.0
    with pytest.raises(ProgramError) as caught:
        made(2.0)
    assert caught.value.message == (
        "switch: the index 1 is out of range for 1 branches: head_of_an_empty_list"
    )


def test_an_integer_division_by_zero_ends_the_program():
    text = "\\x. real(idiv(7i, if less(x, 0) then 2i else 0i)) + real(imod(-7i, 2i))"
    made = convert(text)
    assert made(-1.0) == calculus.function(text)(-1.0) == 4.0
    with pytest.raises(ProgramError, match=r"for 1 branches: quotient_by_0$"):
        made(1.0)
    for evaluate in (calculus.run, calculus.reduce):
        with pytest.raises(CalculusError, match=r"^idiv\(7, 0\): integers have no infinity$"):
            evaluate(f"({text}) 1")


@pytest.mark.parametrize("shard", shards(12))
@pytest.mark.parametrize("nested", [False, True])
def test_random_programs_with_branches_agree(shard, nested):
    moving = [agree_converted(seed, nested) for seed in range(shard * 15, shard * 15 + 15)]
    assert sum(moving) > 1
    assert np.isfinite(AT).all()

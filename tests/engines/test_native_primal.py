"""A value and its gradient calculate the primal once, wherever that is the same primal."""

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lineara
from lineara.engines import run
from lineara.engines.primal import Values, one_primal
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse

X = np.linspace(0.1, 1.0, 5)


def smooth(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def solved(x: Any) -> Any:
    return np.sum(np.linalg.solve(np.diag(x), x) * np.sin(x))


def looped(x: Any) -> Any:
    y = np.zeros(5)
    total = 0.0
    for i in range(1, 5):
        y[i] = y[i - 1] + x[i]
        if y[i] > 0.9:
            total = total + np.sin(y[i])
            y[i] = total
        else:
            total = total * y[i]
    while total < 3.0:
        total = total * 1.5 + np.sin(x[0])
    return total


def before_and_after(f: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """What value and gradient of f reach, before and after; the results are the same bits."""
    captured = lineara.jit(lineara.value_and_grad(f)).program(X)
    program, name = captured.program, captured.name
    joined = one_primal(program, name)
    operands = captured.operands((X,))
    pairs = [run(p, name, *operands, engine="interpreter").results for p in (program, joined)]
    for a, b in zip(*pairs, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return [*program.reached(name)], [*joined.reached(name)]


@pytest.mark.parametrize("f", [smooth, solved, looped])
def test_value_and_gradient_reach_one_primal(f: Callable[..., Any]) -> None:
    before, after = before_and_after(f)
    value = f"{f.__name__}2"
    assert {value, f"{value}'jvp'nl"} <= {*before}
    assert value not in after
    assert f"{value}'jvp'nl" in after


def test_a_rule_that_states_another_primal_is_not_joined() -> None:
    sine = lineara.custom_vjp(
        np.sin,
        lambda x: (x - x * x * x / 6, x),
        lambda x, c: (c * np.cos(x),),
        check=False,
    )

    def ruled(x: Any) -> Any:
        return sine(x[0]) * x[1]

    before, after = before_and_after(ruled)
    assert before == after


@pytest.mark.parametrize(("args", "same"), [("x, w", True), ("w, x", False), ("x, x", False)])
def test_another_tape_follows_where_it_is_of_the_same_arguments(args: str, same: bool) -> None:
    used = "" if "w" in args else "let (;) = drop(w) in "
    p = check(
        parse(f"""
def value(x: f64, w: f64;) -> (f64;) = let s: f64 = sin(x) in let y: f64 = s * w in (y;)
def taped(x: f64, w: f64;) -> (f64, f64;) =
  let s: f64 = sin(x) in let y: f64 = s * w in (y, s;)
def packed(x: f64, w: f64;) -> (f64, <f64, f64>;) =
  let (y: f64, s: f64;) = taped({args};) in {used}let t: <f64, f64> = <s, s> in (y, t;)
""")
    )
    values = Values(p)
    assert values.follow("value", "taped")
    assert values.follow("value", "packed") is same


@pytest.mark.parametrize(("out", "same"), [("y, s", True), ("s, y", False)])
def test_another_tape_follows_where_the_results_keep_their_order(out: str, same: bool) -> None:
    lines = "let s: f64 = sin(x) in let y: f64 = s * x in"
    p = check(
        parse(f"""
def value(x: f64;) -> (f64, f64;) = {lines} (y, s;)
def taped(x: f64;) -> (f64, f64, f64;) = {lines} (y, s, s;)
def packed(x: f64;) -> (f64, f64, <f64>;) =
  let (y: f64, s: f64, t: f64;) = taped(x;) in let u: <f64> = <t> in ({out}, u;)
""")
    )
    assert Values(p).follow("value", "packed") is same


@pytest.mark.parametrize("factor", ["a", "b"])
def test_parts_of_what_is_the_same_are_the_same(factor: str) -> None:
    unpacked = "let t: <f64, f64> = <x, w> in let <a: f64, b: f64> = t in let s: f64 = a * b in"
    p = check(
        parse(f"""
def value(x: f64, w: f64;) -> (f64;) = {unpacked} let y: f64 = s * a in (y;)
def taped(x: f64, w: f64;) -> (f64, f64;) = {unpacked} let y: f64 = s * {factor} in (y, s;)
""")
    )
    assert Values(p).follow("value", "taped") is (factor == "a")


SIZED = """
def value(n: i64, x: f64[n];) -> (f64;) =
  let s: f64[n] = sin(x) in let y: f64 = matmul(s, x) in (y;)
def taped(n: i64, x: f64[n];) -> (f64, f64[n];) =
  let s: f64[n] = sin(x) in let y: f64 = matmul(s, x) in (y, s;)
def back(n: i64, t: f64[n], c: f64;) -> (f64[n];) = let g: f64[n] = t * c in (g;)
def pulled(n: i64, x: f64[n], c: f64;) -> (f64[n];) =
  let (y: f64, t: f64[n];) = taped(n, x;) in
  let g: f64[n] = back(n, t, c;) in
  let (;) = drop(y) in (g;)
def other(n: i64, x: f64[n];) -> (f64;) = let y: f64 = matmul(x, x) in (y;)
def both(m: i64, x: f64[m];) -> (f64, f64, f64[m];) =
  let w: f64 = other(m, x;) in
  let y: f64 = value(m, x;) in
  let g: f64[m] = pulled(m, x, y;) in
  (w, y, g;)
"""
OF_THREE = re.sub(r"\b[nm](?:: i64)?, ", "", SIZED).replace("[n]", "[3]").replace("[m]", "[3]")


@pytest.mark.parametrize(("text", "is_joined"), [(OF_THREE, True), (SIZED, False)])
def test_a_tape_whose_size_is_a_value_is_not_joined(text: str, is_joined: bool) -> None:
    """In the caller another variable is its size.  Another call of the same is in nobody's way."""
    p = check(parse(text))
    joined = check(one_primal(p, "both"))
    assert ("value" not in joined.reached("both")) is is_joined
    assert is_joined or str(joined) == str(p)


def random_halves(seed: int) -> str:
    """Definitions of two calls, as a vjp is or nearly so, and one that calls them and the parts."""
    r = random.Random(seed)
    counts = {"one": r.randint(1, 2)}
    counts["other"] = counts["one"] + r.randint(0, 1)
    results, texts = r.choices("xys", k=3), ["def back(t: f64, c: f64;) -> (f64;) = t * c"]

    def head(name: str, n: int) -> str:
        return f"def {name}(x: f64, c: f64;) -> ({', '.join(['f64'] * n)};) = "

    def let(names: list[str], name: str, args: str) -> str:
        return f"let ({', '.join([f'{v}: f64' for v in names])};) = {name}({args};) in "

    def drops(names: set[str]) -> str:
        return "".join([f"let (;) = drop({v}) in " for v in sorted(names)])

    for name, n in counts.items():
        lines = "let y: f64 = sin(x) in let s: f64 = x * y in "
        unread = {"s"} - {*results[:n]}
        text = f"{head(name, n)}{lines}{drops(unread)}({', '.join(results[:n])};)"
        texts.append(text.replace("x: f64, c: f64", "x: f64"))
    for name in ("pulled", "more"):
        first = r.choice([*counts])
        parts = [f"r{i}" for i in range(counts[first])]
        args = r.choices(["c", "x", *parts, parts[-1], parts[-1]], k=2)
        unread = {"c", *parts} - {*args}
        lines = let(parts, first, "x") + let(["g"], "back", ", ".join(args))
        texts.append(f"{head(name, 1)}{lines}{drops(unread)}(g;)")
    lines, made = "", list[str]()
    for k in range(4):
        name = r.choice([*counts, "pulled", "more"])
        now = [f"r{i}" if f"r{i}" not in made else f"v{k}{i}" for i in range(counts.get(name, 1))]
        x = r.choice("xxc")
        lines += let(now, name, x if name in counts else f"{x}, c")
        made += now
    texts.append(f"{head('f', len(made))}{lines}{drops({'x', 'c'})}({', '.join(made)};)")
    return "\n".join(texts)


def test_what_is_joined_is_well_typed_and_has_the_same_values() -> None:
    joined = 0
    for seed in range(600):
        p = check(parse(random_halves(seed), sugar=True))
        made = check(one_primal(p, "f"))
        joined += made.defs["f"] is not p.defs["f"]
        ours, expected = [run(q, "f", 0.3, 0.7, engine="interpreter").results for q in (made, p)]
        assert ours == expected, seed
    assert joined > 5  # most are no vjp: their tape is a result, or read beside the others


def test_a_definition_follows_itself_whatever_it_ends_in() -> None:
    values = Values(check(parse("def f(x: f64;) -> (f64;) = x * x")))
    assert values.follow("f", "f")


def test_what_prints_is_not_joined(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(x: Any) -> Any:
        print(x[0])
        return np.sum(np.sin(x))

    before, after = before_and_after(printed)
    assert before == after
    assert capsys.readouterr().out == "0.1\n0.1\n"

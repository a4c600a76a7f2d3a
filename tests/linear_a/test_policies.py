"""Checkpoint policies choose what is stored; derivatives do not depend on them  (P6, P11)."""

import random
from itertools import islice

import numpy as np
import pytest
from memory_programs import arguments, chain, diamonds, layers, views

from lineara.engines import Ask, Meter, run
from lineara.errors import ProgramError
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse
from lineara.linear_a.syntax import Drop, Let, functions
from lineara.passes.derivatives import vjp
from lineara.passes.jvp import jvp
from lineara.passes.minimal_tape import budget, every, minimal_tape, minimal_tape_but, swept
from lineara.passes.store_policies import (
    Costs,
    is_view,
    price,
    primitive,
    recompute_all,
    recompute_calls,
    save_contractions,
    save_only_named,
)
from lineara.passes.unzip import Cut, store_all, unzip

NAMED = """
def f(x: f64[4];) -> (f64[4];) =
  let a: f64[4] = sin(x) in
  let b: f64[4] = checkpoint_name[name='b'](a) in
  let c: f64[4] = exp(b) in
  let d: f64[4] = checkpoint_name[name='d'](c) in
  let e: f64[4] = cos(d) in
  e * d
"""
LOOP = """
def step(k: f64[4], c: f64[4], x: f64[4];) -> (f64[4], f64[4];) =
  let a: f64[4] = c * k in
  let b: f64[4] = sin(a) in
  let d: f64[4] = b + x in
  (d, b;)

def f(k: f64[4], c: f64[4], x: f64[7,4];) -> (f64[4], f64[7,4];) =
  scan[step, 7, fwd, 1, 1, 0](k, c, x;)
"""
TEXTS = {
    "chain": chain(6, 4),
    "diamonds": diamonds(3, 4),
    "layers": layers(4),
    "views": views(4),
    "named": NAMED,
    "loop": LOOP,
}
POLICIES = {
    "store_all": store_all,
    "recompute_all": recompute_all,
    "save_contractions": save_contractions,
    "save_only_named": save_only_named(),
    "recompute_calls": recompute_calls(),
    "recompute_all and calls": recompute_calls(rest=recompute_all),
    "minimal_tape": minimal_tape,
    "budget": budget(100_000),
}


def tape_bytes(p, name="f"):
    return Costs(p).bytes(p.types[f"{name}.jvp.tape"])


def cuts(p, name):
    """What policies are asked, by definition."""
    found: dict[str, Cut] = {}

    def spy(cut):
        found[cut.name] = cut
        return set()

    unzip(p, name, spy)
    return found


# --- the same derivatives -----------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_derivatives_are_the_same_under_every_policy(name):
    p = parse(TEXTS[name])
    want = None
    for policy in POLICIES.values():
        q = check(vjp(p, "f", policy))
        found = run(q, "f.vjp", *arguments(q, "f.vjp"))
        got = [*found.results, *found.lresults]
        want = want or got
        for a, b in zip(want, got, strict=True):
            np.testing.assert_array_equal(a, b)
        assert str(parse(str(q))) == str(q)


def drops(p, names):
    """The work of the drops in some definitions."""
    return sum(
        Costs(p).work(b)
        for n in names
        for b in p.defs[n].body.bindings
        if isinstance(b, Let) and isinstance(b.rhs, Drop)
    )


def depth(p, name):
    called = [f for f in functions(p.defs[name].body) if f.endswith(".jvp")]
    return 1 + max([depth(p, f) for f in called], default=-1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["chain", "diamonds", "layers", "views", "named"])
def test_work_is_bounded(name, policy):
    p = jvp(parse(TEXTS[name]), "f")
    q = unzip(p, "f.jvp", POLICIES[policy])
    costs = Costs(q)
    both = costs.definition("f.jvp.nl") + costs.definition("f.jvp.lin")
    dropped = drops(q, [n for n in q.defs if n.endswith((".nl", ".lin"))])
    bound = (depth(p, "f.jvp") + 2) * costs.definition("f.jvp")
    assert both - dropped <= bound
    if policy == "store_all":
        assert both == costs.definition("f.jvp")


@pytest.mark.parametrize("name", TEXTS)
def test_work_known_from_the_text_is_the_work_that_is_counted(name):
    p = vjp(parse(TEXTS[name]), "f", minimal_tape)
    for what in ("f", "f.vjp"):
        assert Costs(p).definition(what) == run(p, what, *arguments(p, what)).work


# --- what each policy stores --------------------------------------------------------------------


def test_recompute_all_stores_the_arguments():
    assert tape_bytes(vjp(parse(chain(9, 4)), "f", recompute_all)) == 32
    assert tape_bytes(vjp(parse(chain(9, 4)), "f")) == 9 * 32


def test_save_only_named_stores_what_has_a_name():
    p = parse(NAMED)
    found = [
        str(vjp(p, "f", save_only_named(*names)).types["f.jvp.tape"]).count("f64[4]")
        for names in ((), ("b",), ("nobody",))
    ]
    assert found == [3, 2, 1]  # the argument is stored as well


def test_save_contractions_stores_the_products():
    p = parse(layers(4))
    q = vjp(p, "f", save_contractions)
    bindings = q.defs["layer.jvp.lin"].body.bindings
    again = [e.name for b in bindings if (e := primitive(b)) and not b.vars[0].linear]
    assert again.count("tanh") == 1
    assert "matmul" not in again


def test_a_call_that_is_run_again_stores_its_arguments():
    p = parse(
        chain(9, 4).replace("def f", "def g")
        + "\ndef f(x: f64[4];) -> (f64[4];) = let a: f64[4] = g(x;) in g(a;)"
    )
    assert tape_bytes(vjp(p, "f")) == 18 * 32
    q = vjp(p, "f", recompute_calls("g"))
    assert tape_bytes(q) == 2 * 32
    again = q.defs["f.jvp.nl"].body
    assert {f for f in functions(again)} == {"g"}  # the primal: no tape is made and dropped


# --- minimal tape -------------------------------------------------------------------------------


def random_program(rng):
    """f of a few vectors of several lengths, each step a function, a product or two in a row."""
    lengths = [1, 2, 3, 5]
    known = [(f"x{i}", rng.choice(lengths)) for i in range(rng.randint(1, 2))]
    formals = ", ".join(f"{x}: f64[{n}]" for x, n in known)
    lets, used = [], set()
    for i in range(rng.randint(3, 6)):
        x, n = rng.choice(known[-3:])
        others = [v for v in known if v[1] == n]
        match rng.randint(0, 2):
            case 0:
                e, m = f"{rng.choice(['sin', 'exp', 'tanh'])}({x})", n
            case 1:
                y = rng.choice(others)[0]
                used.add(y)
                e, m = f"{x} * {y}", n
            case _:
                e, m = f"concat[axis=0]({x}, {x})", 2 * n
        used.add(x)
        lets.append(f"let v{i}: f64[{m}] = {e} in")
        known.append((f"v{i}", m))
    rest = [(x, n) for x, n in known if x not in used]
    names, types = ", ".join(x for x, _ in rest), ", ".join(f"f64[{n}]" for _, n in rest)
    return "def f({};) -> ({};) =\n{}\n({};)".format(formals, types, "\n".join(lets), names)


SEEDS = range(40)


def small_cuts():
    for seed in SEEDS:
        p = jvp(parse(random_program(random.Random(seed))), "f")
        cut = cuts(p, "f.jvp")["f.jvp"]
        few = [b for b in cut.context if not is_view(b)]
        if len(few) <= 9:
            yield cut, few


def test_the_minimal_tape_is_the_smallest_of_all():
    tried = 0
    for cut, few in small_cuts():
        costs = Costs(cut.program)
        best = min(price(cut, again, costs).bytes for again in every(cut, few))
        assert price(cut, minimal_tape(cut), costs).bytes == best
        tried += 1
    assert tried >= 12


def test_what_is_kept_is_not_computed_again():
    for cut, few in small_cuts():
        costs = Costs(cut.program)
        kept = set(few[::2])
        again = minimal_tape_but(kept.__contains__)(cut)
        assert not again & kept
        best = min(price(cut, a, costs).bytes for a in every(cut, few[1::2]))
        assert price(cut, again, costs).bytes == best


# --- a budget -----------------------------------------------------------------------------------


def test_a_budget_does_the_least_work_again():
    for cut, few in islice(small_cuts(), 12):
        costs = Costs(cut.program)
        every_price = [price(cut, again, costs) for again in every(cut, few)]
        least = min(every_price).bytes
        for room in (least, least + 24):
            best = min(p.work for p in every_price if p.bytes <= room)
            found = price(cut, budget(room)(cut), costs)
            assert found.bytes <= room
            assert found.work == best
            tried = [price(cut, again, costs) for again in swept(cut, costs, room)]
            assert min(p.work for p in tried if p.bytes <= room) >= best


def test_a_budget_gets_better_with_room():
    p = parse(chain(40, 4))
    found = []
    for arrays in (1, 5, 10, 20, 40):
        q = vjp(p, "f", budget(32 * arrays))
        assert tape_bytes(q) <= 32 * arrays
        found.append(Costs(q).definition("f.vjp"))
    assert found == sorted(found, reverse=True)
    assert found[-1] == Costs(vjp(p, "f")).definition("f.vjp")


def test_a_budget_may_be_a_text():
    p = parse(chain(40, 4))
    assert vjp(p, "f", budget("320 B")) == vjp(p, "f", budget(320))
    with pytest.raises(ProgramError, match="'many' is no size; write bytes, or a text such as"):
        budget("many")


def test_a_budget_that_nothing_fits_says_what_would():
    with pytest.raises(ProgramError, match=r"tape of f\.jvp has 32 bytes, more than the 8 of"):
        vjp(parse(chain(3, 4)), "f", budget(8))


def test_memory_falls_with_the_tape():
    """What is computed again stands just before its use, so a stretch of it is alive at a time."""
    p = parse(chain(64, 1000))

    def peak(policy):
        q, meter = vjp(p, "f", policy), Meter()
        run(q, "f.vjp", *arguments(q, "f.vjp"), ask=Ask(meter=meter))
        return meter.peak / 8000

    def eighths(cut):
        return {b for i, b in enumerate(cut.context) if is_view(b) or i % 24}

    assert peak(store_all) >= 64
    assert peak(eighths) <= 8 + 8 + 6

"""(a2) The lookups of (a) under nested loops and a branch: 32 × 32 of them, half are taken."""

import math

import numpy as np

from ..table import Call, Growth, Row, Table

SIDE = 32


def inputs(n: int) -> tuple:
    """n numbers, a square of places, a square of booleans."""
    rng = np.random.default_rng(0)
    square = (SIDE, SIDE)
    return rng.standard_normal(n), rng.integers(0, n, square), rng.random(square) < 0.5


def lineara_branch(x: np.ndarray, places: np.ndarray, taken: np.ndarray) -> Call:
    import lineara

    rows, flags = places.tolist(), taken.tolist()

    def f(x):
        s = 0.0
        for r in range(SIDE):
            for c in range(SIDE):
                if flags[r][c]:
                    s = s + math.sin(x[rows[r][c]])
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(x)


def lineara_branch_sparse(x: np.ndarray, places: np.ndarray, taken: np.ndarray) -> Call:
    import lineara

    rows, flags = places.tolist(), taken.tolist()

    def f(x):
        s = 0.0
        for r in range(SIDE):
            for c in range(SIDE):
                if flags[r][c]:
                    s = s + math.sin(x[rows[r][c]])
        return s

    gradient = lineara.grad(f, sparse=True)
    return lambda: gradient(x)


def torch_branch(x: np.ndarray, places: np.ndarray, taken: np.ndarray) -> Call:
    import torch

    x = torch.from_numpy(x).requires_grad_()
    rows, flags = places.tolist(), taken.tolist()

    def call():
        x.grad = None
        s = 0.0
        for r in range(SIDE):
            for c in range(SIDE):
                if flags[r][c]:
                    s = s + torch.sin(x[rows[r][c]])
        s.backward()
        return x.grad

    return call


def autograd_branch(x: np.ndarray, places: np.ndarray, taken: np.ndarray) -> Call:
    import autograd
    import autograd.numpy as anp

    rows, flags = places.tolist(), taken.tolist()

    def f(x):
        s = 0.0
        for r in range(SIDE):
            for c in range(SIDE):
                if flags[r][c]:
                    s = s + anp.sin(x[rows[r][c]])
        return s

    gradient = autograd.grad(f)
    return lambda: gradient(x)


def _nested(x, places, taken):
    """JAX: two fori_loops; the branch is a factor."""
    import jax
    import jax.numpy as jnp

    def row(r, s):
        return jax.lax.fori_loop(
            0, SIDE, lambda c, s: s + taken[r, c] * jnp.sin(x[places[r, c]]), s
        )

    return jax.lax.fori_loop(0, SIDE, row, 0.0)


def _cond(x, places, taken):
    """JAX: two fori_loops; the branch is a `lax.cond`."""
    import jax
    import jax.numpy as jnp

    def row(r, s):
        def one(c, s):
            return jax.lax.cond(taken[r, c], lambda s: s + jnp.sin(x[places[r, c]]), lambda s: s, s)

        return jax.lax.fori_loop(0, SIDE, one, s)

    return jax.lax.fori_loop(0, SIDE, row, 0.0)


def _with_grad(program):
    """`jax.jit(jax.grad(program))`."""

    def build(x, places, taken):
        import jax
        import jax.numpy as jnp

        gradient = jax.jit(jax.grad(program))
        arguments = jnp.asarray(x), jnp.asarray(places), jnp.asarray(taken)
        return lambda: jax.block_until_ready(gradient(*arguments))

    return build


def _with_refs(program):
    """`jax.vjp(...).with_refs(ref)`: the caller owns a dense buffer, which the gradient adds to."""

    def build(x, places, taken):
        import jax
        import jax.numpy as jnp

        x, places, taken = jnp.asarray(x), jnp.asarray(places), jnp.asarray(taken)
        ref = jax.new_ref(jnp.zeros_like(x))

        @jax.jit
        def accumulate(x, ref):
            y, pullback = jax.vjp(lambda x: program(x, places, taken), x)
            pullback.with_refs(ref)(jnp.ones_like(y))
            return y

        def call():
            jax.block_until_ready(accumulate(x, ref))
            return ref

        return call

    return build


def walk_inputs(n: int) -> tuple:
    """n numbers, and a square of steps."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(n), rng.integers(1, n, (SIDE, SIDE))


def lineara_walk(x: np.ndarray, steps: np.ndarray) -> Call:
    import lineara

    n, rows = len(x), steps.tolist()

    def f(x):
        s, at = 0.0, 0
        for r in range(SIDE):
            for c in range(SIDE):
                at = (at + rows[r][c]) % n
                s = s + math.sin(x[at])
        return s

    gradient = lineara.grad(f)
    return lambda: gradient(x)


def jax_walk(x: np.ndarray, steps: np.ndarray) -> Call:
    import jax
    import jax.numpy as jnp

    n = len(x)

    def f(x, steps):
        def row(r, state):
            def one(c, state):
                s, at = state
                at = (at + steps[r, c]) % n
                return s + jnp.sin(x[at]), at

            return jax.lax.fori_loop(0, SIDE, one, state)

        return jax.lax.fori_loop(0, SIDE, row, (0.0, 0))[0]

    gradient = jax.jit(jax.grad(f))
    x, steps = jnp.asarray(x), jnp.asarray(steps)
    return lambda: jax.block_until_ready(gradient(x, steps))


GRAD, COND = "JAX jit nested fori_loop", "JAX jit lax.cond"
GRAD_REFS, COND_REFS = "JAX jit nested with_refs", "JAX jit cond with_refs"

TABLES = (
    Table(
        key="a2",
        title="the same lookups in 32 × 32 with a branch; the whole gradient",
        inputs=inputs,
        small={"n": 200},
        ours={"lineara": lineara_branch, "lineara sparse": lineara_branch_sparse},
        peers={
            GRAD: _with_grad(_nested),
            COND: _with_grad(_cond),
            GRAD_REFS: _with_refs(_nested),
            COND_REFS: _with_refs(_cond),
            "torch": torch_branch,
            "autograd": autograd_branch,
        },
        rows=(
            Row({"n": 10_000}, {"lineara": 0.54, GRAD: 0.10, COND: 2.06}, also=("autograd",)),
            Row(
                {"n": 100_000},
                {
                    "lineara": 0.53,
                    GRAD: 1.47,
                    COND: 31.8,
                    GRAD_REFS: 0.24,
                    COND_REFS: 0.28,
                    "torch": 39,
                },
                also=("autograd",),
            ),
            Row(
                {"n": 1_000_000},
                {
                    "lineara": 0.53,
                    GRAD: 21.3,
                    COND: 206,
                    GRAD_REFS: 0.18,
                    COND_REFS: 0.25,
                    "torch": 398,
                },
                also=("autograd",),
            ),
            Row(
                {"n": 10_000_000},
                {"lineara": 0.55, GRAD: 512, GRAD_REFS: 0.17, COND_REFS: 0.33},
                also=("autograd",),
                long=(COND,),
                quick=False,
            ),
        ),
        growth=(Growth("n", 0.05, judged=("lineara", "lineara sparse")),),
        note="with_refs is given a dense buffer of n numbers by the caller; nobody zeroes it.",
    ),
    Table(
        key="a2",
        title="32 × 32 lookups, the place depends on the state of the loop; the whole gradient",
        inputs=walk_inputs,
        small={"n": 200},
        ours={"lineara": lineara_walk},
        peers={GRAD: jax_walk},
        rows=(
            Row({"n": 10_000}, {"lineara": 0.54, GRAD: 0.13}),
            Row({"n": 100_000}, {"lineara": 0.53, GRAD: 1.15}),
            Row({"n": 1_000_000}, {"lineara": 0.53, GRAD: 8.6}),
            Row({"n": 10_000_000}, {"lineara": 0.55, GRAD: 528}, quick=False),
        ),
        growth=(Growth("n", 0.05),),
        note="All 1,024 lookups are taken; the published time of ours is of the program above, "
        "which takes half of them.",
    ),
)

"""Programs whose memory is measured and predicted: chains, diamonds, layers, reads."""

import numpy as np

from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program


def chain(length: int, n: int) -> str:
    """f applies sin, again and again."""
    lets = [f"  let x{i + 1}: f64[{n}] = sin(x{i}) in" for i in range(length)]
    head = f"def f(x0: f64[{n}];) -> (f64[{n}];) ="
    return "\n".join([head, *lets, f"  (x{length};)"])


def diamonds(length: int, n: int) -> str:
    """Every value is used twice."""
    lets = [
        f"  let a{i}: f64[{n}] = sin(x{i}) in\n"
        f"  let b{i}: f64[{n}] = exp(x{i}) in\n"
        f"  let x{i + 1}: f64[{n}] = a{i} * b{i} in"
        for i in range(length)
    ]
    head = f"def f(x0: f64[{n}];) -> (f64[{n}];) ="
    return "\n".join([head, *lets, f"  (x{length};)"])


def layers(n: int) -> str:
    """A network of three layers, two of which share their weights."""
    t = f"f64[{n},{n}]"
    return f"""
def layer(w: {t}, x: {t};) -> ({t};) =
  let y: {t} = matmul(w, x) in
  tanh(y)

def f(w: {t}, v: {t}, x: {t};) -> ({t};) =
  let a: {t} = layer(w, x;) in
  let b: {t} = layer(v, a;) in
  let s: {t} = a + b in
  layer(w, s;)
"""


def views(n: int) -> str:
    """Rows are read, shapes change, sums are broadcast."""
    return f"""
def f(x: f64[{n},{n}];) -> (f64[{n},{n}];) =
  let y: f64[{n * n}] = reshape[shape=({n * n},)](x) in
  let z: f64[{n * n}] = exp(y) in
  let m: f64[{n},{n}] = reshape[shape=({n},{n})](z) in
  let t: f64[{n},{n}] = permute_dims[axes=(1,0)](m) in
  let r: f64[{n}] = index[at=(3,)](t) in
  let q: f64[{n}] = sin(r) in
  let b: f64[{n},{n}] = broadcast_to[shape=({n},{n})](q) in
  let c: f64[{n},{n}] = b * m in
  c * x
"""


def loop(length: int, n: int) -> str:
    """A recurrence with an invariant and a stacked result."""
    return f"""
def step(k: f64[{n}], c: f64[{n}];) -> (f64[{n}], f64[{n}];) =
  let a: f64[{n}] = c * k in
  let b: f64[{n}] = sin(a) in
  let d: f64[{n}] = exp(b) in
  (b, d;)

def f(k: f64[{n}], c: f64[{n}];) -> (f64[{n}], f64[{length},{n}];) =
  scan[step, {length}, fwd, 1, 1, 0](k, c;)
"""


PROGRAMS = {
    "a chain of one": chain(1, 50_000),
    "a chain": chain(12, 50_000),
    "diamonds": diamonds(5, 50_000),
    "layers": layers(200),
    "views": views(400),
    "loop": loop(9, 50_000),
}


def program(name: str) -> Program:
    """The program of that name, with a definition f."""
    return parse(PROGRAMS[name])


def arguments(p: Program, name: str) -> list[np.ndarray]:
    """Arrays for the formals of a definition."""
    rng = np.random.default_rng(7)
    return [rng.uniform(0.1, 0.4, v.type.shape) for v in p.defs[name].params]  # type: ignore

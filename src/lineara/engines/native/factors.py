"""Small square matrices: solutions, determinants and Cholesky factors, by functions of the module.

    factor.n          a becomes L and U of its rows exchanged; gives whether a pivot is zero or
                      not finite
    solve.n.m         b becomes the solution, of a factored matrix or of its transpose
    triangular.n.m    b becomes the solution for one triangle
    cholesky.n        y becomes the lower factor; gives whether there is none

The algorithms are LAPACK's without blocks: the largest element of a column is the pivot, and every
sum is made one term after the other.  Matrices larger than SMALL are LAPACK's (lapack.py).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lineara.engines.native import numbers as nm
from lineara.engines.native.code import Code
from lineara.engines.native.emit import Emitter
from lineara.engines.native.scalars import intrinsic, of_c
from lineara.engines.native.strided import Plain, type_of
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

SMALL = 24


class Function(Code):
    """A function of the module that is being written."""

    title: str
    flag: bool

    def __init__(self, name: str, parameters: Sequence[str], flag: bool) -> None:
        super().__init__()
        self.label = "entry"
        self.head: str = ", ".join([f"ptr %{p}" for p in parameters])
        self.title, self.flag = name, flag
        self.attribute = ""
        if flag:
            self.bad: str = self.let("alloca i1")
            self.line(f"store i1 false, ptr {self.bad}")

    def place(self, base: str, n: int, i: str, j: str) -> str:
        """The address of an element of a matrix with n columns."""
        row = self.let(f"mul nsw i64 {i}, {n}")
        at = self.let(f"add nsw i64 {row}, {j}")
        return self.let(f"getelementptr inbounds double, ptr {base}, i64 {at}")

    def load(self, place: str) -> str:
        """A number."""
        return self.let(f"load double, ptr {place}")

    def less(self, place: str, x: str, y: str) -> None:
        """Take x · y from what is at a place."""
        rest = self.let(f"fsub double {self.load(place)}, {self.let(f'fmul double {x}, {y}')}")
        self.line(f"store double {rest}, ptr {place}")

    def note(self, bad: str) -> None:
        """Something that must not be."""
        now = self.let(f"load i1, ptr {self.bad}")
        self.line(f"store i1 {self.let(f'or i1 {now}, {bad}')}, ptr {self.bad}")

    def exchanged(self, base: str, m: int, i: str, j: str) -> None:
        """Rows i and j take each other's place."""
        with self.loop("0", str(m)) as c:
            first, second = self.place(base, m, i, c), self.place(base, m, j, c)
            x, y = self.load(first), self.load(second)
            self.line(f"store double {y}, ptr {first}")
            self.line(f"store double {x}, ptr {second}")

    def pivot(self, i: str) -> str:
        """The address of the row that row i was exchanged with."""
        return self.let(f"getelementptr inbounds i64, ptr %p, i64 {i}")

    def swept(self, n: int, m: int, forward: bool, turned: bool, unit: bool) -> None:
        """b becomes the solution for one triangle of a, or of its transpose."""
        with self.loop("0", str(n)) as t:
            i = t if forward else self.let(f"sub nsw i64 {n - 1}, {t}")
            after = self.let(f"add nsw i64 {i}, 1")
            with self.loop("0", i) if forward else self.loop(after, str(n)) as k:
                x = self.load(self.place("%a", n, k, i) if turned else self.place("%a", n, i, k))
                with self.loop("0", str(m)) as j:
                    self.less(self.place("%b", m, i, j), x, self.load(self.place("%b", m, k, j)))
            if not unit:
                by = self.load(self.place("%a", n, i, i))
                with self.loop("0", str(m)) as j:
                    place = self.place("%b", m, i, j)
                    y = self.let(f"fdiv double {self.load(place)}, {by}")
                    self.line(f"store double {y}, ptr {place}")

    def whole(self) -> str:
        """The function's text."""
        kind, value = ("i1", self.let(f"load i1, ptr {self.bad}")) if self.flag else ("void", "")
        head = f'define internal {kind} @"{self.title}"({self.head}) {self.attribute}{{\nentry:'
        return "\n".join([head, *self.lines, f"  ret {kind} {value}".rstrip(), "}"])


def factor(n: int) -> Function:
    """L and U, and the rows that were exchanged."""
    f = Function(f"lineara.factor.{n}", "ap", True)
    best, size = f.let("alloca i64"), f.let("alloca double")
    absolute = '@"llvm.fabs.f64"'
    with f.loop("0", str(n)) as k:
        f.line(f"store i64 {k}, ptr {best}")
        first = f.let(f"call double {absolute}(double {f.load(f.place('%a', n, k, k))})")
        f.line(f"store double {first}, ptr {size}")
        after = f.let(f"add nsw i64 {k}, 1")
        with f.loop(after, str(n)) as i:
            x = f.let(f"call double {absolute}(double {f.load(f.place('%a', n, i, k))})")
            most, at = f.load(size), f.let(f"load i64, ptr {best}")
            more = f.let(f"fcmp ogt double {x}, {most}")
            most = f.let(f"select i1 {more}, double {x}, double {most}")
            f.line(f"store double {most}, ptr {size}")
            f.line(f"store i64 {f.let(f'select i1 {more}, i64 {i}, i64 {at}')}, ptr {best}")
        row = f.let(f"load i64, ptr {best}")
        f.line(f"store i64 {row}, ptr {f.pivot(k)}")
        f.exchanged("%a", n, k, row)
        by = f.load(f.place("%a", n, k, k))
        most = f.let(f"call double {absolute}(double {by})")
        ordinary = f.let(f"fcmp one double {most}, 0.0")
        finite = f.let(f"fcmp olt double {most}, 0x7FF0000000000000")
        f.note(f.let(f"xor i1 {f.let(f'and i1 {ordinary}, {finite}')}, true"))
        with f.loop(after, str(n)) as i:
            place = f.place("%a", n, i, k)
            x = f.let(f"fdiv double {f.load(place)}, {by}")
            f.line(f"store double {x}, ptr {place}")
            with f.loop(after, str(n)) as j:
                f.less(f.place("%a", n, i, j), x, f.load(f.place("%a", n, k, j)))
    return f


def solve(n: int, m: int, adjoint: bool) -> Function:
    """The solution for a factored matrix."""
    f = Function(f"lineara.solve.{n}.{m}.{adjoint}", "apb", False)
    if not adjoint:
        with f.loop("0", str(n)) as k:
            f.exchanged("%b", m, k, f.let(f"load i64, ptr {f.pivot(k)}"))
    f.swept(n, m, True, adjoint, not adjoint)
    f.swept(n, m, False, adjoint, adjoint)
    if adjoint:
        with f.loop("0", str(n)) as t:
            k = f.let(f"sub nsw i64 {n - 1}, {t}")
            f.exchanged("%b", m, k, f.let(f"load i64, ptr {f.pivot(k)}"))
    return f


def triangular(n: int, m: int, lower: bool, adjoint: bool) -> Function:
    """The solution for a triangle; gives whether a number of the diagonal is zero."""
    f = Function(f"lineara.triangular.{n}.{m}.{lower}.{adjoint}", "ab", True)
    with f.loop("0", str(n)) as i:
        f.note(f.let(f"fcmp oeq double {f.load(f.place('%a', n, i, i))}, 0.0"))
    f.swept(n, m, lower != adjoint, adjoint, False)
    return f


def cholesky(n: int) -> Function:
    """The lower factor, of the lower triangle of a; above it y is zero already."""
    f = Function(f"lineara.cholesky.{n}", "ay", True)
    with f.loop("0", str(n)) as i:
        after = f.let(f"add nsw i64 {i}, 1")
        with f.loop("0", after) as j:
            place = f.place("%y", n, i, j)
            f.line(f"store double {f.load(f.place('%a', n, i, j))}, ptr {place}")
            with f.loop("0", j) as k:
                f.less(place, f.load(f.place("%y", n, i, k)), f.load(f.place("%y", n, j, k)))
            rest = f.load(place)
            ends = f.let(f"icmp eq i64 {i}, {j}")
            root = f.let(f'call double @"llvm.sqrt.f64"(double {rest})')
            by = f.let(f"fdiv double {rest}, {f.load(f.place('%y', n, j, j))}")
            f.note(f.let(f"and i1 {ends}, {f.let(f'fcmp ule double {rest}, 0.0')}"))
            value = f.let(f"select i1 {ends}, double {root}, double {by}")
            f.line(f"store double {value}, ptr {place}")
    return f


# --- primitives -----------------------------------------------------------------------------------

Slow = Callable[[], nm.Held]


def called(em: Emitter, f: Function, places: Sequence[str]) -> str:
    """The call of a function of the module; gives the register of its flag."""
    em.helpers[f.title] = em.helpers.get(f.title) or f.whole()
    given = ", ".join([f"ptr {p}" for p in places])
    if f.flag:
        return em.let(f'call i1 @"{f.title}"({given})')
    em.line(f'call void @"{f.title}"({given})')
    return ""


@contextmanager
def unless(em: Emitter, bad: str, y: nm.Arr, args: Sequence[nm.Held], slow: Slow) -> Iterator[None]:
    """Code for y where nothing is bad; where something is, Python makes it, or raises."""
    fine, no, on = em.name("fine"), em.name("no"), em.name("on")
    em.branch(bad, no, fine)
    em.block(no)
    with em.kept([y, *args]):
        value = slow()
    assert isinstance(value, nm.Arr), "it has axes"
    em.copy(value, y)
    em.jump(on)
    em.block(fine)
    yield
    em.jump(on)
    em.block(on)


def suits(*args: Plain) -> bool:
    """Whether these are matrices of floats with no more rows than is small."""
    types = [type_of(x) for x in args]
    return all([t.ndim == 2 and nm.kind_of(t) == "f64" and 0 < t.shape[0] <= SMALL for t in types])


def copied(em: Emitter, x: Plain, args: Sequence[nm.Held]) -> nm.Arr:
    """A matrix that may be written, while others stay."""
    assert isinstance(x, nm.Arr), "it has axes"
    with em.kept([x, *args]):
        y = em.array(x.type)
    em.copy(x, y)
    return y


def factored(em: Emitter, e: ir.Prim, args: Sequence[Plain]) -> tuple[nm.Arr, str, str]:
    """L and U, the rows that were exchanged, and whether a pivot is zero.

    What one line of a block has factored no later one factors again.
    """
    known = em.remembered[-1].get(e.args[0])
    if known is None:
        lu = copied(em, args[0], args)
        pivots = em.at_entry(f"alloca [{lu.type.shape[0]} x i64]")
        bad = called(em, factor(lu.type.shape[0]), [em.address(lu), pivots])
        known = nm.Tup((lu, nm.Num("i64", pivots), nm.Num("bool", bad)))
        em.remembered[-1][e.args[0]] = known
    lu, pivots, bad = known.items
    assert isinstance(lu, nm.Arr)
    assert isinstance(pivots, nm.Num)
    assert isinstance(bad, nm.Num)
    return lu, pivots.register, bad.register


def solved(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """X with A X = B, or with the transpose of A."""
    if not suits(*args) or not t.size:
        return None
    b = args[1]
    lu, pivots, bad = factored(em, e, args)
    y = copied(em, b, [lu, *args])
    with unless(em, bad, y, [lu, *args], slow):
        f = solve(t.shape[0], t.shape[1], bool(e.params.get("adjoint")))
        called(em, f, [em.address(lu), pivots, em.address(y)])
    return y


def inverted(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The inverse; times the determinant, if that is asked for."""
    if not suits(*args):
        return None
    n = t.shape[0]
    lu, pivots, bad = factored(em, e, args)
    with em.kept([lu, *args]):
        y = em.array(t)
    with unless(em, bad, y, [lu, *args], slow):
        em.cleared(y)
        value = determinant(em, lu, pivots) if e.name == "adjugate" else None
        with em.each(n) as i:
            assert i.affine is not None
            em.store(nm.constant("f64", 1.0), y, nm.Num("i64", affine=i.affine.times(n + 1)))
        called(em, solve(n, n, False), [em.address(lu), pivots, em.address(y)])
        if value is not None:
            with em.each(t.size) as i:
                x = em.let(f"fmul double {em.text(em.load(y, i))}, {em.text(value)}")
                em.store(nm.Num("f64", x), y, i)
    return y


def determinant(em: Emitter, lu: nm.Arr, pivots: str, what: str = "det") -> nm.Num:
    """The product of the diagonal of U, with the sign of the exchanges; its sign, or its logarithm.

    The logarithm is the sum of those of the sizes, which are neither zero nor too large.
    """
    n = lu.type.shape[0]
    cell = em.at_entry("alloca double")
    plus = "fadd" if what == "logabsdet" else "fmul"
    em.line(f"store double {'0.0' if what == 'logabsdet' else '1.0'}, ptr {cell}")
    with em.each(n) as i:
        assert i.affine is not None
        x = em.text(em.load(lu, nm.Num("i64", affine=i.affine.times(n + 1))))
        if what == "logabsdet":
            size = intrinsic("fabs")(em, "f64", [nm.Num("f64", x)])
            assert size is not None
            y = of_c(em, "log", [size])
            assert y is not None, "the C library has it"
            term = em.text(y)
        else:
            place = em.let(f"getelementptr inbounds i64, ptr {pivots}, i64 {em.text(i)}")
            row = em.let(f"load i64, ptr {place}")
            same = em.let(f"icmp eq i64 {row}, {em.text(i)}")
            term = em.let(f"select i1 {same}, double {x}, double {em.let(f'fneg double {x}')}")
            if what == "detsign":  # of each number, since the product may be too small for one
                of = [nm.constant("f64", 1.0), nm.Num("f64", term)]
                one = intrinsic("copysign", 2)(em, "f64", of)
                assert one is not None
                term = em.text(one)
        now = em.let(f"load double, ptr {cell}")
        em.line(f"store double {em.let(f'{plus} double {now}, {term}')}, ptr {cell}")
    return nm.Num("f64", em.let(f"load double, ptr {cell}"))


def determined(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The determinant, its sign, or the logarithm of its size."""
    if not suits(*args):
        return None
    lu, pivots, bad = factored(em, e, args)

    def number() -> nm.Num:
        with em.kept([lu, *args]):
            y = slow()
        assert isinstance(y, nm.Num)
        return y

    value = determinant(em, lu, pivots, e.name)
    return em.unless(em.let(f"xor i1 {bad}, true"), value, number)


def adjugated(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """det(A) A^-1, of 2 x 2 and 3 x 3 matrices from products of elements."""
    n = t.shape[0] if t.ndim == 2 else 0
    if not suits(*args) or n not in (2, 3):
        return inverted(em, e, args, t, slow)
    with em.kept(args):
        (a,) = em.in_order(args)
        assert isinstance(a, nm.Arr), "it has axes"
        with em.kept([a]):
            y = em.array(t)

    def element(i: int, j: int) -> str:
        return em.text(em.load(a, nm.constant("i64", i % n * n + j % n)))

    for i in range(n):
        for j in range(n):
            x = element(j + 1, i + 1)
            if n == 3:
                first = em.let(f"fmul double {x}, {element(j + 2, i + 2)}")
                second = em.let(f"fmul double {element(j + 1, i + 2)}, {element(j + 2, i + 1)}")
                x = em.let(f"fsub double {first}, {second}")
            elif i != j:
                x = em.let(f"fneg double {x}")
            em.store(nm.Num("f64", x), y, nm.constant("i64", i * n + j))
    return y


def of_triangle(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """X with A X = B for one triangle of A."""
    if not suits(*args) or not t.size:
        return None
    a, b = args
    assert isinstance(a, nm.Arr), "it has axes"
    y = copied(em, b, args)
    with em.kept([y, *args]):
        (a,) = em.in_order([a])
    assert isinstance(a, nm.Arr), "it has axes"
    f = triangular(t.shape[0], t.shape[1], bool(e.params["lower"]), bool(e.params.get("adjoint")))
    with unless(em, called(em, f, [em.address(a), em.address(y)]), y, args, slow):
        pass
    return y


def rooted(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The Cholesky factor."""
    if not suits(*args):
        return None
    with em.kept(args):
        y = em.array(t)
    em.cleared(y)
    with em.kept([y, *args]):
        (a,) = em.in_order(args)
    assert isinstance(a, nm.Arr), "it has axes"
    f = cholesky(t.shape[0])
    with unless(em, called(em, f, [em.address(a), em.address(y)]), y, args, slow):
        pass
    return y


OF_MATRICES = {
    "solve": solved,
    "linear_solve": solved,
    "inv": inverted,
    "adjugate": adjugated,
    **dict.fromkeys(("det", "detsign", "logabsdet"), determined),
    "triangular_solve": of_triangle,
    "linear_triangular": of_triangle,
    "cholesky": rooted,
}

__all__ = ["OF_MATRICES"]

"""Functorial frames: functors, natural transformations and adjunctions as parts of a diagram.

A frame labelled F has F of a diagram within, and F of its types at its ports.  What makes F a
functor are equations, each a pair of diagrams here and a step of `closed.py` there  [Diagrams]:

    F[id] = id           F[f ; g] = F[f] ; F[g]                        a functor
    F[f] ; θ_B = θ_A ; G[f]                                            θ is natural
    L[η_A] ; ε_LA = id   η_RB ; R[ε_B] = id                            L is left adjoint to R

>>> from lineara.diagrams.show import show
>>> from lineara.diagrams.parse import parse
>>> print(show(framed((Labelled("F"),), parse("(x: R) => y = sin(x) -> y"))))
(x1: 'F(R)') =>
  v1: 'F(R)' = frame["F"](x1) { (x2: R) =>
    v2 = sin(x2)
    -> v2 }
  -> v1
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lineara.diagrams.net import Net, Node, Wires, compose, copied, identity, tensor
from lineara.diagrams.parse import parse
from lineara.diagrams.types import Arrow, Foreign, Type, Types, show_all
from lineara.errors import DiagramError


@dataclass(frozen=True, slots=True)
class Labelled:
    """Any functor, of which only the name is known: F(A) is a type that nothing looks into."""

    label: str

    def on(self, types: Sequence[Type]) -> Types:
        """F of an object, which is a list of types."""
        return (_foreign(f"{self.label}({show_all(types)})"),)

    def meaning(self, body: Net) -> Net:
        """The diagram that a frame with that body stands for."""
        raise DiagramError(
            f"frame '{self.label}' is a functor of which only the name is known; its laws apply, "
            "but it stands for nothing else"
        )


@dataclass(frozen=True, slots=True)
class Beside:
    """The functor (- ⊗ X): a diagram beside wires of the types X.

    >>> from lineara.diagrams.types import R
    >>> Beside((R,)).label, len(Beside((R,)).on((R, R)))
    ('- ⊗ R', 3)
    """

    beside: Types

    @property
    def label(self) -> str:
        """What is written on the frame."""
        return f"- ⊗ {show_all(self.beside)}"

    def on(self, types: Sequence[Type]) -> Types:
        """A, X."""
        return (*types, *self.beside)

    def meaning(self, body: Net) -> Net:
        """The tensor is strict: bare wires beside the body."""
        return tensor(body, identity(self.beside))


@dataclass(frozen=True, slots=True)
class Hom:
    """The functor (X ⊸ -): what a function gives goes on through a diagram.

    >>> from lineara.diagrams.types import R
    >>> Hom((R,)).label, Hom((R,)).on((R, R)) == (Arrow((R,), (R, R)),)
    ('R ⊸ -', True)
    """

    source: Types

    @property
    def label(self) -> str:
        """What is written on the frame."""
        return f"{show_all(self.source)} ⊸ -"

    def on(self, types: Sequence[Type]) -> Types:
        """One wire, of functions from X to A."""
        return (Arrow(self.source, tuple(types)),)

    def meaning(self, body: Net) -> Net:
        """A box: the function on its arguments, then the body."""
        inner = Net()
        (f,) = self.on(body.takes)
        ins = [inner.input(t) for t in (f, *self.source)]
        inner.output(*inner.splice(copied(body), inner.add("eval", ins)))
        net = Net()
        net.output(*net.add("box", (net.input(f),), bodies=[inner]))
        return net


Functor = Labelled | Beside | Hom
Functors = tuple[Functor, ...]  # the outermost first; none is the identity


def functor_of(node: Node) -> Functor | None:
    """The functor of a frame; None for a node that is none.

    >>> from lineara.diagrams.types import R
    >>> (node,) = framed((Hom((R,)),), identity((R, R))).nodes.values()
    >>> functor_of(node) == Hom((R,))
    True
    """
    if node.kind != "frame" or len(node.bodies) != 1:
        return None
    if node.name.startswith("- ⊗ "):
        return Beside(_types(node.name.removeprefix("- ⊗ ")))
    if node.name.endswith(" ⊸ -"):
        return Hom(_types(node.name.removesuffix(" ⊸ -")))
    return Labelled(node.name)


def _types(text: str) -> Types:
    (arrow,) = parse(f"(f: ({text} -> R)) => -> f").takes
    assert isinstance(arrow, Arrow)
    return arrow.source


def applied(functors: Functors, types: Sequence[Type]) -> Types:
    """Functors, one of the other, on an object."""
    image = tuple(types)
    for f in reversed(functors):
        image = f.on(image)
    return image


def framed(functors: Functors, body: Net) -> Net:
    """A diagram in frames; the body is used up."""
    for f in reversed(functors):
        net = Net()
        ins = [net.input(t) for t in f.on(body.takes)]
        gives = f.on(body.gives)
        net.output(*net.add("frame", ins, name=f.label, bodies=[body], gives=gives))
        body = net
    return body


# --- natural transformations and adjunctions ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Natural:
    """θ: F => G, a node θ_A from F(A) to G(A) for every object A."""

    name: str
    source: Functors
    target: Functors

    def add(self, net: Net, types: Sequence[Type], ins: Wires) -> Wires:
        """The node θ_A; the counit of a closed category is `eval`."""
        if self.name == "eval":
            return net.add("eval", ins)
        return net.add("frame", ins, name=self.name, gives=applied(self.target, types))

    def at(self, types: Sequence[Type]) -> Net:
        """The diagram that is θ_A alone."""
        net = Net()
        ins = tuple([net.input(t) for t in applied(self.source, types)])
        net.output(*self.add(net, types, ins))
        return net

    def naturality(self, f: Net) -> tuple[Net, Net]:
        """F[f] ; θ_B = θ_A ; G[f].

        >>> from lineara.diagrams.parse import parse
        >>> theta = Natural("θ", (Labelled("F"),), (Labelled("G"),))
        >>> left, right = theta.naturality(parse("(x: R) => y = sin(x) -> y"))
        >>> left.takes == right.takes, left.gives == right.gives
        (True, True)
        """
        left = compose(framed(self.source, copied(f)), self.at(f.gives))
        return left, compose(self.at(f.takes), framed(self.target, copied(f)))


@dataclass(frozen=True, slots=True)
class Adjunction:
    """L -| R, with the unit η: Id => R L and the counit ε: L R => Id; a cup and a cap."""

    left: Functor
    right: Functor
    unit: Natural
    counit: Natural

    def triangles(self, a: Types, b: Types) -> tuple[tuple[Net, Net], tuple[Net, Net]]:
        """L[η_A] ; ε_LA = id, and η_RB ; R[ε_B] = id."""
        l_a, r_b = self.left.on(a), self.right.on(b)
        first = compose(framed((self.left,), self.unit.at(a)), self.counit.at(l_a))
        second = compose(self.unit.at(r_b), framed((self.right,), self.counit.at(b)))
        return (first, identity(l_a)), (second, identity(r_b))


def adjoint_functors(left: str, right: str) -> Adjunction:
    """Two functors by name, the first left adjoint to the second."""
    lower, upper = Labelled(left), Labelled(right)
    unit = Natural("η", (), (upper, lower))
    return Adjunction(lower, upper, unit, Natural("ε", (lower, upper), ()))


def closed(x: Types) -> Adjunction:
    """(- ⊗ X) -| (X ⊸ -): the unit is coeval, the counit eval."""
    lower, upper = Beside(x), Hom(x)
    unit = Natural("coeval", (), (upper, lower))
    return Adjunction(lower, upper, unit, Natural("eval", (lower, upper), ()))


# --- laws of functors, and of the tensor, which is one of two arguments ---------------------------


def keeps_identity(f: Functor, types: Types) -> tuple[Net, Net]:
    """F[id] = id."""
    return framed((f,), identity(types)), identity(f.on(types))


def keeps_composition(f: Functor, first: Net, second: Net) -> tuple[Net, Net]:
    """F[f ; g] = F[f] ; F[g]."""
    whole = framed((f,), compose(first, second))
    return whole, compose(framed((f,), copied(first)), framed((f,), copied(second)))


def grouped(a: Sequence[Type], b: Sequence[Type]) -> Type:
    """The one wire of a tensor that is not strict."""
    return _foreign(f"({show_all(a)}) ⊗ ({show_all(b)})")


def _foreign(text: str) -> Foreign:
    return Foreign(text.replace("'", ""))  # a name within the quoted name needs no quotes


def group(a: Types, b: Types) -> Net:
    """From the wires of A and of B to the one of A ⊗ B."""
    net = Net()
    ins = [net.input(t) for t in (*a, *b)]
    net.output(*net.add("frame", ins, name="group", gives=(grouped(a, b),)))
    return net


def ungroup(a: Types, b: Types) -> Net:
    """Back."""
    net = Net()
    w = net.input(grouped(a, b))
    net.output(*net.add("frame", (w,), name="ungroup", gives=(*a, *b)))
    return net


def both(f: Net, g: Net) -> Net:
    """The tensor as a bifunctor: a frame with two bodies, which are used up."""
    net = Net()
    w = net.input(grouped(f.takes, g.takes))
    gives = (grouped(f.gives, g.gives),)
    net.output(*net.add("frame", (w,), name="⊗", bodies=[f, g], gives=gives))
    return net


def strictly(f: Net, g: Net) -> tuple[Net, Net]:
    """f ⊗ g in one frame = ungroup ; f beside g ; group."""
    right = compose(ungroup(f.takes, g.takes), tensor(f, g), group(f.gives, g.gives))
    return both(copied(f), copied(g)), right


def groups_cancel(a: Types, b: Types) -> tuple[tuple[Net, Net], tuple[Net, Net]]:
    """group ; ungroup = id, and the other way round."""
    there, back = group(a, b), ungroup(a, b)
    one = compose(there, back), identity((*a, *b))
    return one, (compose(back, there), identity((grouped(a, b),)))


def both_keeps_identity(a: Types, b: Types) -> tuple[Net, Net]:
    """id ⊗ id = id."""
    return both(identity(a), identity(b)), identity((grouped(a, b),))


def both_keeps_composition(f: Net, g: Net, h: Net, k: Net) -> tuple[Net, Net]:
    """(f ; g) ⊗ (h ; k) = (f ⊗ h) ; (g ⊗ k)."""
    whole = both(compose(f, g), compose(h, k))
    return whole, compose(both(copied(f), copied(h)), both(copied(g), copied(k)))

"""What is no diagram is refused in words by every public function that takes one."""

import inspect

import pytest

from lineara import diagrams
from lineara.errors import DiagramError

NET = diagrams.parse("(x: R) => y = sin(x) -> y")
FITTING = {
    "Net": NET,
    "Foliation": diagrams.foliated(NET),
    "Derivation": diagrams.Derivation(NET),
    "str": "(x: R) => -> x",
}
OTHERS = [None, 3.0, b"bytes", abs]
OTHER_WORDS = {"Net", "Node", "Probes", "Wire", "gradient"}  # parts; one with an error of its own


def stated(f):
    """The parameters of a public function that must be given, and the names of their classes."""
    named = [
        (p.name, getattr(p.annotation, "__name__", ""))
        for p in inspect.signature(f).parameters.values()
        if p.default is p.empty
    ]
    return [(name, kind) for name, kind in named if kind in (*FITTING, "Sequence")]


@pytest.mark.parametrize("name", sorted({*diagrams.__all__} - OTHER_WORDS))
def test_what_is_no_diagram_is_refused_in_words(name):
    f = getattr(diagrams, name)
    given = [FITTING.get(kind, ()) for _, kind in stated(f)]
    for i, (parameter, _) in enumerate(stated(f)):
        for other in OTHERS:
            if other == b"bytes" and given[i] == ():
                continue  # a sequence
            with pytest.raises(DiagramError) as caught:
                f(*given[:i], other, *given[i + 1 :])
            assert f"{parameter} must be a" in caught.value.message
            assert caught.value.message.endswith("was given")


def test_the_error_says_what_was_given_and_what_would_work():
    with pytest.raises(DiagramError) as caught:
        diagrams.same(NET, abs)
    assert caught.value.message == (
        "same: b must be a diagram, which lineara.diagram draws of a function and diagrams.parse "
        "reads, and builtin_function_or_method was given"
    )
    with pytest.raises(DiagramError, match="svg: net must be a diagram"):
        diagrams.svg(net=None)

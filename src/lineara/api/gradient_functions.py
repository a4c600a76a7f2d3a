"""What `grad` and `value_and_grad` give: by a tape, in a convention, or under a policy."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lineara.api.arguments import (
    Argnums,
    as_positions,
    by_name,
    of_captured_values,
    opened,
    positions,
)
from lineara.api.blocks import blocks
from lineara.errors import NonScalarOutputError, TypeMismatchError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import conjugate
from lineara.facts.types import is_complex, show_type
from lineara.python.captured_values import captured
from lineara.python.function_points import FUNCTIONS
from lineara.python.user_code import method, restored, seen
from lineara.tape import gradient as differentiate
from lineara.tape.gradient import Asked
from lineara.tape.linearize import linearize as linearized
from lineara.tape.node import Traced
from lineara.trees import flatten, map_leaves

if TYPE_CHECKING:
    from lineara.policies import Policy


def sparse_names(sparse: bool | Sequence[str]) -> bool | tuple[str, ...]:
    """The names of the sparse leaves; True for all, False for none."""
    if isinstance(sparse, bool):
        return sparse
    return (sparse,) if isinstance(sparse, str) else tuple(sparse)


def wants_builder(out: str | None, name: str) -> bool:
    """Whether the unsummed contributions are asked for."""
    if out not in (None, "builder"):
        raise TypeMismatchError(f"{name}: out={out!r} is not known; leave it out or give 'builder'")
    return out == "builder"


def gradient_function(
    f: Callable[..., Any],
    argnums: Argnums,
    asked: Asked,
    policy: "Policy | str | None",
    convention: str,
    alone: bool,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The function to (value, gradient), or to the gradient alone; with the names of `f`."""
    if argnames is not None:
        plain = functools.partial(
            gradient_function,
            argnums=0,
            asked=asked,
            policy=policy,
            convention=convention,
            alone=alone,
        )
        return _certified(by_name(plain, f, argnums, argnames, asked.name), f, policy, asked.name)
    argnums, has_aux = as_positions(argnums, asked.name), asked.has_aux
    if convention == "ascent" and policy is None:
        made = _tape_gradient(f, argnums, asked, alone)
    else:
        both = (
            _under_policy(f, argnums, asked, policy)
            if convention == "ascent" and policy is not None
            else _in_convention(convention, f, argnums, asked, policy)
        )

        def gradient(*args: Any, **kwargs: Any) -> Any:
            value, g = both(*args, **kwargs)
            return (g, value[1]) if has_aux else g

        made = gradient if alone else both
    functools.update_wrapper(made, f, ("__name__", "__qualname__", "__doc__"), ())
    return _certified(made, f, policy, asked.name)


def _tape_gradient(
    f: Callable[..., Any], argnums: Argnums, asked: Asked, alone: bool
) -> Callable[..., Any]:
    """The function to (value, gradient), or to the gradient alone, by one sweep over a tape."""
    has_aux, name, first = asked.has_aux, asked.name, isinstance(argnums, int)
    counted: dict[int, Asked] = {}  # by the length of a call: with positions from the front

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        here = counted.get(len(args))
        if here is None:
            places = positions(argnums, len(args), name)
            here = counted[len(args)] = replace(asked, argnums=places)
        run = seen(f)
        for i in here.argnums:
            if issubclass(type(args[i]), FUNCTIONS):
                run, args = of_captured_values(run, args, here.argnums, name)
                break
        value, gradients, aux = differentiate.backward(run, args, kwargs, here, method)
        g = gradients[0] if first else tuple(gradients)
        if has_aux:
            aux = restored(aux)
            return (g, aux) if alone else ((value, aux), g)
        return g if alone else (value, g)

    return differentiated


CONVENTIONS = ("ascent", "conjugate", "holomorphic")


def _in_convention(
    convention: str, f: Callable[..., Any], argnums: Argnums, asked: Asked, policy: Any
) -> Callable[..., Any]:
    """The function to (value, gradient) with another meaning of the complex gradient."""
    name, has_aux = asked.name, asked.has_aux
    if convention not in CONVENTIONS:
        raise TypeMismatchError(
            f"{name}: convention={convention!r} is not known; give {', '.join(CONVENTIONS)}"
        )
    if asked != Asked((), has_aux, False, None, False, asked.strong_zero, name):
        raise TypeMismatchError(
            f"{name}: convention={convention!r} does not go with sparse, combine or out; "
            "conjugate what they give"
        )
    if convention == "conjugate":
        ascent = gradient_function(f, argnums, asked, policy, "ascent", alone=False)

        def conjugated(*args: Any, **kwargs: Any) -> Any:
            value, g = ascent(*args, **kwargs)
            return value, map_leaves(_conjugated, g)

        return conjugated
    if policy is not None or asked.strong_zero:
        raise TypeMismatchError(f"{name}: 'holomorphic' does not go with policy= or strong_zero=")

    def holomorphic(*args: Any, **kwargs: Any) -> Any:
        places = positions(argnums, len(args), name)
        run, args = opened(f, args, places, name)
        y, L, aux = linearized(run, args, kwargs, places, has_aux, method, name, restored)
        if L.codomain.size != 1:
            raise NonScalarOutputError(
                f"{name}: a holomorphic derivative is of one complex number, but the function "
                f"returned {show_type(y)}; use jacobian"
            )
        g = blocks(L, False, alone=not isinstance(argnums, int) and len(places) == 1)
        return ((y, restored(aux)), g) if has_aux else (y, g)

    return holomorphic


def _conjugated(v: Shaped) -> Any:
    if not is_complex(v):
        return v
    return conjugate(v) if isinstance(v, Traced) else v.conjugate()


def _under_policy(
    f: Callable[..., Any], argnums: Argnums, asked: Asked, policy: "Policy | str"
) -> Callable[..., Any]:
    """The function to (value, gradient), by way of a program."""
    from lineara.policies import chosen
    from lineara.staging.value_and_map import Halves

    name = asked.name
    kept = chosen(policy, name)
    plain = Asked((), False, False, None, False, False, name)
    if asked != plain:
        raise TypeMismatchError(
            f"{name}: policy= goes with argnums only; leave out has_aux, sparse, combine, out and "
            "strong_zero, or wrap a part of f in lineara.checkpoint(part, policy=...)"
        )

    def both(*args: Any, **kwargs: Any) -> Any:
        refuse_inside(f, args, kwargs, name)
        places = positions(argnums, len(args), name)
        halves = Halves.of(f, args, kwargs, kept)
        halves.real(name)
        gradients, _ = halves.gradient([1.0])
        g = (
            gradients[places[0]]
            if isinstance(argnums, int)
            else tuple([gradients[i] for i in places])
        )
        return halves.value, g

    return both


def refuse_inside(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> None:
    """A policy is for a differentiation that no other is around."""
    for v in flatten((args, kwargs, captured(f)))[0]:
        if isinstance(v, Traced):
            raise TypeMismatchError(
                f"{name}: policy= takes plain values, but a differentiation or a trace around gave "
                f"{show_type(v)}; there, {name} of lineara.checkpoint(f, policy=...) keeps the same"
            )


def _certified(made: Any, f: Any, policy: "Policy | str | None", name: str) -> Any:
    """A function that knows its certificate, if there is a policy."""
    if policy is not None:
        from lineara.policies import chosen

        made.certificate = functools.partial(certificate_of, f, chosen(policy, name))
    return made


def certificate_of(f: Callable[..., Any], kept: "Policy", *args: Any, **kwargs: Any) -> Any:
    """The certificate of the derivative for these arguments."""
    from lineara.staging.capture import trace
    from lineara.staging.certificate import certified

    staged = trace(f, *args, **kwargs)
    return certified(staged.program, staged.name, kept, staged.operands(args, kwargs))

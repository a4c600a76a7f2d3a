"""A value and its gradient as a program of XLA's that runs where Lineara is not installed."""

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lineara.api import value_and_grad
from lineara.cotangent.interop import library
from lineara.errors import ProgramError, TypeMismatchError
from lineara.facts.types import ArrayType, show, show_type, type_of
from lineara.staging.capture.jit import jit
from lineara.staging.certificate import Certificate
from lineara.staging.stages import stages
from lineara.trees import Structure, flatten, unflatten


@dataclass(frozen=True)
class ExportedGradient:
    """A value and its gradient, compiled by nobody yet, for arguments of some types.

    artifact       what `jax.export` made.  Its `call` takes the numbers and arrays of the arguments
                   in their order, and gives the value, the gradient's in theirs, and whether the
                   run failed: it may have raised an exception, or a loop without a length went
                   round more than 64 times.  What it gives is then not to be used
    certificate    what was proved of the derivative, and what it takes
    """

    artifact: Any
    certificate: Certificate
    arguments: Structure
    gradient: Structure
    types: tuple[ArrayType, ...]

    def serialize(self) -> bytes:
        """The artifact as bytes, which `jax.export.deserialize` reads in another process."""
        return bytes(self.artifact.serialize())

    def call(self, *args: Any) -> tuple[Any, Any]:
        """The value and the gradient, as JAX's arrays in the containers of the arguments.

        TypeMismatchError for arguments of other types, ProgramError where the run failed.
        """
        leaves, structure = flatten(args)
        types = tuple([type_of(v) for v in leaves])
        if structure != self.arguments or types != self.types:
            raise TypeMismatchError(
                f"call: it was exported for arguments of {', '.join(map(show, self.types))}, not "
                f"for {', '.join(map(show, types))}; export it for these"
            )
        with library("export_jax", "jax", "jax").enable_x64(True):
            value, *gradient, failed = self.artifact.call(*leaves)
        if failed:
            raise ProgramError(
                "call: the run may have raised an exception, or has a loop that goes round more "
                "often than there was room for; call the function itself, which says which"
            )
        return value, unflatten(self.gradient, gradient)


def export_jax(
    f: Callable[..., Any], *args: Any, platforms: Sequence[str] = ("cpu",)
) -> ExportedGradient:
    """The value and the gradient of f as an artifact of `jax.export`, for arguments of these types.

    f            gives a real number; the gradient is that of its first argument
    platforms    what it is to run on, as JAX names them: "cpu", "cuda", "rocm", "tpu"

    The derivative is ours.  Numbers and arrays of float64 stay so whatever JAX is configured for.
    Needs `pip install 'lineara[jax]'`.  TypeMismatchError where f is no function, StagingError
    where it cannot be captured, ProgramError where XLA does not take it, also for what only NumPy
    or SciPy evaluates.

    >>> exported = export_jax(lambda x: np.sum(np.sin(x)), np.zeros(3))
    >>> exported.call(np.zeros(3))[1]
    Array([1., 1., 1.], dtype=float64)
    """
    jax = library("export_jax", "jax", "jax")
    made: Any = library("export_jax", "jax.export", "jax")
    engine: Any = library("export_jax", "lineara.engines.xla", "jax")
    if not callable(f):
        raise TypeMismatchError(f"export_jax: takes a function, but was given {show_type(f)}")
    leaves, arguments = flatten(args)
    _, gradient = flatten(args[0] if args else ())
    flags: list[Any] = []
    run = jit(value_and_grad(f), engine=engine.Xla("error", flags))

    def flat(*given: Any) -> list[Any]:
        flags.clear()
        value, slopes = run(*unflatten(arguments, given))
        return [value, *flatten(slopes)[0], functools.reduce(operator.or_, flags, np.False_)]

    types = tuple([type_of(v) for v in leaves])
    with jax.enable_x64(True):
        asked = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types]
        artifact = made.export(jax.jit(flat), platforms=tuple(platforms))(*asked)
    return ExportedGradient(artifact, stages(f, *args).certificate, arguments, gradient, types)


__all__ = ["ExportedGradient", "export_jax"]

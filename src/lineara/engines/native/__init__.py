"""Native code: a definition is lowered to LLVM once, and run as machine code from then on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.engines.engine import Ask, Engine, Outcome
from lineara.engines.interpreter import Interpreter
from lineara.engines.native import emitted
from lineara.engines.native.calling_back import put_together, taken_apart
from lineara.engines.native.kernel import Doubted, Kernel, Relaid, TooDeep
from lineara.engines.native.lower import Lowered
from lineara.engines.native.machine_code import MISSING, compiler
from lineara.facts.types import ArrayType
from lineara.linear_a.program import Program


class Native(Engine):
    """Machine code, with the interpreter's values up to the rounding of sums; `exact`: to the bit.

    What it does not take it says; values that are not what a program's types say, as exact numbers,
    go to the interpreter; if `exact`, so do matrices that do not lie in C order.
    """

    def __init__(self, exact: bool = False, masks: bool = False) -> None:
        self.exact = exact
        self.masks = masks  # whether they are looked at from the first run on: the sign of zeros
        self.name = "native exact" if exact else "native"
        self.interpreter: Interpreter = Interpreter()

    def takes(self, program: Program, name: str) -> str | None:
        """Why the definition is not lowered."""
        if compiler() is None:
            return MISSING
        code = self.code(program, name)
        return code if isinstance(code, str) else None

    def native(self, program: Program, name: str) -> "Native":
        """Itself."""
        return self

    def code(self, program: Program, name: str) -> Lowered | str:
        """The definition as text of LLVM, or why there is none."""
        known, key = program.noted["native code"], self.key(program, name)
        if key not in known:
            llvm = compiler()
            assert llvm is not None, "there is one"
            disk_key = emitted.key_of(program, key, llvm)
            code = emitted.found(program, key, disk_key)
            if code is None:
                whole = program.whole  # the passes take their time before
                with program.takes_time("emission"):
                    code = emitted.emitted(whole, key, disk_key)
            known[key] = code
        return known[key]

    def sites(self, program: Program, name: str) -> int:
        """In how many places the code of a definition that it takes asks Python."""
        code = self.code(program, name)
        assert isinstance(code, Lowered), "it is taken"
        return sum([s.leaves for s in code.sites])

    def key(self, program: Program, name: str) -> tuple[str, bool, bool]:
        """What the code of a definition depends on: whether it trusts factors, and is exact."""
        return name, self.trusts(program, name), self.exact

    def trusts(self, program: Program, name: str) -> bool:
        """Whether factors are taken for finite: masks are looked at once one was not.

        A run in doubt is done again, so what acts never is.
        """
        doubted = name in program.noted["native doubted"] or program.acting[name]
        return not (self.masks or doubted)

    def kernel(self, program: Program, name: str) -> Kernel:
        """The definition as machine code."""
        known, key = program.noted["native"], self.key(program, name)
        kernel: Kernel | None = known.get(key)
        if kernel is None:
            code, llvm = self.code(program, name), compiler()
            assert isinstance(code, Lowered), "it is taken"
            assert llvm is not None, "it is taken"
            with program.takes_time("LLVM"):
                try:
                    kernel = Kernel(program, code, llvm)
                except RuntimeError:  # LLVM does not take what was on disk for code
                    if not code.machine_code:
                        raise
                    code = emitted.emitted(program, key, code.key)
                    assert isinstance(code, Lowered), "it was"
                    program.noted["native code"][key] = code
                    kernel = Kernel(program, code, llvm)
            known[key] = kernel
            program.tell_what_took_long(f"{name}, {code.leaves:,} operations, was compiled")
            program.seconds.clear()
        return kernel

    def evaluate(self, program: Program, name: str, values: list[Any], ask: Ask) -> Outcome:
        """Run the machine code."""
        if self.exact and name in program.noted["native relaid"]:
            return self.interpreter.evaluate(program, name, values, ask)
        d, key = program.defs[name], self.key(program, name)
        kernel = self.kernel(program, name)
        parts = [
            part
            for p, v in zip(d.params, values, strict=True)
            for part in taken_apart(program, p.type, v)
        ]
        given = [fitted(v, t, self.exact) for v, t in zip(parts, kernel.code.inputs, strict=True)]
        if any([v is None for v in given]):
            return self.interpreter.evaluate(program, name, values, ask)
        try:
            results = iter(kernel(given))
        except Doubted:
            program.noted["native doubted"][name] = True
            program.noted["native"].pop(key, None)  # with its memory: it never runs again
            return self.evaluate(program, name, values, ask)
        except TooDeep:
            return self.interpreter.evaluate(program, name, values, ask)
        except Relaid:
            program.noted["native relaid"][name] = True
            return self.interpreter.evaluate(program, name, values, ask)
        return Outcome(tuple([put_together(program, t, results) for t in d.results]), ())

    def direct(self, program: Program, name: str, weak: Sequence[bool]) -> Any:
        """The direct call of machine code that there is."""
        key = (name, self.trusts(program, name), self.exact)
        kernel = program.noted["native"].get(key)
        if kernel is None or (self.exact and name in program.noted["native relaid"]):
            return None
        return kernel.direct(weak)


def is_installed() -> bool:
    """Whether there is a compiler: llvmlite is installed, for a processor that it knows.

    >>> isinstance(is_installed(), bool)
    True
    """
    return compiler() is not None


def fitted(value: Any, t: ArrayType, exact: bool) -> Any:
    """A value that code may read; None for one that it may not."""
    if not t.shape:
        number = np.asarray(value)  # which has memory as long as it lives; a scalar has none
        return number if number.dtype == t.dtype and not number.ndim else None
    if type(value) is not np.ndarray or value.dtype != t.dtype or value.shape != t.shape:
        return None
    if value.flags.c_contiguous and value.flags.aligned:
        return value
    return None if exact and value.ndim > 1 else np.ascontiguousarray(value)


__all__ = ["Native", "is_installed"]

"""From text to machine code: LLVM checks it, makes it fast, and it is linked into the process.

Nothing of the arithmetic is relaxed: no contraction, no reassociation.  A text without loops runs
each instruction once, and is not made faster, which would take ten times as long and gain a tenth.
Of texts with loops the larger ones get less, since what LLVM does grows faster than they do.

What becomes of a text depends on nothing else but the processor and the versions in its key: it
names whatever has an address.  So it is looked for on disk before it is made.
"""

import hashlib
import importlib
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

import numpy as np

from lineara.engines.native.cache import disk_cache
from lineara.engines.native.symbols import array_maker

MISSING = "it compiles with llvmlite, which is not installed (`pip install llvmlite`)"


class Compiler:
    """LLVM, for the processor at hand."""

    def __init__(self) -> None:
        self.llvm: Any = importlib.import_module("llvmlite.binding")
        self.llvm.initialize_native_target()
        self.llvm.initialize_native_asmprinter()
        self.machines: dict[int, Any] = {level: self.machine(level) for level in (0, 1, 2)}
        self.jit: Any = self.llvm.create_lljit_compiler(self.machine(2))
        self.numbers: count[int] = count()
        self.kept: dict[str, Any] = {}  # code that all programs of the process call
        self.versions: tuple[Any, Any, Any, Any, Any] = (
            importlib.import_module("llvmlite").__version__,
            self.llvm.llvm_version_info,
            self.llvm.get_process_triple(),
            self.llvm.get_host_cpu_name(),
            self.features(),
        )

    def features(self) -> str:
        """The processor's features for LLVM, which on x86 is told to use no gathers.

        A gather loads from several places at once.  It is slower than as many loads: since 2023 by
        Intel's microcode (Downfall, CVE-2022-40982), and on AMD's processors.
        """
        host = self.llvm.get_host_cpu_features()
        return host.flatten() + ",+prefer-no-gather" * bool(host.get("avx2"))

    def machine(self, level: int) -> Any:
        """A target machine: the processor with all that it can."""
        target = self.llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=self.llvm.get_host_cpu_name(),
            features=self.features(),
            opt=level,
            reloc="pic",
            codemodel="small",
        )

    def module(self, text: str, leaves: int) -> tuple[Any, Any]:
        """A module that LLVM has checked and made fast, and the machine that it is for."""
        level = level_of(text, leaves)
        machine = self.machines[level]
        module = self.llvm.parse_assembly(
            f'target triple = "{self.llvm.get_process_triple()}"\n{text}'
        )
        module.data_layout = str(machine.target_data)
        module.verify()
        options = self.llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = level > 0
        options.slp_vectorization = False  # superlinear in straight lines
        if level:
            passes = self.llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
        return module, machine

    def object_code(self, text: str, leaves: int) -> bytes:
        """The machine code of a text, whose symbols have no addresses yet."""
        module, machine = self.module(text, leaves)
        return machine.emit_object(module)

    def facts(self) -> tuple[Any, ...]:
        """What beside a text decides what becomes of it: the processor and the versions."""
        return sys.version, np.__version__, array_maker() is not None, *self.versions

    def key(self, text: str, leaves: int) -> str:
        """What tells the machine code of a text from any other."""
        facts = (sources(), *self.facts(), level_of(text, leaves), text)
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def loaded(self, text: str, leaves: int, symbols: Mapping[str, int]) -> Any:
        """What keeps the code in memory and has the addresses of its functions."""
        key, kept = self.key(text, leaves), disk_cache()
        code = kept.get(key)
        if code is not None:
            try:
                return self.linked(code, symbols, exported(text))
            except RuntimeError:  # LLVM does not accept the stored code: compiled anew below
                pass
        code = self.object_code(text, leaves)
        kept.put(key, code)
        return self.linked(code, symbols, exported(text))

    def shared(self, text: str, leaves: int, symbols: Mapping[str, int]) -> Any:
        """The same of a text that all programs of the process call; it is never taken from memory.

        Of several threads that make it at once all get the code of the first that is done.
        """
        if text not in self.kept:
            self.kept.setdefault(text, self.loaded(text, leaves, symbols))
        return self.kept[text]

    def linked(self, code: bytes, symbols: Mapping[str, int], names: Sequence[str]) -> Any:
        """What keeps the code in memory and has the addresses of these names in it."""
        library = self.llvm.JITLibraryBuilder().add_object_img(code)
        for name, address in symbols.items():
            library.import_symbol(name, address)
        library.add_current_process()
        for name in names:
            library.export_symbol(name)
        return library.link(self.jit, f"lineara{next(self.numbers)}")


def exported(text: str) -> list[str]:
    """The functions of a text that are called from outside."""
    return re.findall(r"^define (?!internal )\S+ @(\w+)", text, re.MULTILINE)


def level_of(text: str, leaves: int) -> int:
    """How much LLVM does to a text of so many operations."""
    if leaves > 10_000 or not has_loops(text):
        return 0
    return 2 if leaves <= 2_000 else 1


def has_loops(text: str) -> bool:
    """Whether a block of a function goes back to one before it, or a function calls itself."""
    if re.search(r"^define internal .* @of\d+\(", text, re.MULTILINE):
        return True
    seen = set[str]()
    for line in text.splitlines():
        if line.startswith("define "):
            seen.clear()
        elif line.endswith(":"):
            seen.add(line[:-1])
        elif line.startswith("  br ") and not seen.isdisjoint(re.findall(r"label %([\w.]+)", line)):
            return True
    return False


@cache
def sources() -> str:
    """A digest of the files of this package, which decide what becomes of a text."""
    digest = hashlib.sha256()
    for file in sorted(files("lineara.engines.native").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


_one_at_a_time = threading.Lock()  # code of a compiler that nobody holds would be freed


def compiler() -> Compiler | None:
    """The compiler; None where llvmlite is not installed, or cannot be loaded."""
    with _one_at_a_time:
        return _compiler()


@cache
def _compiler() -> Compiler | None:
    try:
        return Compiler()
    except (ImportError, OSError, RuntimeError):
        return None

"""From text to machine code: LLVM checks it, makes it fast, and it is linked into the process.

Nothing of the arithmetic is relaxed: no contraction, no reassociation.  The larger the text, the
less is done to it, since what LLVM does grows faster than the text.
"""

import importlib
from collections.abc import Mapping
from functools import cache
from itertools import count
from typing import Any


class Compiler:
    """LLVM, for the processor at hand."""

    def __init__(self) -> None:
        self.llvm: Any = importlib.import_module("llvmlite.binding")
        self.llvm.initialize_native_target()
        self.llvm.initialize_native_asmprinter()
        self.machines = {level: self.machine(level) for level in (0, 1, 2)}
        self.jit = self.llvm.create_lljit_compiler(self.machine(2))
        self.numbers = count()

    def machine(self, level: int) -> Any:
        """A target machine: the processor with all that it can."""
        target = self.llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=self.llvm.get_host_cpu_name(),
            features=self.llvm.get_host_cpu_features().flatten(),
            opt=level,
            reloc="pic",
            codemodel="small",
        )

    def module(self, text: str, leaves: int) -> tuple[Any, Any]:
        """A module that LLVM has checked and made fast, and the machine that it is for."""
        level = 2 if leaves <= 2_000 else 1 if leaves <= 10_000 else 0
        machine = self.machines[level]
        module = self.llvm.parse_assembly(
            f'target triple = "{self.llvm.get_process_triple()}"\n{text}'
        )
        module.data_layout = str(machine.target_data)
        module.verify()
        options = self.llvm.create_pipeline_tuning_options(speed_level=level + (level == 2))
        options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = level > 0
        options.slp_vectorization = False  # superlinear in straight lines
        if level:
            passes = self.llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
        return module, machine

    def loaded(self, text: str, leaves: int, symbols: Mapping[str, int]) -> tuple[Any, int]:
        """What keeps the code in memory, and the address of `run`."""
        module, machine = self.module(text, leaves)
        library = self.llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module))
        for name, address in symbols.items():
            library.import_symbol(name, address)
        library.add_current_process().export_symbol("run")
        tracker = library.link(self.jit, f"lineara{next(self.numbers)}")
        return tracker, tracker["run"]


@cache
def compiler() -> Compiler | None:
    """The compiler; None where llvmlite is not installed, or cannot be loaded."""
    try:
        return Compiler()
    except (ImportError, OSError, RuntimeError):
        return None

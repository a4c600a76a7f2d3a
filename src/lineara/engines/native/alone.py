"""SciPy's BLAS with one thread while code calls it, where its threads and NumPy's would wait.

    lineara.alone.enter, lineara.alone.leave        functions of the module

This is what `ops.blas_threads` does for Python's calls, and says why, without the GIL: a lock, a
count and the number of threads that there were lie in three words that all code of the process
shares; the last to leave gives the threads back.
"""

import os

from lineara.engines.native.code import Code
from lineara.engines.native.emit import Emitter
from lineara.engines.native.symbols import of_threads
from lineara.ops.blas_threads import FEW, MANY

TYPES = {"get": "i32 ()", "set": "void (i32)", "other": "i32 ()", "state": "void ()"}


def alone(em: Emitter, size: int) -> tuple[list[str], list[str]]:
    """The lines before and after calls of the BLAS on so many numbers; none where none are due."""
    if not FEW <= size < MANY or of_threads("state") is None:
        return [], []
    for name, t in TYPES.items():
        em.outside(f"threads.{name}", t)
        em.addresses[f"threads.{name}"] = of_threads(name) or 0
    for name in ("enter", "leave"):
        title = f"lineara.alone.{name}"
        em.helpers[title] = em.helpers.get(title) or _function(title, name == "enter")
    return ['  call void @"lineara.alone.enter"()'], ['  call void @"lineara.alone.leave"()']


def _function(title: str, enters: bool) -> str:
    """The text of one of the functions."""
    f, state = Code(), '@"threads.state"'
    f.jump("try")
    f.block("try")
    taken = f.let(f"cmpxchg ptr {state}, i64 0, i64 1 acquire monotonic")
    f.branch(f.let(f"extractvalue {{i64, i1}} {taken}, 1"), "in", "try")
    f.block("in")
    count, before = [f.let(f"getelementptr inbounds i64, ptr {state}, i64 {i}") for i in (1, 2)]
    inside = f.let(f"load i64, ptr {count}")
    now = f.let(f"{'add' if enters else 'sub'} i64 {inside}, 1")
    f.line(f"store i64 {now}, ptr {count}")
    f.branch(f.let(f"icmp eq i64 {inside if enters else now}, 0"), "ends", "out")
    f.block("ends")
    changes = (_noted if enters else _remembered)(f, before)
    f.branch(changes[0], "change", "out")
    f.block("change")
    f.line(f'call void @"threads.set"(i32 {changes[1]})')
    f.jump("out")
    f.block("out")
    f.line(f"store atomic i64 0, ptr {state} release, align 8")
    head = f'define internal void @"{title}"() noinline {{\nentry:'
    return "\n".join([head, *f.lines, "  ret void", "}"])


def _noted(f: Code, before: str) -> tuple[str, str]:
    """Whether threads would wait, and the one thread instead; how many there are is noted."""
    ours, others = f.let('call i32 @"threads.get"()'), f.let('call i32 @"threads.other"()')
    waits = f.let(f"icmp sgt i32 {f.let(f'add i32 {ours}, {others}')}, {os.cpu_count() or 1}")
    waits = f.let(f"and i1 {waits}, {f.let(f'icmp sgt i32 {ours}, 1')}")
    threads = f.let(f"sext i32 {ours} to i64")
    f.line(f"store i64 {f.let(f'select i1 {waits}, i64 {threads}, i64 1')}, ptr {before}")
    return waits, "1"


def _remembered(f: Code, before: str) -> tuple[str, str]:
    """Whether there were more threads, and how many."""
    there = f.let(f"load i64, ptr {before}")
    return f.let(f"icmp sgt i64 {there}, 1"), f.let(f"trunc i64 {there} to i32")


__all__ = ["alone"]

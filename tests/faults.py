"""Faults put into a source one at a time: which of them do the tests catch?

The machine of `make mutate`, `make mutate-rules` and `make mutate-native`, which say what a fault
is and which tests are asked.  All tests are collected once, and run once without a fault to see how
long each takes and which functions it calls.  For each fault a child process exchanges the code of
one function, then runs the tests that call it, those first that caught faults there before, then
the quickest.  A fault is caught if one of them fails or does not end.  Faults that change nothing
that is promised stand in `equivalent_faults.toml`, with the reason.
"""

import argparse
import ast
import collections
import contextlib
import datetime
import functools
import gc
import importlib
import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import tomllib
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # children are as many as processors

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = ROOT / "src/lineara"
LISTED = HERE / "equivalent_faults.toml"
REPORT = ROOT / "benchmarks/MUTATION.md"
GOAL = 0.99
SECONDS, TIMES = 5, 20  # a test ends within so many seconds more than so many times its own
LONG = 0.5  # seconds of a test that is not asked: a fault that nothing catches costs them all
ENOUGH = 2 * LONG  # seconds after which one is ended that is not asked
BUDGET = 60  # seconds of the tests that are asked about one fault, as long as they take traced
UNSAID = 99  # the exit status of a process that came to no conclusion
MEMORY = 4 << 30  # what a fault may ask for

Edit = Callable[[], Any]
Find = Callable[[ast.Module], list[tuple[ast.AST, Edit]]]
Key = tuple[str, str, Any]  # file, qualified name and positions of a function
Pair = tuple[types.CodeType, types.CodeType]


class Site(NamedTuple):
    """One fault: in which file, and which one of the faults that are possible there."""

    file: str
    number: int


class Made(NamedTuple):
    """What a fault does: the definition that has it, a line there before and after."""

    place: str
    line: int
    before: str
    after: str
    tree: ast.Module

    def told(self) -> dict[str, Any]:
        """All but the tree."""
        found = self._asdict()
        del found["tree"]
        return found


class Trial(NamedTuple):
    """A test: its name, and what raises an error or gives False if it fails."""

    name: str
    run: Callable[[], Any]


# --- faults ---------------------------------------------------------------------------------------


def text_of(file: str) -> str:
    """A source of the library."""
    return (SOURCE / file).read_text(encoding="utf-8")


def lines_of(file: str) -> set[str]:
    """The lines of a source, as faults tell them."""
    return set(map(str.strip, ast.unparse(ast.parse(text_of(file))).splitlines()))


def count(file: str, find: Find) -> int:
    """How many faults a file can have."""
    return len(find(ast.parse(text_of(file))))


def make(site: Site, find: Find) -> Made:
    """A file with one fault."""
    tree = ast.parse(text_of(site.file))
    node, edit = find(tree)[site.number]
    top = next(t for t in tree.body if any(n is node for n in ast.walk(t)))
    line: int = next(n.lineno for n in ast.walk(node) if hasattr(n, "lineno"))
    place = ".".join(names_around(top, node)) or ast.unparse(top).partition(" ")[0].rstrip(":")
    old = ast.unparse(top).splitlines()
    edit()
    made = ast.unparse(ast.fix_missing_locations(top)).splitlines()
    k = next((i for i, (a, b) in enumerate(zip(old, made, strict=False)) if a != b), None)
    before, after = ("", "") if k is None else (old[k].strip(), made[k].strip())
    return Made(place, line, before, after, tree)


def names_around(top: ast.AST, node: ast.AST) -> list[str]:
    """The classes and functions that a node lies in."""
    here = [top.name] if isinstance(top, ast.ClassDef | ast.FunctionDef) else []
    if top is node:
        return here
    for child in ast.iter_child_nodes(top):
        if any(n is node for n in ast.walk(child)):
            return here + names_around(child, node)
    return here


def swap(items: list, i: int) -> None:
    """Exchange two neighbours."""
    items[i], items[i + 1] = items[i + 1], items[i]


def silence(tree: ast.Module) -> None:
    """Mark what has no meaning for programs that are right: errors, assertions, types, texts."""

    def mark(node: ast.AST | None) -> None:
        for inner in ast.walk(node) if node is not None else ():
            inner.silent = True  # type: ignore[attr-defined]

    for node in ast.walk(tree):
        match node:
            case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
                mark(node)
            case ast.If(body=[ast.Raise()], orelse=[]):
                mark(node)
            case ast.keyword(arg="strict"):  # as an assertion
                mark(node)
            case ast.AnnAssign(target=ast.Name(id=name)) if name == "__all__" or name[0].isupper():
                mark(node)
            case ast.AnnAssign(annotation=a):
                mark(a)
            case ast.arg(annotation=a):
                mark(a)
            case ast.FunctionDef(returns=r, name=name):
                mark(r)
                if name.startswith("__") and name != "__init__":
                    mark(node)
            case ast.Assign(targets=[ast.Name(id=name)]) if name == "__all__" or name[0].isupper():
                mark(node)


class Equivalents:
    """The faults that change nothing that is promised, by what they do."""

    def __init__(self) -> None:
        found = tomllib.loads(LISTED.read_text(encoding="utf-8")) if LISTED.exists() else {}
        self.reasons: dict[tuple[str, ...], str] = {}
        for one in found.get("fault", ()):
            for after in [one["after"]] if isinstance(one["after"], str) else one["after"]:
                key = (one["file"], one["place"], one["before"], after)
                self.reasons[key] = one["reason"]

    def reason(self, site: Site, made: Made) -> str | None:
        """Why the fault is none, if it is none."""
        if made.before == made.after:
            return "the text is the same"
        return self.reasons.get((site.file, made.place, made.before, made.after))


# --- putting one in -----------------------------------------------------------------------------


def outermost(code: types.CodeType) -> Iterator[types.CodeType]:
    """The functions of a module and of its classes, not those inside functions."""
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            if c.co_flags & 1:  # a function; the body of a class has no fast locals
                yield c
            else:
                yield from outermost(c)


def key_of(code: types.CodeType) -> Key:
    """What tells a function of a source from all others."""
    return code.co_filename, code.co_qualname, tuple(code.co_positions())


def compiled(file: str, tree: ast.Module) -> types.CodeType:
    with warnings.catch_warnings():  # a fault may look like a slip: 2.0[0]
        warnings.simplefilter("ignore", SyntaxWarning)
        return compile(tree, str(SOURCE / file), "exec", dont_inherit=True)


def changed(file: str, tree: ast.Module) -> list[Pair]:
    """The functions that differ from the source, before and after, from the outside in.

    None, if it is not one function of the module or of a class, with what is inside it.
    """
    old = list(outermost(compiled(file, ast.parse(text_of(file)))))
    new = list(outermost(compiled(file, tree)))
    differ = [(a, b) for a, b in zip(old, new, strict=False) if differs(a, b)]
    return inside(*differ[0]) if len(old) == len(new) and len(differ) == 1 else []


def differs(a: types.CodeType, b: types.CodeType) -> bool:
    return a != b or key_of(a) != key_of(b)


def inside(old: types.CodeType, new: types.CodeType) -> list[Pair]:
    """A function that differs, and those in it: closures may have been made of them already."""
    found = [(old, new)]
    parts = [[c for c in f.co_consts if isinstance(c, types.CodeType)] for f in (old, new)]
    if [c.co_name for c in parts[0]] == [c.co_name for c in parts[1]]:
        found += [p for a, b in zip(*parts, strict=True) if differs(a, b) for p in inside(a, b)]
    return found


def functions_of(files: Sequence[str]) -> dict[Key, list[Any]]:
    """The functions of some sources that there are now."""
    paths = {str(SOURCE / f) for f in files}
    found: dict[Key, list[Any]] = {}
    gc.unfreeze()  # pytest's collection has put what it imported where it is not listed
    for f in gc.get_objects():
        if type(f) is types.FunctionType and f.__code__.co_filename in paths:
            found.setdefault(key_of(f.__code__), []).append(f)
    return found


# --- the tests ------------------------------------------------------------------------------------


class Plain(NamedTuple):
    """A test without a fault: its seconds, the functions that it calls, whether it holds."""

    seconds: float
    calls: list[tuple[str, str, int]]
    good: bool


class Hooks:
    """Collects, then hands the tests over; keeps what failed."""

    def __init__(self, then: Callable[[list[Trial]], None], skip: Callable[[str], bool]) -> None:
        self.then, self.skip = then, skip
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def pytest_collectreport(self, report: Any) -> None:
        assert not report.failed, report.longrepr

    def pytest_runtestloop(self, session: Any) -> bool:
        def run(item: Any) -> bool:
            self.failed = False
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            return not self.failed

        os.environ["LINEARA_CACHE_DIR"] = "off"  # for no other process
        items = [i for i in session.items if not self.skip(i.nodeid)]
        self.then([Trial(i.nodeid, lambda i=i: run(i)) for i in items])
        return True


def child(job: Callable[[], None], log: Path) -> int:
    """Start a job in a process of its own."""
    found = os.fork()
    if found:
        return found
    try:
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        job()
    finally:
        sys.stdout.flush()
        os._exit(UNSAID)  # unless the job ends the process


def baseline(
    trials: Sequence[Trial], files: Sequence[str], before: Callable[[], object], out: Path
) -> None:
    """Run tests without a fault, and write down what they are."""
    paths = {str(SOURCE / f) for f in files}
    calls: set[types.CodeType] = set()

    def trace(frame: Any, event: str, _: Any) -> None:  # of calls only
        if frame.f_code.co_filename in paths:
            calls.add(frame.f_code)

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    with out.open("a") as lines:
        for t in trials:
            before()
            calls.clear()
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, ENOUGH)
            sys.settrace(trace)
            try:
                good = t.run() is not False
            except Exception as error:
                print(type(error).__name__, error)
                good = False
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                sys.settrace(None)
            seconds = round(time.process_time() - start, 4)
            good = good or seconds > LONG
            called = [(c.co_filename, c.co_qualname, c.co_firstlineno) for c in calls]
            print(json.dumps([t.name, seconds, called, good]), file=lines)


def read_baseline(path: Path) -> dict[str, Plain]:
    """What is known of tests, by name."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        name, seconds, calls, good = json.loads(line)
        found[name] = Plain(seconds, [(f, q, n) for f, q, n in calls], good)
    return found


def attempt(
    trials: Sequence[Trial], known: Sequence[Plain], order: Sequence[int], pairs: list[Pair],
    functions: dict[Key, list[Any]], forget: Callable[[], object], out: Path,
) -> None:  # fmt: skip
    """In a child: put the fault in and run the tests; what caught it is written down."""
    for old, new in pairs:
        for f in functions.get(key_of(old), ()):
            f.__code__ = new
    forget()
    with contextlib.suppress(OSError):  # where the system tells what is in use
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    now = {"trial": ""}

    def late(*_: Any) -> None:
        out.write_text(json.dumps([now["trial"], "it did not end"]))
        os._exit(3)

    signal.signal(signal.SIGPROF, late)
    for i in order:
        now["trial"] = trials[i].name
        limit = SECONDS + TIMES * known[i].seconds
        signal.setitimer(signal.ITIMER_PROF, limit)
        spent = int(time.process_time() + limit + 20)
        resource.setrlimit(resource.RLIMIT_CPU, (spent, resource.RLIM_INFINITY))  # if C loops
        try:
            good, why = trials[i].run() is not False, "it failed"
        except BaseException as error:  # whatever it is, the fault is caught
            good, why = False, type(error).__name__
        if not good:
            out.write_text(json.dumps([trials[i].name, why]))
            os._exit(1)
    os._exit(0)


# --- a run ----------------------------------------------------------------------------------------


class Run:
    """Faults of some files, and the tests that are asked about them."""

    def __init__(
        self, title: str, files: Sequence[str], find: Find, tests: Sequence[str],
        more: Callable[[], list[Trial]] = list, skip: Callable[[str], bool] = lambda _: False,
        libraries: Sequence[str] = (), near: Callable[[Made, str], bool] = lambda *_: False,
        forget: Callable[[], object] = bool, before: Callable[[], object] = bool,
    ) -> None:  # fmt: skip
        self.title, self.files, self.find, self.tests = title, files, find, tests
        self.more, self.skip, self.libraries = more, skip, libraries
        self.near, self.forget, self.before = near, forget, before
        self.same = Equivalents()
        self.outcomes: list[dict[str, Any]] = []
        self.kills: collections.Counter[tuple[str, int]] = collections.Counter()

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Try faults; the exit status tells whether at least 99 % of them are caught."""
        asked = argparse.ArgumentParser(description=f"Faults in {self.title}.")
        asked.add_argument("faults", type=int, nargs="?", default=100)
        asked.add_argument("--all", action="store_true", help="every fault that is possible")
        asked.add_argument("--seed", type=int, default=0)
        asked.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
        asked.add_argument("--journal", type=Path, help="goes on where a run stopped")
        asked.add_argument("--baseline", type=Path, help="what tests are, if they are known")
        asked.add_argument("--report", metavar="NAME", help=f"add a row to {REPORT.name}")
        asked.add_argument("--again", action="store_true", help="the survivors of the journal")
        asked.add_argument("--listed", action="store_true", help="only the equivalent ones")
        asked.add_argument("--file", action="append", help="only faults of this file")
        self.asked = asked.parse_args(arguments)
        files = [f for f in self.files if not self.asked.file or Path(f).name in self.asked.file]
        every = [Site(f, i) for f in files for i in range(count(f, self.find))]
        n = len(every) if self.asked.all or self.asked.listed else self.asked.faults
        self.chosen = sorted(random.Random(self.asked.seed).sample(every, min(n, len(every))))
        self.every = len(every)
        self.resume()
        print(f"{len(self.chosen)} of {len(every)} faults in {len(files)} files", flush=True)
        for name in self.libraries:
            importlib.import_module(name)
        plain = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal"]
        plain += ["--all", "--seed=0"]
        late = ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--rootdir={ROOT}"]
        tests = [str(HERE / t) for t in self.tests]
        hooks = Hooks(self.loaded, self.skip)
        paths = {str(SOURCE / f) for f in self.files}
        self.imported: set[types.CodeType] = set()

        def trace(frame: Any, event: str, _: Any) -> None:  # of calls only
            if frame.f_code.co_filename in paths:
                self.imported.add(frame.f_code)

        with tempfile.TemporaryDirectory() as folder:
            self.folder = Path(folder)
            sys.settrace(trace)
            code = pytest.main([*plain, *late, *tests], plugins=[hooks])
        if code or not hasattr(self, "known"):
            print("the tests cannot be collected, or fail without a fault; mend that first")
            return 2
        return self.report()

    def resume(self) -> None:
        """What the journal has is not tried again; but the survivors, if they are asked for."""
        journal = self.asked.journal
        lines = journal.read_text().splitlines() if journal and journal.exists() else []
        found = [json.loads(line) for line in lines]
        latest = {Site(o["file"], o["number"]): o for o in found}
        if self.asked.again:
            latest = {s: o for s, o in latest.items() if o["outcome"] == "survives"}
            self.chosen, latest = [s for o in latest.values() for s in self.found(o)], {}
        self.outcomes = list(latest.values())
        self.left = [s for s in self.chosen if s not in latest]

    def found(self, outcome: dict[str, Any]) -> list[Site]:
        """Where a fault of a journal is now, if the source has changed since."""
        what = [outcome[k] for k in ("place", "before", "after")]
        file, there = outcome["file"], outcome["before"] in lines_of(outcome["file"])
        near = sorted(range(count(file, self.find)), key=lambda i: abs(i - outcome["number"]))
        for i in near[: 200 * there]:
            made = make(Site(file, i), self.find)
            if [made.place, made.before, made.after] == what:
                return [Site(file, i)]
        print(f"{file} has no such fault any more: {' '.join(what)}")
        return []

    def loaded(self, trials: list[Trial]) -> None:
        """All tests are collected: try the faults."""
        sys.settrace(None)
        self.trials = [*self.more(), *trials]
        out = self.asked.baseline or self.folder / "baseline"
        known = read_baseline(out)
        new = [t for t in self.trials if t.name not in known]
        started = child(lambda: baseline(new, self.files, self.before, out), self.folder / "log")
        os.waitpid(started, 0)
        known = read_baseline(out)
        self.known = [known[t.name] for t in self.trials]
        self.places = {t.name: i for i, t in enumerate(self.trials)}
        self.callers: dict[Any, set[int]] = {}
        for i, plain in enumerate(self.known):
            for called in plain.calls:
                self.callers.setdefault(called, set()).add(i)
        self.broken = {i for i, plain in enumerate(self.known) if not plain.good}
        self.long = {i for i, plain in enumerate(self.known) if plain.seconds > LONG}
        if self.broken:
            names = [self.trials[i].name for i in self.broken]
            print("fail without a fault, and are not asked:", *names, sep="\n    ")
        total = sum(plain.seconds for plain in self.known)
        print(f"{len(self.trials)} tests in {total:.0f} s", flush=True)
        self.functions = functions_of(self.files)
        gc.collect()
        gc.freeze()
        running: dict[int, tuple[Site, Made, float, Path]] = {}
        for i, site in enumerate([*self.left, *[None] * self.asked.jobs]):
            while len(running) >= self.asked.jobs or (running and site is None):
                pid, status = os.wait()
                self.ended(*running.pop(pid), os.waitstatus_to_exitcode(status))
            if site is None:
                continue
            made = make(site, self.find)
            reason = self.same.reason(site, made)
            if (reason is not None) is not self.asked.listed:
                if reason:
                    self.note(site, made, "equivalent", reason, 0.0)
                continue
            pairs = changed(site.file, made.tree)
            there = [p for p in pairs if key_of(p[0]) in self.functions]
            if not there or any(len(a.co_freevars) != len(b.co_freevars) for a, b in there):
                self.note(site, made, "not tried", "no one function changes", 0.0)
                continue
            order = self.order(site, made, [old for old, _ in pairs])
            if not order and any(old in self.imported for old, _ in pairs):
                self.note(site, made, "not tried", "it runs when the library is imported", 0.0)
                continue
            log = self.folder / str(i)
            job = functools.partial(
                attempt, self.trials, self.known, order, pairs, self.functions, self.forget, log
            )
            running[child(job, self.folder / "log")] = (site, made, time.monotonic(), log)
        self.control()

    def control(self) -> None:
        """What caught faults holds without one, alone in a process; else it says nothing."""
        for i in sorted({i for _, i in self.kills}):
            job = functools.partial(
                attempt, self.trials, self.known, [i], [], {}, self.forget, self.folder / "control"
            )
            _, status = os.waitpid(child(job, self.folder / "log"), 0)
            if status:
                name = self.trials[i].name
                print(f"{name} fails alone without a fault, and what it caught does not count")
                for o in self.outcomes:
                    if o["by"].startswith(f"{name}: "):
                        o["outcome"] = "not tried"

    def order(self, site: Site, made: Made, codes: list[types.CodeType]) -> list[int]:
        """Which tests are asked, in which order."""
        called = [(c.co_filename, c.co_qualname, c.co_firstlineno) for c in codes]
        callers = {i for c in called for i in self.callers.get(c, ())}
        near = {i for i, t in enumerate(self.trials) if self.near(made, t.name)}
        order = sorted(
            {*callers, *near} - self.broken - self.long,
            key=lambda i: (
                -self.kills[made.place, i], i not in near, -self.kills[site.file, i],
                self.known[i].seconds,
            ),
        )  # fmt: skip
        sums = itertools.accumulate(self.known[i].seconds for i in order)
        return [i for i, spent in zip(order, sums, strict=True) if spent < BUDGET]

    def ended(self, site: Site, made: Made, start: float, log: Path, code: int) -> None:
        """A child has ended."""
        told = log.exists()
        by, why = json.loads(log.read_text()) if told else ("", f"exit status {code}")
        if by:
            i = self.places[by]
            self.kills[made.place, i] += 1
            self.kills[site.file, i] += 1
        outcome = {0: "survives", UNSAID: "not tried"}.get(code, "caught")
        self.note(site, made, outcome, f"{by}: {why}" if code else "", time.monotonic() - start)

    def note(self, site: Site, made: Made, outcome: str, by: str, seconds: float) -> None:
        """Keep and print one outcome."""
        found = {**site._asdict(), **made.told(), "outcome": outcome, "by": by}
        found["seconds"] = round(seconds, 2)
        self.outcomes.append(found)
        if self.asked.journal:
            with self.asked.journal.open("a") as lines:
                print(json.dumps(found), file=lines)
        if outcome == "survives" or self.asked.listed:
            print(
                f"{site.file}:{made.line} {made.place} [{site.number}] {outcome} {by}\n"
                f"    {made.before}\n    {made.after}",
                flush=True,
            )
        if len(self.outcomes) % 50 == 0:
            print(f"{len(self.outcomes)}: {self.tally()}", flush=True)

    def tally(self) -> dict[str, int]:
        """How many of what."""
        return dict(collections.Counter(o["outcome"] for o in self.outcomes))

    def report(self) -> int:
        """Say what was caught; the exit status."""
        n = collections.Counter(self.tally())
        tried = n["caught"] + n["survives"]
        rate = n["caught"] / max(1, tried)
        print(
            f"{n['caught']} of {tried} faults are caught, {rate:.1%}; "
            f"{n['equivalent']} change nothing, {n['not tried']} cannot be put in"
        )
        if self.asked.report:
            day = datetime.datetime.now(datetime.UTC).date()
            seed = "all" if self.asked.all else self.asked.seed
            note = self.asked.report.replace("|", "/")
            row = (
                f"| {day} | {note} | {seed} | {tried} of {self.every} | {n['equivalent']} | "
                f"{n['caught']} | {n['survives']} | {rate:.1%} |"
            )
            REPORT.write_text(with_section(REPORT, self.title, row, self.survivors(), self.same))
        return int(rate < GOAL)

    def survivors(self) -> list[str]:
        """What no test caught, for people to look at."""
        return [
            f"- `{o['file']}`, {o['place']}: `{o['before']}` → `{o['after']}`"
            for o in sorted(self.outcomes, key=lambda o: (o["file"], o["line"]))
            if o["outcome"] == "survives"
        ]


# --- the report -----------------------------------------------------------------------------------

HEAD = """# Faults put into the library, and how many the tests catch

Written by `make mutate`, `make mutate-rules` and `make mutate-native`, which say what a fault is. A
row is a run: faults drawn with a seed, and how many of those that change something were caught.
What changes nothing that is promised is listed in `tests/equivalent_faults.toml`, with the reason.
"""
TABLE = """| date | run | seed | tried | equivalent | caught | survive | caught of tried |
|---|---|---|---|---|---|---|---|"""


def with_section(path: Path, title: str, row: str, left: list[str], same: Equivalents) -> str:
    """The report with a run added to a section."""
    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    head, *parts = text.split("\n## ")
    sections = {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}
    rows = [r for r in sections.get(title, "").splitlines() if r.startswith("| 2")]
    reasons = collections.Counter(same.reasons.values())
    lines = [TABLE, *rows, row, "", "### What survived the last run", "", *(left or ["Nothing."])]
    sections[title] = "\n" + "\n".join(lines) + "\n"
    found = [f"- {reason} ({n})" for reason, n in sorted(reasons.items())]
    sections["what changes nothing"] = "\n" + "\n".join(found) + "\n"
    ends = ("what changes nothing",)
    order = [*sorted(k for k in sections if k not in ends), *ends]
    return head.rstrip() + "\n" + "".join(f"\n## {k}\n{sections[k].rstrip()}\n" for k in order)

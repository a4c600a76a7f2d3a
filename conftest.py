"""How much of the tests runs, and in which order.

Tests run in an order drawn by a seed, so that none can lean on one that came before; what a test
draws depends on its name alone, and what Hypothesis draws on the seed.  The seed is that of the
commit, so that one commit has one result, unless `--seed N` gives another.

Without `--slow`, those marked `slow` stay out.  An eighth of the large tables runs, or one of
`--share N`, drawn by the same seed: of the cases of a function that has more than N, of the lines
that a test goes through by itself (`share`), and of the examples that Hypothesis draws.  `--all`
stands for `--slow --share 1`.  What is named on the command line by `::` runs always, and whole.

Machine code is kept in a directory of this run, and not in that of the user.  With `--bounds` it
looks at each place of memory before it reads or writes there (tests/checked_places.py).

A case costs about 0.3 ms before it runs, in each of pytest's processes, so cases that stay out are
never made; and a file of the library is imported when its doctests run.
"""

import doctest
import gc
import importlib
import os
import random
import resource
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # BLAS' threads wait busily for one another
ROOTS = [Path(__file__).parent / name for name in ("src", "tests")]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lineara")
    group.addoption("--all", action="store_true", help="everything: --slow --share 1")
    group.addoption("--slow", action="store_true", help="slow tests too")
    group.addoption("--share", type=int, default=8, metavar="N", help="one in N of a large table")
    group.addoption("--seed", type=int, help="draws the order, and which cases of a table run")
    group.addoption("--bounds", action="store_true", help="machine code looks at each place")
    group.addoption("--cpu", action="store_true", help="what CPU time each function takes")


def seed_of_commit() -> int:
    """The commit's hash as a seed; where there is no git, any."""
    try:
        ask = ["git", "rev-parse", "--short=5", "HEAD"]
        found = subprocess.run(ask, capture_output=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return random.SystemRandom().randrange(1_000_000)
    return int(found.stdout, 16)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow(reason): runs with --all, and says what takes long")
    if config.option.share < 1:
        raise pytest.UsageError(f"--share {config.option.share}: one in N of a table, N from 1 on")
    if config.option.all:
        config.option.slow, config.option.share = True, 1
    config.option.all = config.option.slow and config.option.share == 1
    if config.option.bounds:
        importlib.import_module("checked_places").switch_on()
    if hasattr(config, "workerinput"):  # a worker of xdist
        config.option.seed = config.workerinput["seed"]
    else:
        compiled = tempfile.TemporaryDirectory()  # of the workers and of what they start, too
        config.add_cleanup(compiled.cleanup)
        os.environ["LINEARA_CACHE_DIR"] = compiled.name
    if config.option.seed is None:
        config.option.seed = seed_of_commit()
    if config.option.hypothesis_seed is None:  # its plugin is configured after this file
        config.option.hypothesis_seed = str(config.option.seed)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["seed"] = node.config.option.seed


def is_named(config: pytest.Config) -> bool:
    """Whether tests are named one by one, which run whole."""
    return any("::" in str(given) for given in config.args)


# --- which cases, and their order -----------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Of a function with many cases, leave those that are drawn."""
    yield
    option = metafunc.config.option
    if is_named(metafunc.config):
        return
    calls = metafunc._calls  # pytest has no public name for what `parametrize` has made
    if not option.slow:
        calls = [c for c in calls if all(mark.name != "slow" for mark in c.marks)] or calls
    if len(calls) > option.share:
        draw = random.Random(f"{option.seed} {metafunc.definition.nodeid}")
        calls = drawn(draw, calls, option.share)
    metafunc._calls = calls


def drawn(draw: random.Random, table: Sequence[Any], n: int) -> list[Any]:
    """One of every n lines, in their order."""
    return [draw.choice(table[k : k + n]) for k in range(0, len(table), n)]


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Callable[[Sequence[Any]], list[Any]]:
    """The lines of a table that a test goes through: all of them, or one in `--share`."""
    if is_named(request.config):
        return list
    draw = random.Random(f"{request.config.option.seed} {request.node.nodeid}")
    return lambda table: drawn(draw, table, request.config.option.share)


def is_random(item: Any) -> bool:
    """Whether Hypothesis draws the arguments of a test, and how often is told."""
    return (
        getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None) is not None
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not is_named(config):
        slow = {item for item in items if item.get_closest_marker("slow")}
        left_out = set() if config.option.slow else slow
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
        for test in {getattr(item.obj, "__func__", item.obj) for item in items if is_random(item)}:
            told = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = type(told)(
                told, max_examples=-(-told.max_examples // config.option.share)
            )
    items.sort(key=lambda item: item.nodeid)
    random.Random(config.option.seed).shuffle(items)
    place = {file: k for k, file in enumerate(dict.fromkeys(item.path for item in items))}
    items.sort(key=lambda item: place[item.path])  # file by file


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A generator of a module begins anew in each test: what it draws depends on no other test."""
    for value in vars(getattr(item, "module", item)).values():
        if type(value).__name__ == "Generator" and hasattr(value, "bit_generator"):
            fresh = type(value.bit_generator)(list(item.nodeid.encode()))
            value.bit_generator.state = fresh.state


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    option, write = terminalreporter.config.option, terminalreporter.write_line
    much = "" if option.slow else ", without slow tests"
    much += "" if option.share == 1 else f", with one in {option.share} of large tables"
    write(f"drawn by --seed {option.seed}{much}{much and ' (--all)'}")
    if option.cpu:
        write(f"{sum(CPU.values()):.0f} s of CPU time in {len(CPU)} functions; the first hundred:")
        for name, spent in CPU.most_common(100):
            write(f"{spent:8.2f}  {name}")


# --- doctests -------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".py" or file_path.name.startswith("test_"):
        return None
    if ">>> " not in file_path.read_text(encoding="utf-8"):
        return None
    return Documented.from_parent(parent, path=file_path)


class Documented(pytest.File):
    """A file whose docstrings have examples."""

    def collect(self) -> Iterator[pytest.Item]:
        yield Examples.from_parent(self, name="examples")


class Runner(doctest.DocTestRunner):
    """A docstring ends where an example needs a library that is not installed."""

    def __init__(self, optionflags: int) -> None:
        super().__init__(optionflags=optionflags)
        self.missing: list[str] = []

    def run(self, test: doctest.DocTest, *, out: Callable[[str], object]) -> Any:
        told: list[str] = []
        before = len(self.missing)
        results = super().run(test, out=told.append)
        if len(self.missing) == before:
            for line in told:
                out(line)
        return results

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        if exc_info[0].__name__ == "MissingLibraryError":
            self.missing.append(str(exc_info[1]).partition(";")[0])
        super().report_unexpected_exception(out, test, example, exc_info)


class Examples(pytest.Item):
    """The examples of one file: each docstring runs in a namespace of its own."""

    def runtest(self) -> None:
        (root,) = [root for root in ROOTS if self.path.is_relative_to(root)]
        parts = self.path.relative_to(root).with_suffix("").parts
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        runner = Runner(optionflags=doctest.NORMALIZE_WHITESPACE)
        wrong: list[str] = []
        tests = [test for test in doctest.DocTestFinder().find(module) if test.examples]
        assert tests, f"{self.path.name} has lines with >>> and no docstring has an example"
        for test in tests:
            runner.run(test, out=wrong.append)
        if wrong:
            raise AssertionError("".join(wrong))
        if runner.missing:
            pytest.skip(f"shown with a library that is not installed: {runner.missing[0]}")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"the examples of {self.path.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if excinfo.errisinstance(AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


# --- what they cost -------------------------------------------------------------------------------

CPU: Counter[str] = Counter()


def seconds() -> float:
    """The CPU time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    start = seconds()
    try:
        return (yield)
    finally:
        CPU[item.nodeid.partition("[")[0]] += seconds() - start


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[Any]:
    """What is collected lives to the end: the garbage collector would go through it for nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        CPU["start and collection"] += seconds()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cpu"] = dict(CPU)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    CPU.update(getattr(node, "workeroutput", {}).get("cpu", {}))

"""How much of the tests runs, and in which order.

Tests run in an order drawn by a seed, so that none can lean on one that came before.  The seed is
that of the commit, so that one commit has one result, unless `--seed N` gives another.

Without `--all`, those marked `slow` stay out, and of a function with many cases every eighth runs,
drawn by the same seed.  What is named on the command line by `::` runs always.
"""

import hashlib
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

MANY = 40  # a function with more cases has a table
SHARE = 8  # of a table, one case in so many runs without --all


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lineara")
    group.addoption("--all", action="store_true", help="slow tests and whole tables too")
    group.addoption("--seed", type=int, help="draws the order, and which cases of a table run")


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
    if hasattr(config, "workerinput"):  # a worker of xdist
        config.option.seed = config.workerinput["seed"]
    elif config.option.seed is None:
        config.option.seed = seed_of_commit()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["seed"] = node.config.option.seed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    option = terminalreporter.config.option
    much = "" if option.all else ", without slow tests and with a share of large tables (--all)"
    terminalreporter.write_line(f"drawn by --seed {option.seed}{much}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def drawn(text: str) -> int:
        seeded = f"{config.option.seed} {text}".encode()
        return int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest(), "big")

    def function(item: pytest.Item) -> str:
        return item.nodeid.partition("[")[0]

    def place(item: pytest.Item) -> tuple[int, int]:  # file by file
        return drawn(item.nodeid.partition("::")[0]), drawn(item.nodeid)

    items.sort(key=place)
    if config.option.all or any("::" in str(given) for given in config.args):
        return
    cases = Counter(map(function, items))
    left_out = [
        item
        for item in items
        if item.get_closest_marker("slow")
        or (cases[function(item)] > MANY and drawn(item.nodeid) % SHARE)
    ]
    config.hook.pytest_deselected(items=left_out)
    out = set(left_out)
    items[:] = [item for item in items if item not in out]

"""The plugin of pytest that runs rewritten tests and writes what came out, one JSON line a test."""

import json
import random
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lineara.errors import LinearaError
from lineara.tape.swallowed_errors import met_by_traced, told

NAME = "lineara_conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lift", default="none")
    parser.addoption("--outcomes")


def pytest_configure(config: pytest.Config) -> None:
    """Make what the rewritten modules import."""
    _own("lanes", "lanes.py")
    module = _own(NAME, "lifting.py")
    vars(module).update(module.GIVEN)
    module.OPTIONS["lift"] = config.option.lift


def _own(name: str, source: str) -> ModuleType:
    """A module under a file name that Lineara takes for its own."""
    module = sys.modules[name] = ModuleType(name)
    text = (Path(__file__).parent / source).read_text()
    exec(compile(text, f"<lineara conformance {source}>", "exec"), vars(module))
    return module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What ran before a crash does not run again, nor what would not end."""
    path = Path(config.option.outcomes)
    known = {json.loads(line)["test"] for line in path.open()} if path.exists() else set()
    kept = tomllib.loads((Path(__file__).parent / "kept.toml").read_text(encoding="utf-8"))["kept"]
    left = [k["test"] for k in kept if k.get("left") and k.get("lift") == config.option.lift]
    items[:] = [item for item in items if _name(item) not in known and not _is_left(item, left)]


def _is_left(item: pytest.Item, left: list[str]) -> bool:
    """Whether a test is not run, by the patterns of those."""
    return any([re.fullmatch(test, f"{item.path.stem}::{_name(item)}") for test in left])


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


def _write(item: pytest.Item, **entry: Any) -> None:
    with open(item.config.option.outcomes, "a") as out:
        out.write(json.dumps({"test": _name(item), **entry}) + "\n")


def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(0)  # plainly and lifted a test draws the same
    np.random.seed(0)
    _write(item, outcome="started")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    report = yield
    entry = {"outcome": "xfailed" if hasattr(report, "wasxfail") else report.outcome}
    if call.excinfo is not None and report.outcome == "failed":
        error = call.excinfo.value
        ours = _behind(error, LinearaError) or (told(error) if met_by_traced(error) else None)
        shown = ours or _behind(error, sys.modules[NAME].Late) or error
        text = str(getattr(shown, "message", shown))[:2000]
        entry |= {"ours": ours is not None, "kind": type(shown).__name__, "text": text}
    if call.when == "call" or report.outcome != "passed":
        _write(item, **entry)
    return report


def _behind(error: Any, kind: type) -> Any:
    """The error of a kind behind an error, if there is one."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None

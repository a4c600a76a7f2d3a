"""Every public name says what it is, shows it in an example, and names the errors that it raises.

The examples run as doctests.
"""

import ast
import builtins
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import lineara
from lineara import errors

PACKAGES = ["", ".calculus", ".cotangent", ".diagrams", ".distributed", ".engines", ".geometry"]
PACKAGES += [".policies", ".random", ".rules", ".testing", ".trees"]


def public() -> Iterator[tuple[str, Any]]:
    """The functions that users call, and the classes that have a name in `lineara` itself.

    Other classes are of objects that functions give, such as the nodes of a diagram.
    """
    for package in PACKAGES:
        module: Any = importlib.import_module(f"lineara{package}")
        own = [
            n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__
        ]
        for name in getattr(module, "__all__", [n for n in own if not n.startswith("_")]):
            value = getattr(module, name)
            if inspect.isfunction(value) or (inspect.isclass(value) and not package):
                yield f"lineara{package}.{name}", value


def raised(value: Any) -> set[str]:
    """The errors of Lineara that the source of a function or a class raises."""
    nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(value))))
    calls = [n.exc for n in nodes if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return {ast.unparse(call.func) for call in calls} & vars(errors).keys()


def test_what_is_public_has_an_example():
    lacking = [name for name, value in public() if ">>> " not in (inspect.getdoc(value) or "")]
    assert lacking == []


def test_every_name_of_the_library_itself_has_an_example():
    names = [
        n for n in lineara.__all__ if ">>> " not in (inspect.getdoc(getattr(lineara, n)) or "")
    ]
    assert names == []


def test_what_is_public_names_the_errors_that_it_raises():
    for name, value in public():
        silent = {e for e in raised(value) if e not in (inspect.getdoc(value) or "")}
        assert not silent, f"{name} raises {silent}, of which its docstring says nothing"


def test_the_errors_that_docstrings_name_exist():
    texts = [inspect.getdoc(value) or "" for _, value in public()]
    told = {word for t in texts for word in re.findall(r"\b[A-Z]\w+(?:Error|Warning)\b", t)}
    assert len(told) > 10
    assert told <= vars(errors).keys() | vars(builtins).keys()

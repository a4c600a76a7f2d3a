"""`import lineara` is light, and the installed package is what pyproject.toml promises."""

import importlib.metadata
import importlib.resources
import json
import subprocess
import sys

import lineara

HEAVY = ["scipy", "llvmlite", "lark", "rich", "optree", "matplotlib", "jax", "torch", "pandas"]


def modules_after(program: str) -> set[str]:
    """The names in `sys.modules` of a fresh interpreter that has run `program`."""
    program += "; import json, sys; print(json.dumps(list(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy_beyond_numpy():
    loaded = modules_after("import lineara")
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_gradient_loads_neither_these_nor_the_staged_engine():
    loaded = modules_after("import lineara; lineara.grad(lambda x: x * x)(3.0)")
    assert loaded.isdisjoint(HEAVY)
    assert not [m for m in loaded if m.startswith(("lineara.linear_a", "lineara.passes"))]


def test_the_model_of_the_demo_loads_nothing_heavy_either():
    loaded = modules_after("from lineara.demo import model; model.hudson_bay()")
    assert loaded.isdisjoint(HEAVY)


def test_the_version_stands_in_one_place():
    assert importlib.metadata.version("lineara") == lineara.__version__


def test_the_package_says_that_it_is_typed():
    assert importlib.resources.files("lineara").joinpath("py.typed").is_file()


def test_there_is_no_console_script():
    points = importlib.metadata.distribution("lineara").entry_points
    assert [p for p in points if p.group in ("console_scripts", "gui_scripts")] == []


def test_the_staged_engine_loads_at_first_use():
    assert "lineara.passes.jvp" in modules_after("import lineara; lineara.stages")


def test_a_first_trace_loads_no_engine_that_compiles():
    loaded = modules_after("import lineara; lineara.trace(lambda x: x * x, 3.0)(2.0)")
    assert "lineara.engines.interpreter" in loaded
    assert not [m for m in loaded if m.startswith(("lineara.engines.native", "tempfile"))]


def test_names_that_load_late_are_listed():
    assert set(lineara.__all__) <= set(dir(lineara))
    assert lineara.policies.budget is lineara.policies.__dict__["budget"]


def test_what_loads_late_is_loaded_with_the_collector_of_cycles_at_rest():
    program = (
        "import gc, json, lineara; seen = []; gc.callbacks.append(lambda *a: seen.append(a)); "
        "lineara.trace; n = len(seen); on = gc.isenabled(); print(json.dumps([n, on]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    collections, is_on = json.loads(run.stdout)
    assert is_on
    assert collections <= 4  # two notes of each; of dozens without

"""What is known of a captured program, on disk: no pass runs for it, and nothing is emitted."""

import os
import subprocess
import sys

import numpy as np
import optree
import pytest

import lineara
from lineara.engines.native import cache, emitted, facts, machine_code
from lineara.engines.native.machine_code import compiler
from lineara.facts.primitive import elementwise
from lineara.facts.registry import registry
from lineara.linear_a.identity import identity
from lineara.passes import derivatives
from lineara.staging import definitions

pytest.importorskip("llvmlite")
X = np.linspace(0.1, 0.9, 5)


def filled(x):
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + np.sin(x[i]) * y[i - 1]
    return y.sum()


def straight(x):
    return np.exp(x[0]) * x[1] + x[1] * x[1]


def branching(x):
    return np.sin(x[0]) if x[1] > 0.2 else x[2] * x[3]


def called_back(x):
    return (np.partition(x, 1) * x).sum()


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return tmp_path / cache.NAME


@pytest.fixture
def work(monkeypatch, pytestconfig):
    """What has been done: the passes that ran, what was emitted, and what LLVM compiled."""
    if pytestconfig.option.bounds:
        pytest.skip("code that looks at its places is not kept on disk")
    with monkeypatch.context() as m:
        m.setenv(cache.VARIABLE, cache.OFF)
        ready = lineara.jit(lambda x: x * x, engine="native")
        ready(ready(2.0))  # the code of calls is there
    done = []

    def counted(where, name, label):
        f = getattr(where, name)

        def counting(*args, **kwargs):
            done.append(label)
            return f(*args, **kwargs)

        monkeypatch.setattr(where, name, counting)

    for name in ("jvp", "vjp", "erase", "masks", "makes_dead_lanes"):
        counted(definitions, name, "pass")
    for name in ("jvp", "unzip", "transpose", "erase"):
        counted(derivatives, name, "pass")
    counted(emitted, "lowered", "emitted")
    counted(type(compiler()), "object_code", "compiled")
    return done


def of(work):
    """What has been done since this was last asked."""
    done = {*work}
    work.clear()
    return done


def bits(value):
    """The bytes of all arrays and numbers in a result."""
    return [np.asarray(v).tobytes() for v in optree.tree_leaves(value)]


ALL = {"pass", "emitted", "compiled"}
TRANSFORMS = [
    lineara.grad,
    lineara.value_and_grad,
    lambda f: lambda x: lineara.jvp(f, (x,), (x,)),
    lambda f: lambda x: lineara.vjp(f, x)[1](1.0),
    lambda f: lineara.grad(lambda x: (lineara.grad(f)(x) ** 2).sum()),
    lambda f: lambda x: lineara.grad(f)(x) + lineara.grad(straight)(x),
]
NAMES = ["grad", "value and grad", "jvp", "vjp", "grad of grad", "two gradients"]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=NAMES)
@pytest.mark.parametrize("f", [filled, straight, branching])
def test_a_hit_runs_no_pass_and_emits_nothing(work, f, transform):
    missed = lineara.jit(transform(f), engine="native")
    first = missed(X)
    assert of(work) == ALL
    hit = lineara.jit(transform(f), engine="native")
    second = hit(X)
    assert of(work) == set()
    assert bits(first) == bits(second)
    assert str(missed.program(X).program) == str(hit.program(X).program)  # which is made now
    assert "pass" in of(work)


def test_the_default_engine_hits_too(work):
    x = np.linspace(-0.1, 0.1, 1000)
    first = lineara.jit(lineara.grad(filled))(x)
    assert of(work) == ALL
    again = lineara.jit(lineara.grad(filled))
    second = again(x)
    assert of(work) == set()
    assert first.tobytes() == second.tobytes()
    assert again(x).tobytes() == first.tobytes()
    assert of(work) == set()


def test_what_does_not_pay_is_interpreted_whatever_is_on_disk(work):
    compiled = lineara.jit(lineara.grad(straight), engine="native")(X)
    of(work)
    f = lineara.jit(lineara.grad(straight))
    assert np.allclose(f(X), compiled)
    assert of(work) == {"pass"}  # the interpreter needs the derivative


def test_the_run_that_is_compiled_first_is_the_same_with_a_hit(work):
    def runs():
        f = lineara.jit(lineara.grad(branching))
        for n in range(1, 1000):
            f(X)
            if f.table is not None:
                return n
        raise AssertionError("it never pays")

    assert runs() == runs() > 1


def test_explain_and_stages_of_a_hit_are_those_of_a_miss(work):
    def told():
        f = lineara.jit(lineara.grad(filled), engine="native")
        f(X)
        return str(f.program(X)), lineara.explain(f, X).machine_code

    assert told() == told()


def test_a_place_that_calls_back_in_a_derivative(work):
    def ran():
        return lineara.jit(lineara.grad(called_back), engine="native")(X[::-1])

    first = ran()
    of(work)
    assert ran().tobytes() == first.tobytes()
    assert of(work) == {"pass", "emitted"}  # to know what it asks


def test_an_error_of_a_hit_is_that_of_a_miss():
    def at(x, i):
        return np.exp(x[i])

    def said():
        f = lineara.jit(lineara.grad(at), engine="native")
        f(X, 2)
        with pytest.raises(IndexError, match="index 7 is out of bounds") as raised:
            f(X, 7)
        return str(raised.value)

    assert said() == said()


# --- what is another program ---------------------------------------------------------------------


def test_a_rule_of_the_users_is_looked_at_each_time(work):
    """Two functions of one name and one text whose gradients are stated otherwise."""

    def with_factor(k):
        return lineara.custom_vjp(
            lambda x: x * x, lambda x: (x * x, x), lambda x, y_bar: (k * x * y_bar,), check=False
        )

    def gradient(k):
        f = with_factor(k)
        return lineara.jit(lineara.grad(lambda x: f(x) + x), engine="native")(3.0)

    assert [gradient(2.0), gradient(5.0), gradient(2.0)] == [7.0, 16.0, 7.0]


def test_a_primitive_that_is_not_the_librarys_is_not_told_by_its_name():
    try:
        doubled = elementwise("doubled", lambda y, x: 2.0, array=lambda x: x + x)
        f = lineara.trace(lambda x: doubled(x) * x, 3.0)
        assert identity(f.program, f.name) == ""
    finally:
        del registry.primitives["doubled"]
    f = lineara.trace(lambda x: (x + x) * x, 3.0)
    assert len(identity(f.program, f.name)) == 64


def test_programs_differ_by_what_is_derived_how_and_of_what():
    def key(f, engine="native"):
        made = lineara.jit(f, engine=engine).program(X)
        return identity(made.program, made.name)

    def scaled(x):
        return 2.0 * np.exp(x[0]) * x[1] + x[1] * x[1]

    keys = [
        key(lineara.grad(straight)), key(lineara.grad(filled)), key(lineara.grad(scaled)),
        key(lambda x: lineara.jvp(straight, (x,), (x,))[1]), key(straight),
    ]  # fmt: skip
    assert len({*keys}) == len(keys)
    assert key(lineara.grad(straight)) == keys[0]


@pytest.mark.parametrize("changed", ["library", "np.__version__", "sys.version"])
def test_other_versions_run_the_passes_again(work, monkeypatch, changed):
    def ran():
        value = lineara.jit(lineara.grad(straight), engine="native")(X)
        return of(work), value.tobytes()

    _, value = ran()
    assert ran() == (set(), value)
    with monkeypatch.context() as m:
        new = (lambda: "another") if changed == "library" else "another"
        for module in (facts, machine_code):
            if hasattr(module, changed.partition(".")[0]):
                m.setattr(f"{module.__name__}.{changed}", new)
        m.setattr(emitted, "library", facts.library)
        assert ran() == (ALL, value)
    assert ran() == (set(), value)


def test_another_processor_compiles_again_and_runs_no_pass_but_to_emit(work, monkeypatch):
    lineara.jit(lineara.grad(straight), engine="native")(X)
    of(work)
    here = compiler()
    assert here is not None
    monkeypatch.setattr(here, "versions", (*here.versions[:-1], "+other"))
    lineara.jit(lineara.grad(straight), engine="native")(X)
    assert of(work) == ALL


# --- entries that are not what they were, or not there -------------------------------------------


def entries(place):
    return sorted(place.iterdir(), key=lambda e: e.stat().st_size)


@pytest.mark.parametrize("content", [b"", b"nothing", None], ids=["empty", "altered", "no JSON"])
def test_a_fact_that_is_not_whole_is_found_out_again(work, place, content):
    first = lineara.jit(lineara.grad(straight), engine="native")(X)
    (fact, _) = entries(place)
    whole = fact.read_bytes()
    of(work)
    if content is None:
        cache.disk_cache().put(fact.name, b"{")
    else:
        fact.write_bytes(content)
    assert lineara.jit(lineara.grad(straight), engine="native")(X).tobytes() == first.tobytes()
    assert of(work) == {"pass"}
    assert fact.read_bytes() == whole  # the next one hits
    lineara.jit(lineara.grad(straight), engine="native")(X)
    assert of(work) == set()


def test_code_that_is_gone_is_made_again(work, place):
    first = lineara.jit(lineara.grad(straight), engine="native")(X)
    entries(place)[-1].unlink()
    of(work)
    assert lineara.jit(lineara.grad(straight), engine="native")(X).tobytes() == first.tobytes()
    assert of(work) == ALL


def test_without_a_disk_everything_is_made_each_time(work, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, cache.OFF)
    for _ in range(2):
        lineara.jit(lineara.grad(straight), engine="native")(X)
        assert of(work) == ALL


SCRIPT = """
import numpy as np
import lineara
from test_native_hits import X, filled

print(lineara.jit(lineara.value_and_grad(filled), engine="native")(X)[1].tobytes().hex())
"""


def test_processes_that_miss_at_once_have_the_same_gradient(place):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=env)
        for _ in range(2)
    ]
    (said,) = {p.communicate()[0] for p in started}
    found = np.frombuffer(bytes.fromhex(said))
    np.testing.assert_allclose(found, lineara.grad(filled)(X), rtol=1e-12)
    assert len(entries(place)) == 2  # the fact and the code


LOOKED_AT = """
import io, pickle, sys

class Asked:  # the module that is looked at first
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AssertionError(f"{name} was looked for in a module that has nothing of it")

sys.modules["another"] = Asked()
import scipy.special
from lineara.engines.native.emitted import Writer

written = io.BytesIO()
Writer(written).dump(scipy.special.i0)
assert pickle.loads(written.getvalue()) is scipy.special.i0
"""


def test_a_function_of_scipys_is_written_by_its_module():
    subprocess.run([sys.executable, "-c", LOOKED_AT], check=True)

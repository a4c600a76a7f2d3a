"""Values and gradients as artifacts of `jax.export`, which run without Lineara."""

import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import lineara
from lineara.errors import ProgramError, StagingError, TypeMismatchError

ALONE = """
import sys
import jax, numpy as np
from jax import export
jax.config.update("jax_enable_x64", True)
exported = export.deserialize(open(sys.argv[1], "rb").read())
value, slope, failed = exported.call(np.arange(4) / 4, 2.0)
print(float(value).hex(), *[float(v).hex() for v in slope], bool(failed))
assert "lineara" not in sys.modules
"""


def filled(params, k):
    x = params["x"]
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum() * k


def halved(x):
    while x > 1.0:
        x = x * 0.5
    return x


def least(x):
    if np.min(x) < 0.0:
        raise ValueError("x is negative")
    return np.sum(np.sqrt(x))


def test_the_artifact_gives_the_value_and_the_gradient(tmp_path):
    params = {"x": np.arange(4) / 4}
    exported = lineara.export_jax(filled, params, 2.0)
    value, slope = exported.call(params, 2.0)
    expected = lineara.value_and_grad(filled)(params, 2.0)
    np.testing.assert_allclose(value, expected[0], rtol=1e-14)
    np.testing.assert_allclose(slope["x"], expected[1]["x"], rtol=1e-14)
    assert isinstance(slope["x"], jax.Array)
    assert exported.certificate == lineara.stages(filled, params, 2.0).certificate
    file = tmp_path / "gradient"
    file.write_bytes(exported.serialize())
    run = [sys.executable, "-c", ALONE, str(file)]
    out = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert out == [float(v).hex() for v in (value, *slope["x"])] + ["False"]


def test_a_run_that_failed_says_so():
    exported = lineara.export_jax(least, np.ones(2))
    assert exported.call(np.full(2, 4.0))[0] == 4.0
    with pytest.raises(ProgramError) as failed:
        exported.call(np.array([1.0, -1.0]))
    assert str(failed.value).partition("\n")[0] == (
        "call: the run may have raised an exception, or has a loop that goes round more often than "
        "there was room for; call the function itself, which says which"
    )


def test_a_loop_without_a_length_has_room_for_64_rounds():
    exported = lineara.export_jax(halved, 2.0)
    assert exported.call(2.0**64) == (1.0, 2.0**-64)
    with pytest.raises(ProgramError, match="more often than there was room for"):
        exported.call(2.0**65)


def test_other_arguments_are_refused():
    exported = lineara.export_jax(least, np.ones(2))
    with pytest.raises(TypeMismatchError, match=re.escape("for arguments of f64[2], not for f64")):
        exported.call(1.0)
    with pytest.raises(TypeMismatchError, match="takes a function, but was given f64"):
        lineara.export_jax(1.0)  # pyright: ignore[reportArgumentType]


def test_what_has_no_program_for_xla_is_refused():
    with pytest.raises(
        ProgramError, match="eigh_factors is evaluated by NumPy and SciPy on the host"
    ):
        lineara.export_jax(lambda a: np.sum(np.linalg.eigvalsh(a)), np.eye(2))
    with pytest.raises(StagingError, match="input"):
        lineara.export_jax(lambda x: x * float(input()), 1.0)

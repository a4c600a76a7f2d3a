"""One call of each bridge to torch and JAX, where they are installed; tests/peers has the rest.

In a process of its own, since both libraries change the process that imports them.
"""

import subprocess
import sys
from importlib.util import find_spec

import pytest

PROGRAMS = {
    "to_torch": """
        x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
        lineara.to_torch(lambda x: np.sum(x**3))(x).backward()
        print(x.grad.tolist())
    """,
    "from_torch": """
        f = lineara.from_torch(lambda x: (x**3).sum())
        print(lineara.grad(f)(np.array([0.5, 1.0])).tolist())
    """,
    "to_jax": """
        f = lineara.to_jax(lambda x: np.sum(x**3))
        print(jax.jit(jax.grad(f))(jax.numpy.array([0.5, 1.0], "float32")).tolist())
    """,
    "from_jax": """
        jax.config.update("jax_enable_x64", True)
        f = lineara.from_jax(lambda x: (x**3).sum())
        print(lineara.grad(f)(np.array([0.5, 1.0])).tolist())
    """,
    "engine of jax": """
        f = lineara.jit(lineara.grad(lambda x: np.sum(x**3)), engine="jax")
        print(f(np.array([0.5, 1.0])).tolist())
    """,
}


@pytest.mark.parametrize("bridge", PROGRAMS)
def test_a_bridge_works_where_its_framework_is_installed(bridge):
    library = "torch" if "torch" in bridge else "jax"
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed: pip install lineara[peers]")
    lines = [line.strip() for line in PROGRAMS[bridge].strip().splitlines()]
    program = "\n".join([f"import lineara, {library}, numpy as np", *lines])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[0.75, 3.0]\n", run.stderr

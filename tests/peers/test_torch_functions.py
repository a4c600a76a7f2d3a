"""Functions of ours in torch, and torch's here, by torch's own checks of gradients."""

import pickle

import numpy as np
import pytest
import scipy.optimize

import lineara
from lineara.errors import NoRuleError, StagingError, TypeMismatchError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # its own

BITS = 32
X = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)
W = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def layer(x, p, n=2):
    """A loop that fills an array."""
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sin(x[i]) * p["w"][i] ** n + (y[i - 1] if i else 0.0)
    return {"sum": np.sum(y * y), "y": y, "most": np.argmax(y), "name": "a layer"}


def total(x, w):
    return lineara.to_torch(layer)(x, {"w": w}, n=3)["sum"]


def moving(*tensors):
    return [t.clone().requires_grad_() for t in tensors]


def test_the_result_has_its_containers_and_its_gradient_is_ours():
    x, w = moving(X, W)
    out = lineara.to_torch(layer)(x, {"w": w})
    assert out["name"] == "a layer"
    assert out["most"].dtype == torch.int64
    out["sum"].backward()
    here = lineara.grad(lambda x, p: layer(x, p)["sum"], (0, 1))(X.numpy(), {"w": W.numpy()})
    np.testing.assert_array_equal(x.grad.numpy(), here[0])
    np.testing.assert_array_equal(w.grad.numpy(), here[1]["w"])


def test_torch_finds_the_gradient_and_its_gradient_right_in_both_modes():
    point = tuple(moving(X, W))
    assert torch.autograd.gradcheck(total, point, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(total, point)


def test_transforms_of_torch_and_their_compositions():
    ours = lineara.hessian(lambda x: layer(x, {"w": W.numpy()}, 3)["sum"])(X.numpy())
    hessians = [
        torch.func.hessian(total)(X, W),
        torch.func.jacrev(torch.func.grad(total))(X, W),
        torch.autograd.functional.hessian(lambda x: total(x, W), X),
    ]
    for h in hessians:
        np.testing.assert_allclose(h.numpy(), ours, rtol=1e-12)
    rows = torch.stack([X, X + 1.0])
    lanes = torch.func.vmap(torch.func.grad(total), in_dims=(0, None))(rows, W)
    for lane, row in zip(lanes, rows, strict=True):
        np.testing.assert_allclose(lane, torch.func.grad(total)(row, W), rtol=1e-12)


def test_memory_is_shared_and_results_have_their_own():
    seen = []
    f = lineara.to_torch(lambda x: seen.append(x.__array_interface__["data"][0]) or x)
    y = f(X)
    assert seen == [X.data_ptr()]
    assert y.data_ptr() != X.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        lineara.to_torch(lambda x: x.fill(0.0))(X)


def test_without_a_gradient_the_function_runs_as_it_is():
    kinds = []
    f = lineara.to_torch(lambda x: kinds.append(type(x)) or np.sum(x))
    (x,) = moving(X)
    with torch.no_grad():
        f(x)
    f(X)
    assert kinds == [np.ndarray, np.ndarray]


def test_dtypes_and_complex_numbers():
    x = torch.ones(2, requires_grad=True)
    y = lineara.to_torch(lambda x: 2.0 * float(np.sum(x)))(x)
    y.backward()
    assert (y.dtype, x.grad.dtype) == (torch.float32, torch.float32)
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lineara.to_torch(lambda z: np.sum(np.abs(z) ** 2)), z)


def energy(x):
    return np.sum(np.sin(x) ** 2)


def test_it_pickles():
    f = pickle.loads(pickle.dumps(lineara.to_torch(energy)))
    assert f(X) == np.sum(np.sin(X.numpy()) ** 2)


def steady(p, inputs):
    """A loop over the rows, and a root of each: y = tanh(A y + row)."""
    out = np.zeros_like(inputs)
    for i in range(len(inputs)):
        row = inputs[i]
        found = scipy.optimize.root(lambda y, row=row: y - np.tanh(p["A"] @ y + row), np.zeros(2))
        out[i] = found.x
    return out


def test_a_model_with_a_layer_of_ours_is_trained():
    torch.manual_seed(0)
    first, last = torch.nn.Linear(3, 2).double(), torch.nn.Linear(2, 1).double()
    A = torch.nn.Parameter(0.3 * torch.eye(2, dtype=torch.float64))
    middle = lineara.to_torch(steady)
    inputs = torch.randn(4, 3, dtype=torch.float64)
    wanted = torch.sin(inputs.sum(dim=1, keepdim=True))

    def loss():
        return torch.mean((last(middle({"A": A}, first(inputs))) - wanted) ** 2)

    assert torch.autograd.gradcheck(
        lambda A: torch.sum(middle({"A": A}, first(inputs).detach())), A, atol=1e-4
    )
    parameters = [*first.parameters(), *last.parameters(), A]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert losses[-1] < 0.5 * losses[0]
    assert A.grad.abs().max() > 0


# --- torch's functions here -----------------------------------------------------------------------


def theirs(x, p):
    return {"a": torch.sin(x) * p["k"].sum(), "b": x.sum()}


def test_a_function_of_torchs_is_an_operation_in_both_modes():
    f = lineara.from_torch(theirs)
    x, p = np.array([0.5, 2.0]), {"k": np.array([1.0, 3.0])}

    def loss(x, p):
        out = f(x * x, p)
        return np.sum(out["a"]) + 3.0 * out["b"]

    def plain(x, p):
        return np.sum(np.sin(x * x)) * np.sum(p["k"]) + 3.0 * np.sum(x * x)

    g, here = lineara.grad(loss, (0, 1))(x, p), lineara.grad(plain, (0, 1))(x, p)
    np.testing.assert_allclose(g[0], here[0], rtol=1e-14)
    np.testing.assert_allclose(g[1]["k"], here[1]["k"], rtol=1e-14)
    assert lineara.check_grads(loss, (x, p), order=1)
    ahead = lineara.jacobian(lambda x: f(x, p)["a"], mode="forward")(x)
    np.testing.assert_allclose(ahead, lineara.jacobian(lambda x: f(x, p)["a"])(x), rtol=1e-14)


def test_a_module_and_its_parameters():
    module = torch.nn.Linear(3, 2)
    x = np.ones(3, np.float32)
    run = lineara.from_torch(lambda p, x: torch.func.functional_call(module, p, (x,)))
    p = {k: v.detach().numpy() for k, v in module.named_parameters()}
    g = lineara.grad(lambda p: np.sum(run(p, x) ** 2))(p)
    torch.sum(module(torch.ones(3)) ** 2).backward()
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(g[name], parameter.grad, rtol=1e-5)
    there = lineara.grad(lambda x: np.sum(lineara.from_torch(module)(x)))(x)
    np.testing.assert_allclose(there, module.weight.detach().sum(dim=0), rtol=1e-6)


def test_there_and_back_again():
    f = lineara.to_torch(lineara.from_torch(torch.sin))
    (x,) = moving(X)
    f(x).sum().backward()
    np.testing.assert_allclose(x.grad, torch.cos(X), rtol=1e-14)


def test_what_is_refused():
    f = lineara.from_torch(torch.sin)
    with pytest.raises(NoRuleError, match="a second one was asked for"):
        lineara.hessian(lambda x: np.sum(f(x)))(np.ones(2))
    with pytest.raises(StagingError, match="has no program"):
        lineara.trace(f, np.ones(2))
    with pytest.raises(TypeMismatchError, match="from_torch: takes a function, but was given"):
        lineara.from_torch(3)

"""An Op of PyTensor's, and so a term of a PyMC model, that is a function of NumPy's with a loop.

The log density of a damped oscillator is written with NumPy; PyTensor asks the Op for cotangents,
which are a second Op that calls `lineara.vjp`.

    python examples/pytensor_op.py        # needs pytensor; in PyMC: pm.Potential("fit", op(theta))
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph import Apply, Op

import lineara

TIMES = np.linspace(0.0, 4.0, 41)


def log_density(theta):
    """Of (stiffness, damping), for an oscillator that was seen at some times."""
    x, v, total = 1.0, 0.0, 0.0
    for seen in np.exp(-0.2 * TIMES) * np.cos(1.5 * TIMES):
        total = total - 0.5 * ((x - seen) / 0.1) ** 2
        v = v - 0.1 * (theta[0] * x + theta[1] * v)
        x = x + 0.1 * v
    return total


class Density(Op):
    """A function of one vector that returns a number."""

    def __init__(self, f):
        self.f = f

    def make_node(self, theta):
        """One vector in, one number out."""
        theta = pt.as_tensor_variable(theta)
        return Apply(self, [theta], [pt.scalar(dtype=theta.dtype)])

    def perform(self, node, inputs, outputs):
        """The number."""
        outputs[0][0] = np.asarray(self.f(inputs[0]), node.outputs[0].dtype)

    def pullback(self, inputs, outputs, cotangents):
        """The cotangent of the vector."""
        return [Pull(self.f)(inputs[0], cotangents[0])]


class Pull(Op):
    """The cotangent of the vector, for one of the number."""

    def __init__(self, f):
        self.f = f

    def make_node(self, theta, w):
        """A vector and a number in, a vector out."""
        return Apply(self, [theta, w], [theta.type()])

    def perform(self, node, inputs, outputs):
        """The cotangent."""
        theta, w = inputs
        outputs[0][0] = lineara.vjp(self.f, theta)[1](float(w))[0]


def compiled():
    """The log density and its gradient, by PyTensor."""
    theta = pt.dvector("theta")
    value = Density(log_density)(theta)
    return pytensor.function([theta], [value, pytensor.grad(value, theta)], mode="FAST_COMPILE")


if __name__ == "__main__":
    value, gradient = compiled()(np.array([2.0, 0.5]))
    print(f"{value:.4f}", gradient.round(4))

"""lmfit: models, parameters with expressions, and residuals."""

import numpy as np
from following import Cases

cases = Cases("lmfit")

import lmfit
from lmfit import lineshapes, models

X = np.linspace(-2.0, 3.0, 11)


@cases.at(2.0, 0.3, 0.8)
def gaussian(a, c, s):
    return np.sum(models.GaussianModel().eval(x=X, amplitude=a, center=c, sigma=s) * X)


@cases.at(2.0, 0.3, 0.8)
def lorentzian(a, c, s):
    return np.sum(lineshapes.lorentzian(X, a, c, s) ** 2)


@cases.at(2.0, 0.3, 0.8)
def voigt(a, c, s):
    return np.sum(lineshapes.voigt(X, a, c, s) * X)


def straight(x, slope, offset):
    return slope * x + offset


@cases.at(2.0, 0.3)
def own_model(slope, offset):
    return np.sum(lmfit.Model(straight).eval(x=X, slope=slope, offset=offset) ** 2)


@cases.at(2.0, 0.3)
def parameters(a, b):
    p = lmfit.Parameters()
    p.add("a", value=a)
    p.add("b", value=b)
    v = p.valuesdict()
    return v["a"] ** 2 * v["b"]


@cases.at(2.0, 0.3)
def composite(a, b):
    model = models.GaussianModel(prefix="g_") + models.LinearModel()
    y = model.eval(x=X, g_amplitude=a, g_center=b, g_sigma=1.0, slope=b, intercept=a)
    return np.sum(y**2)


@cases.at(2.0, 0.3)
def expression(a, b):
    p = lmfit.Parameters()
    p.add("a", value=a)
    p.add("b", value=b)
    p.add("c", expr="a*b + sqrt(a)")
    return p["c"].value


@cases.at(2.0, 0.3)
def exponential(a, t):
    return np.sum(models.ExponentialModel().eval(x=X, amplitude=a, decay=t * 5))


cases.not_captured("parameters", "expression", why="it asks for the time")

test_works, test_refused, test_jitted = cases.tests()

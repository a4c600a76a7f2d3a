"""astropy: models, cosmology, statistics and angles."""

import numpy as np
from following import Cases

cases = Cases("astropy")

from astropy import constants, coordinates, cosmology, stats, units
from astropy.modeling import models

X = np.linspace(-2.0, 3.0, 11)


@cases.at(2.0, 0.3, 0.8)
def gaussian(a, m, s):
    return np.sum(models.Gaussian1D.evaluate(X, a, m, s) * X)


@cases.at(2.0, 0.3, 0.8)
def gaussian_model(a, m, s):
    return np.sum(models.Gaussian1D(a, m, s)(X) * X)


@cases.at(2.0, 0.3)
def model_at(x, y):
    return models.Gaussian2D(1.0, 0.2, 0.1, 1.5, 0.7)(x, y)


@cases.at(0.3, 0.8)
def compound(x, y):
    return (models.Polynomial1D(2, c0=1.0, c1=2.0, c2=0.5) + models.Sine1D(1.0, 0.2, 0.1))(x * y)


@cases.refuses(
    0.5,
    70.0,
    0.3,
    match="plain array",
    why="a Quantity is an array of a class derived from NumPy's, which cannot hold derivatives",
)
def distance(z, h, m):
    return cosmology.FlatLambdaCDM(H0=h, Om0=m).comoving_distance(z).value


@cases.at(0.5)
def expansion(z):
    return cosmology.FlatLambdaCDM(H0=70.0, Om0=0.3).efunc(z)


@cases.at(0.3, 0.2, 0.5)
def separation(a, b, c):
    return coordinates.angular_separation(a, b, c, 0.7)


@cases.at(0.3, 0.2, 0.5)
def location(a, b, c):
    return stats.biweight_location(np.array([a, b, c, 0.4, 0.35, 0.1]))


@cases.at(0.3, 0.2, 0.5)
def circular(a, b, c):
    return stats.circmean(np.array([a, b, c]))


@cases.refuses(
    2.0,
    3.0,
    match="unsupported operand",
    why="a Quantity is an array of a class derived from NumPy's, which cannot hold derivatives",
)
def quantity(x, t):
    return (x * units.km / (t * units.s)).to(units.m / units.s).value


@cases.at(2.0)
def constant(x):
    return constants.c.value * x * x


@cases.at(0.5, 0.2)
def power_law(x, a):
    return models.PowerLaw1D.evaluate(x, 2.0, 1.0, a) + models.Moffat1D.evaluate(
        x, 0.1, 1.0, 0.5, 0.6
    )


cases.not_captured("compound", why="it fills a cache of its own that outlives the call")

test_works, test_refused, test_jitted = cases.tests()

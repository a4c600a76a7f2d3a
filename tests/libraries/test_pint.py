"""pint: quantities made and converted inside the function."""

import math

import numpy as np
from following import Cases

cases = Cases("pint")

import pint

ureg = pint.UnitRegistry()


@cases.at(3.0, 2.0)
def conversion(x, t):
    return (x * ureg.mile / (t * ureg.hour)).to("m/s").magnitude


@cases.at(3.0, 2.0)
def made(x, y):
    area = ureg.Quantity(x, "m") * ureg.Quantity(y, "ft")
    return area.to("cm**2").m


@cases.at(3.0, 2.0)
def energy(m, v):
    e = 0.5 * (m * ureg.kilogram) * (v * ureg.kilometer / ureg.hour) ** 2
    return e.to_base_units().magnitude


@cases.at(20.0)
def temperature(t):
    return ureg.Quantity(t, ureg.degC).to(ureg.degF).magnitude


@cases.at(3.0, 2.0)
def arrays(x, y):
    q = np.array([x, y, x * y]) * ureg.meter
    return np.sum(q**2).to("mm**2").magnitude


@cases.at(3.0, 0.5)
def functions(x, y):
    angle = ureg.Quantity(y * 40, "degree")
    return np.sin(angle).magnitude * math.exp((x * ureg.meter / (2 * ureg.km)).to("").magnitude)


@ureg.wraps(ureg.second, (ureg.meter, ureg.meter / ureg.second**2))
def period(length, g):
    return 2 * math.pi * (length / g) ** 0.5


@cases.at(0.7, 9.8)
def wrapped(length, g):
    return period(length * ureg.meter, g * ureg.meter / ureg.second**2).to("ms").m


cases.not_captured(
    "conversion",
    "energy",
    "functions",
    "wrapped",
    why="its values are left to the library, which is not read",
)
cases.not_captured("made", "arrays", why="it fills a cache of its own that outlives the call")

test_works, test_refused, test_jitted = cases.tests()

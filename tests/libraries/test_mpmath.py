"""mpmath: its contexts of Python floats; numbers of many digits are refused."""

from following import Cases

cases = Cases("mpmath")

import mpmath
from mpmath import fp

ASCENDING = tuple(map(int, mpmath.__version__.split(".")[:2])) >= (1, 4)  # as is asked for there


@cases.refuses(0.7, 2.0, match="looks up", why="it caches nodes by the limits of the integral")
def quadrature(a, b):
    return fp.quad(lambda t: fp.exp(-a * t * t), [0.0, b])


@cases.at(2.0)
def root(c):
    return fp.findroot(lambda x: x * x * x - c, 1.0)


@cases.at(0.7, 0.2)
def polynomial(x, a):
    falling = [a, 1.0, -2.0, x]
    return fp.polyval(falling[::-1], x, asc=True) if ASCENDING else fp.polyval(falling, x)


@cases.at(0.7, 1.1)
def elementary(x, y):
    return fp.exp(x) * fp.sin(y) + fp.log(x) / fp.sqrt(y) + fp.atan(x) * fp.cosh(y)


@cases.at(0.7)
def series(x):
    return fp.nsum(lambda k: x**k, [0, 30])


@cases.at(1.3)
def exact_sum(x):
    return fp.fsum([x, x * x, 1.0])


@cases.at(1.3, 0.4)
def dot(x, y):
    return fp.fdot([(x, y), (y, y), (2.0, x)])


@cases.at(2.5)
def gamma(x):
    return fp.gamma(x) + fp.loggamma(x + 1)


@cases.at(0.5)
def hypergeometric(x):
    return fp.hyp2f1(1.0, 0.5, 1.5, x)


@cases.at(0.3)
def erf(x):
    return fp.erf(x)


@cases.at(0.4, 0.5)
def norm(x, y):
    return fp.norm([x, y, 1.0])


@cases.at(1.5)
def zeta(x):
    return fp.zeta(x)


@cases.refuses(0.7, match="many digits", why="numbers of many digits are integers inside")
def precise(x):
    return float(mpmath.mp.exp(x))


cases.not_captured("root", why="a generator looks at staged values")
cases.not_captured(
    "elementary",
    "gamma",
    "norm",
    why="it catches what arithmetic may raise as the program runs",
)
cases.not_captured("hypergeometric", "zeta", why="its branches lie in each other without end")

test_works, test_refused, test_jitted = cases.tests()

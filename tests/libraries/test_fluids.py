"""fluids: friction, atmospheres, tanks and the solvers of `fluids.numerics`."""

from following import Cases

cases = Cases("fluids")

import fluids
from fluids import numerics


@cases.at(2.5, 0.25, 1.1613)
def reynolds(V, D, rho):
    return fluids.Reynolds(V=V, D=D, rho=rho, mu=1.9e-5)


@cases.at(1e5, 1e-4)
def friction_factor(Re, eD):
    return fluids.friction_factor(Re=Re, eD=eD)


@cases.at(1e5, 1e-4)
def colebrook(Re, eD):
    return fluids.friction.Colebrook(Re, eD)


@cases.at(1e5, 0.1)
def pressure_drop(Re, D):
    fd = fluids.friction_factor(Re, eD=1e-5 / D)
    return fluids.dP_from_K(K=fluids.K_from_f(fd=fd, L=10, D=D), rho=1000, V=3)


@cases.at(5000.0)
def atmosphere(Z):
    air = fluids.ATMOSPHERE_1976(Z)
    return air.rho * air.v_sonic + air.mu * 1e5


@cases.at(0.5, 1.2)
def tank(h, D):
    tank = fluids.TANK(D=D, L=5, horizontal=True)
    return tank.V_from_h(h)


@cases.at(0.9, 0.6)
def elbow(D, bend):
    return fluids.fittings.bend_rounded(Di=D, angle=30, fd=0.01, bend_diameters=bend * 5)


@cases.at(10.0, 1e6)
def isothermal(D1, P1):
    return fluids.isothermal_gas(rho=11.3, fd=0.00185, P1=P1, P2=5e5, L=1000, D=D1 / 20)


@cases.at(2.0)
def root(c):
    return numerics.secant(lambda x: x * x * x - c, 1.0)


@cases.at(2.0)
def bracketed_root(c):
    return numerics.brenth(lambda x: x * x * x - c, 0.5, 3.0)


@cases.at(2.0, 0.3)
def horner(x, a):
    return numerics.horner([a, 1.0, x, 2.0], x)


@cases.at(2.0, 0.3)
def interpolation(x, a):
    return numerics.interp(x, [1.0, 1.9, 2.5], [a, a * a, 1.0])


@cases.at(0.7, 2.0)
def quadrature(a, b):
    return numerics.quad(lambda x: a * x * x, 0.0, b)[0]


@cases.at(0.1, 200.0)
def cyclone(D, rho):
    return fluids.v_terminal(D=D / 1000, rhop=rho * 10, rho=1000.0, mu=1e-3)


cases.not_captured("colebrook", why="it catches what arithmetic may raise as the program runs")
cases.not_captured(
    "atmosphere",
    "interpolation",
    why="it needs a staged whole number in compiled code or as a place in a list",
)
cases.not_captured("root", "cyclone", why="its branches lie in each other without end")
cases.not_captured("quadrature", why="a solver of SciPy's iterates on numbers")

test_works, test_refused, test_jitted = cases.tests()

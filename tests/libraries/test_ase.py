"""ASE: energies, distances and equations of state of atoms."""

import numpy as np
from following import Cases

cases = Cases("ase")

import ase
from ase import eos, geometry
from ase.calculators.emt import EMT
from ase.calculators.lj import LennardJones
from ase.calculators.morse import MorsePotential

PLACES = np.array([[0.0, 0.0, 0.0], [1.1, 0.0, 0.0], [0.3, 1.2, 0.1]])


def atoms(x, y):
    places = np.array([[0.0, 0.0, 0.0], [x, 0.0, 0.0], [0.3, y, 0.1]])
    return ase.Atoms("Ar3", positions=places)


@cases.refuses(
    1.1, 1.2, match="plain array|__array__", why="it searches neighbours by compiled code"
)
def lennard_jones(x, y):
    a = atoms(x, y)
    a.calc = LennardJones()
    return a.get_potential_energy()


@cases.refuses(
    1.1, 1.2, match="plain array|__array__", why="it searches neighbours by compiled code"
)
def morse(x, y):
    a = atoms(x, y)
    a.calc = MorsePotential()
    return a.get_potential_energy()


@cases.refuses(
    2.3, 2.4, match="plain array|__array__", why="it searches neighbours by compiled code"
)
def embedded(x, y):
    a = ase.Atoms("Cu3", positions=[[0, 0, 0], [x, 0, 0], [0.3, y, 0.1]])
    a.calc = EMT()
    return a.get_potential_energy()


@cases.at(1.1, 1.2)
def distances(x, y):
    return np.sum(atoms(x, y).get_all_distances() ** 3)


@cases.at(1.1, 1.2)
def angle(x, y):
    return atoms(x, y).get_angle(1, 0, 2)


@cases.at(1.1, 1.2)
def centre(x, y):
    return np.sum(atoms(x, y).get_center_of_mass() ** 2)


@cases.at(1.1, 1.2)
def inertia(x, y):
    return np.sum(atoms(x, y).get_moments_of_inertia() ** 2)


@cases.at(4.1, 1.2)
def volume(a, b):
    return ase.Atoms("Cu", cell=[[a, 0, 0], [b, a, 0], [0, 0, 3.0]], pbc=True).get_volume()


@cases.at(12.0, 0.5)
def state(v, b):
    return eos.birchmurnaghan(v, -1.0, b, 4.0, 11.5)


@cases.at(0.4, 0.6)
def minimum_image(x, y):
    d, n = geometry.find_mic(np.array([[x * 10, y, 0.1]]), np.eye(3) * 5.0)
    return d[0, 0] * n[0]


test_works, test_refused, test_jitted = cases.tests()

"""DEAP: benchmarks, toolboxes and classes that `creator` makes."""

import operator
import random

from following import Cases

cases = Cases("deap")

from deap import base, benchmarks, creator, gp, tools

for _name in ("sphere", "rosenbrock", "ackley", "griewank", "rastrigin", "schwefel", "bohachevsky"):

    def _benchmark(*x, name=_name):
        return getattr(benchmarks, name)(x)[0]

    _benchmark.__name__ = _name
    cases.at(0.7, -1.2, 2.1)(_benchmark)


@cases.at(0.7, -1.2)
def himmelblau(x, y):
    return benchmarks.himmelblau([x, y])[0]


@cases.at(0.3, 0.4, 0.2)
def kursawe(x, y, z):
    a, b = benchmarks.kursawe([x, y, z])
    return a + 0.1 * b


@cases.at(0.3, 0.4)
def toolbox(x, y):
    box = base.Toolbox()
    box.register("evaluate", benchmarks.rastrigin)
    return box.evaluate([x, y])[0]


creator.create("FitnessLeast", base.Fitness, weights=(-1.0, -0.5))
creator.create("Individual", list, fitness=creator.FitnessLeast)


@cases.at(0.3, 0.4)
def fitness(x, y):
    individual = creator.Individual([x, y])
    individual.fitness.values = (x * x + y, x * y)
    return sum(individual.fitness.wvalues) + individual[0]


@cases.at(0.3, 0.4, 1.5)
def crossover(x, y, z):
    random.seed(3)
    a, b = tools.cxTwoPoint([x, y, z], [z * z, x, y])
    return sum(v**2 for v in a) + sum(v**3 for v in b)


_primitives = gp.PrimitiveSet("MAIN", 2)
_primitives.addPrimitive(operator.mul, 2)
_primitives.addPrimitive(operator.add, 2)
_tree = gp.PrimitiveTree.from_string("add(mul(ARG0, ARG0), ARG1)", _primitives)


@cases.at(0.3, 0.4)
def genetic_program(x, y):
    return gp.compile(_tree, _primitives)(x, y)


cases.not_captured("crossover", why="it sets the seed of the module random")

test_works, test_refused, test_jitted = cases.tests()

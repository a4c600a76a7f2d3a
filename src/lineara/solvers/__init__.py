"""SciPy's solvers, called unchanged; their results are differentiable in traced parameters."""

from lineara.solvers import fits as _fits
from lineara.solvers import minima as _minima
from lineara.solvers import ode as _ode
from lineara.solvers import quadrature as _quadrature
from lineara.solvers import roots as _roots
from lineara.solvers import samples as _samples

del _fits, _minima, _ode, _quadrature, _roots, _samples

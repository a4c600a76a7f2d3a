"""SciPy's solvers: each is called as it is, and its result is a function of its parameters."""

from lineara.solvers import fits as _fits
from lineara.solvers import minima as _minima
from lineara.solvers import roots as _roots

del _fits, _minima, _roots

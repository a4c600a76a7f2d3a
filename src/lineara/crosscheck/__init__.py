"""The four engines against each other, machine code and complex steps, on random programs.

>>> from lineara.crosscheck import crosscheck
>>> report = crosscheck(5, seed=7)
>>> report.engines_disagree, report.oracle_disagrees
(0, 0)
"""

from lineara.crosscheck.report import Report, crosscheck

__all__ = ["Report", "crosscheck"]

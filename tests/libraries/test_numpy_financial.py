"""numpy-financial: payments, values and rates of return."""

import numpy as np
from following import Cases

cases = Cases("numpy_financial")

import numpy_financial as npf


@cases.at(0.05, 1000.0)
def future_value(rate, payment):
    return npf.fv(rate / 12, 10 * 12, -payment, -100)


@cases.at(0.05, 1000.0)
def present_value(rate, final):
    return npf.pv(rate, 10, -100, final)


@cases.at(0.07, 2500.0)
def payment(rate, loan):
    return npf.pmt(rate / 12, 60, loan)


@cases.at(0.07, 1500.0)
def interest_part(rate, loan):
    return npf.ipmt(rate / 12, 3, 12, loan) + npf.ppmt(rate / 12, 4, 12, loan)


@cases.at(0.08, 39.0, 59.0, 55.0)
def net_present_value(rate, a, b, c):
    return npf.npv(rate, [-100, a, b, c])


@cases.at(39.0, 59.0, 55.0)
def internal_rate(a, b, c):
    return npf.irr([-100.0, a, b, c])


@cases.at(39.0, 59.0, 0.1)
def modified_rate(a, b, rate):
    return npf.mirr(np.array([-80.0, a, b]), rate, 0.12)


@cases.at(0.07, 8000.0)
def periods(rate, loan):
    return npf.nper(rate / 12, -150, loan)


@cases.at(100.0, 900.0)
def rate(payment, value):
    return npf.rate(12, -payment, value, 0.0)


cases.not_captured("internal_rate", why="how many roots there are depends on values")
cases.not_captured("periods", why="np.errstate decides whether it raises")

test_works, test_refused, test_jitted = cases.tests()

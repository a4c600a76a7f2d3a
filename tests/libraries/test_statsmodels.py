"""statsmodels: regressions, families and tests as functions of their data."""

import numpy as np
from following import Cases

cases = Cases("statsmodels")

import statsmodels.api as sm
from statsmodels.stats import stattools, weightstats
from statsmodels.tools import eval_measures
from statsmodels.tsa import arima_process
from statsmodels.tsa import stattools as tsa

X = np.column_stack([np.ones(6), np.array([0.1, 0.5, 0.9, 1.4, 2.2, 2.6])])
Y = np.array([1.0, 1.9, 2.7, 3.9, 5.6, 6.1])


def data(a, b):
    return np.array([a, 1.9, b, 3.9, a * b, 6.1])


@cases.at(1.1, 2.6)
def regression(a, b):
    return sm.OLS(data(a, b), X).fit().params[1]


@cases.at(1.1, 2.6)
def log_likelihood(a, b):
    return sm.OLS(data(a, b), X).fit().llf


@cases.at(1.1, 2.6)
def weighted(a, b):
    return sm.WLS(Y, X, weights=np.array([1.0, a, b, 1.0, 2.0, 1.0])).fit().params[0]


@cases.at(0.3, 0.6)
def poisson(a, b):
    return sm.Poisson(np.array([1, 2, 0, 3, 1, 4]), X).loglike(np.array([a, b]))


@cases.at(0.3, 0.6)
def logit(a, b):
    return sm.Logit(np.array([1, 0, 0, 1, 1, 1]), X).loglike(np.array([a, b]))


@cases.at(1.1, 2.6)
def family(a, b):
    gamma = sm.families.Gamma(sm.families.links.Log())
    return np.sum(gamma.deviance(Y, data(a, b)))


@cases.at(1.1, 2.6)
def error(a, b):
    return eval_measures.rmse(data(a, b), Y) + eval_measures.meanabs(data(a, b), Y)


@cases.at(1.1, 2.6)
def durbin_watson(a, b):
    return stattools.durbin_watson(data(a, b))


@cases.at(1.1, 2.6)
def weighted_statistics(a, b):
    d = weightstats.DescrStatsW(data(a, b), weights=np.array([1.0, 2.0, 1.0, 1.0, 3.0, 1.0]))
    return d.mean + d.std


@cases.at(1.1, 2.6)
def autocorrelation(a, b):
    return np.sum(tsa.acf(data(a, b), nlags=2, fft=False) * [1.0, 2.0, 3.0])


@cases.at(0.5, 0.3)
def impulse(a, b):
    return np.sum(arima_process.arma2ma([1.0, -a], [1.0, b], 5) ** 2)


@cases.at(1.1, 2.6)
def generalized(a, b):
    return sm.GLM(Y, X, family=sm.families.Gaussian()).loglike(np.array([a, b]))


cases.not_captured("regression", "log_likelihood", why="it turns a staged array into a plain one")

test_works, test_refused, test_jitted = cases.tests()

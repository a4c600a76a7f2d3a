"""scikit-learn: metrics, kernels and transformations on its NumPy paths."""

import numpy as np
from following import Cases

cases = Cases("sklearn")

from sklearn import linear_model, metrics, preprocessing
from sklearn.gaussian_process import kernels
from sklearn.metrics import pairwise

Y = np.array([1.0, 2.0, 2.5])
X = np.array([[0.1, 0.5], [0.9, 1.4], [2.2, 2.6], [0.3, 0.2]])


@cases.at(1.1, 2.2)
def squared_error(a, b):
    return metrics.mean_squared_error(Y, np.array([a, b, a * b]))


@cases.at(1.1, 2.2)
def determination(a, b):
    return metrics.r2_score(Y, np.array([a, b, a * b]))


@cases.at(1.1, 2.2)
def absolute_error(a, b):
    return metrics.mean_absolute_error(Y, np.array([a, b, a * b]))


@cases.at(1.1, 2.2)
def distances(a, b):
    return np.sum(pairwise.euclidean_distances(np.array([[a, b], [0.0, a]]), X))


@cases.at(1.1, 0.4)
def radial_kernel(a, gamma):
    return np.sum(pairwise.rbf_kernel(np.array([[a, 1.0], [0.0, a]]), X, gamma=gamma))


@cases.refuses(1.1, 2.2, match="plain array", why="it asks for the flags of an array's memory")
def cosine(a, b):
    return np.sum(pairwise.cosine_similarity(np.array([[a, b], [0.0, a]]), X))


@cases.refuses(1.1, 2.2, match="plain array", why="it asks for the flags of an array's memory")
def scaled(a, b):
    return np.sum(
        preprocessing.StandardScaler().fit_transform(np.array([[a, b], [0.5, a * b]])) ** 3
    )


@cases.at(1.1, 0.4)
def gaussian_kernel(a, scale):
    k = kernels.ConstantKernel(a) * kernels.RBF(scale) + kernels.WhiteKernel(0.1)
    return np.sum(k(X))


_fitted = linear_model.LinearRegression().fit(X, np.array([1.0, 2.0, 3.0, 0.5]))
_logistic = linear_model.LogisticRegression().fit(X, np.array([0, 1, 1, 0]))


@cases.at(1.1, 2.2)
def prediction(a, b):
    return np.sum(_fitted.predict(np.array([[a, b], [b, a * b]])))


@cases.at(1.1, 2.2)
def probability(a, b):
    return _logistic.predict_proba(np.array([[a, b]]))[0, 1]


@cases.at(0.3, 0.8)
def log_loss(a, b):
    return metrics.log_loss(np.array([1, 0, 1]), np.array([a, b, a * b]))


cases.not_captured(
    "squared_error",
    "determination",
    "absolute_error",
    "prediction",
    "probability",
    "log_loss",
    why="it writes the text of an error that a staged condition chooses",
)
cases.not_captured("distances", why="it asks whether two arrays are one object")
cases.not_captured(
    "radial_kernel",
    why="`in` asks a method whether a staged number lies in an interval",
)

test_works, test_refused, test_jitted = cases.tests()

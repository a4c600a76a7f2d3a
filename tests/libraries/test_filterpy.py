"""FilterPy: filters run over measurements, with respect to noise and to measurements."""

import numpy as np
from following import Cases

cases = Cases("filterpy")

from filterpy import common, gh, kalman, leastsq, stats

Z = [1.0, 2.1, 2.9, 4.2]


def constant_velocity(q, r):
    f = kalman.KalmanFilter(dim_x=2, dim_z=1)
    f.x = np.array([0.0, 1.0])
    f.F = np.array([[1.0, 1.0], [0.0, 1.0]])
    f.H = np.array([[1.0, 0.0]])
    f.P *= 10.0
    f.R *= r
    f.Q = common.Q_discrete_white_noise(dim=2, dt=1.0, var=q)
    return f


@cases.at(0.1, 2.0)
def kalman_filter(q, r):
    f = constant_velocity(q, r)
    for z in Z:
        f.predict()
        f.update(z)
    return f.x[0] + 2 * f.x[1] + f.P[0, 1]


@cases.at(0.1, 2.0)
def log_likelihood(q, r):
    f, total = constant_velocity(q, r), 0.0
    for z in Z:
        f.predict()
        f.update(z)
        total += f.log_likelihood
    return total


@cases.at(0.1, 2.0)
def smoother(q, r):
    f = constant_velocity(q, r)
    means, covariances, _, _ = f.batch_filter(Z)
    x = f.rts_smoother(means, covariances)[0]
    return x[0, 0] + x[1, 1]


@cases.at(0.1, 0.3)
def unscented(q, r):
    points = kalman.MerweScaledSigmaPoints(2, alpha=0.3, beta=2.0, kappa=0.1)
    f = kalman.UnscentedKalmanFilter(
        2,
        1,
        1.0,
        hx=lambda x: x[:1] ** 2,
        fx=lambda x, dt: np.array([x[0] + dt * x[1], x[1]]),
        points=points,
    )
    f.x = np.array([1.0, 0.5])
    f.Q = np.eye(2) * q
    f.R = np.eye(1) * r
    for z in Z:
        f.predict()
        f.update(np.array([z]))
    return f.x[0] * f.x[1]


@cases.at(0.1, 0.3)
def extended(q, r):
    f = kalman.ExtendedKalmanFilter(2, 1)
    f.x = np.array([1.0, 0.5])
    f.F = np.array([[1.0, 1.0], [0.0, 1.0]])
    f.Q *= q
    f.R *= r
    for z in Z:
        f.predict_update(
            np.array([z]), lambda x: np.array([[2 * x[0], 0.0]]), lambda x: np.array([x[0] ** 2])
        )
    return f.x[0] * f.x[1]


@cases.at(0.4, 0.2)
def g_h(g, h):
    f = gh.GHFilter(x=0.0, dx=1.0, dt=1.0, g=g, h=h)
    for z in Z:
        f.update(z)
    return f.x * f.dx


@cases.at(0.3, 1.2)
def gaussian(mean, var):
    return stats.gaussian(1.0, mean, var) + stats.mul(mean, var, 2.0, 3.0)[0]


@cases.at(0.3, 1.2)
def log_density(mean, var):
    return stats.logpdf(np.array([1.0, 2.0]), np.array([mean, 1.0]), np.eye(2) * var)


@cases.at(0.5, 1.5)
def least_squares(a, b):
    f = leastsq.LeastSquaresFilter(dt=1.0, order=1)
    for z in (a, b, a * b, 2.0):
        f.update(z)
    return f.x[0] if np.ndim(f.x) else f.x


@cases.at(0.1, 0.7)
def continuous_noise(q, dt):
    return common.Q_continuous_white_noise(2, dt, q)[0, 1]


cases.not_captured(
    "log_likelihood",
    "log_density",
    why="a distribution of SciPy's looks at staged values",
)

test_works, test_refused, test_jitted = cases.tests()

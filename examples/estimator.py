"""An estimator of scikit-learn's whose loss is plain NumPy: Lineara gives `minimize` the gradient.

A sum of bumps is fitted: y = sum_k height_k exp(-(x - centre_k)^2 / (2 width_k^2)), with Huber's
loss, which outliers do not pull.  It is cloned, cross-validated and searched as any other one.

    python examples/estimator.py        # needs scikit-learn
"""

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted, validate_data

import lineara


def curve(p, x):
    """The sum of the bumps at each x."""
    y = np.zeros(len(x))
    for height, centre, width in zip(p["height"], p["centre"], p["width"], strict=True):
        y += height * np.exp(-(((x - centre) / width) ** 2) / 2)
    return y


def huber(r, limit):
    """r^2 / 2, and linear beyond the limit."""
    a = np.abs(r)
    return np.where(a < limit, r**2 / 2, limit * (a - limit / 2))


class Bumps(RegressorMixin, BaseEstimator):
    """Bumps fitted to one feature; `count` of them, residuals beyond `limit` count linearly."""

    def __init__(self, count=2, limit=0.1):
        self.count = count
        self.limit = limit

    def fit(self, X, y):
        """Find heights, centres and widths."""
        X, y = validate_data(self, X, y, y_numeric=True)
        x = X[:, 0]
        where = (np.arange(self.count) + 0.5) / self.count
        start = {
            "height": np.full(self.count, y.max()),
            "centre": np.quantile(x, where),
            "width": np.full(self.count, np.std(x) / self.count),
        }
        flat, unravel = lineara.ravel(start)

        def loss(flat):
            return np.sum(huber(curve(unravel(flat), x) - y, self.limit))

        found = minimize(lineara.value_and_grad(loss), flat, jac=True)
        p = unravel(found.x)
        self.parameters_ = p | {"width": np.abs(p["width"])}
        return self

    def predict(self, X):
        """The curve at each row."""
        check_is_fitted(self)
        return curve(self.parameters_, validate_data(self, X, reset=False)[:, 0])


def data(rng):
    """Two bumps with noise, and a few outliers."""
    x = rng.uniform(0, 10, 120)
    y = 1.5 * np.exp(-((x - 3) ** 2) / 2) + 0.8 * np.exp(-((x - 7) ** 2) / 0.5)
    y += 0.02 * rng.standard_normal(len(x))
    y[::30] += 2.0
    return x[:, None], y


def searched(rng):
    """How many bumps there are, by cross-validation."""
    X, y = data(rng)
    return GridSearchCV(Bumps(), {"count": [1, 2]}, cv=4, scoring="neg_median_absolute_error").fit(
        X, y
    )


if __name__ == "__main__":
    search = searched(np.random.default_rng(0))
    print(
        search.best_params_, {k: v.round(2) for k, v in search.best_estimator_.parameters_.items()}
    )

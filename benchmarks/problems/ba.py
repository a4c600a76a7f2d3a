"""Bundle adjustment: the sparse Jacobian of the errors of all observations."""

import numpy as np
import scipy.sparse

import lineara

SIZES = {
    "small": (49, 7776, 31843),
    "medium": (257, 65132, 225911),
    "large": (1197, 126327, 563734),
}


def data(size):
    n, m, p = size
    rng = np.random.default_rng(6)
    cameras = rng.uniform(-1, 1, size=(n, 11))
    points = rng.uniform(-1, 1, size=(m, 3)) + np.array([0.0, 0.0, 4.0])
    return cameras, points, rng.uniform(0.5, 1, size=p), rng.uniform(-1, 1, size=(p, 2))


def error(camera, point, weight, feature):
    """The error of one observation, in R²."""
    r, centre, focal, principal, k = (
        camera[:3], camera[3:6], camera[6], camera[7:9], camera[9:],
    )  # fmt: skip
    X, square = point - centre, np.sum(r * r)
    if square == 0:
        X = X + np.cross(r, X)
    else:
        angle = np.sqrt(square)
        v, c = r / angle, np.cos(angle)
        X = X * c + np.cross(v, X) * np.sin(angle) + v * (np.sum(v * X) * (1 - c))
    u = X[:2] / X[2]
    rho = np.sum(u * u)
    return weight * (focal * u * (1 + k[0] * rho + k[1] * rho * rho) + principal - feature)


def places(cameras, points, weights):
    """Which camera and which point each observation sees."""
    i = np.arange(weights.shape[0])
    return i % cameras.shape[0], i % points.shape[0]


def value(cameras, points, weights, features):
    c, x = places(cameras, points, weights)
    errors = lineara.vmap(error)(cameras[c], points[x], weights, features)
    return np.concatenate((errors.ravel(), 1 - weights * weights))


def gradient(cameras, points, weights, features):
    """The numbers of the Jacobian, row by row."""
    c, x = places(cameras, points, weights)
    blocks = lineara.vmap(lineara.jacobian(error, (0, 1, 2)))(
        cameras[c], points[x], weights, features
    )
    of_camera, of_point, of_weight = blocks
    rows = np.concatenate((of_camera, of_point, of_weight[:, :, None]), axis=2)
    return np.concatenate((rows.ravel(), -2 * weights))


def assembled(numbers, cameras, points, weights, features):
    """The Jacobian (3p) x (11n + 3m + p)."""
    (c, x), p = places(cameras, points, weights), weights.size
    first, second = 11 * len(cameras), 11 * len(cameras) + 3 * len(points)
    columns = np.empty((p, 15), np.int64)
    columns[:, :11] = 11 * c[:, None] + np.arange(11)
    columns[:, 11:14] = first + 3 * x[:, None] + np.arange(3)
    columns[:, 14] = second + np.arange(p)
    indices = np.concatenate((np.repeat(columns, 2, axis=0).ravel(), second + np.arange(p)))
    starts = np.concatenate((15 * np.arange(2 * p), 30 * p + np.arange(p + 1)))
    return scipy.sparse.csr_array((numbers, indices, starts), shape=(3 * p, second + p))


def lines(np, where, cross, camera, point, weight, feature):
    """The error of one observation of another library."""
    r, X = camera[:3], point - camera[3:6]
    square = np.sum(r * r)
    angle = np.sqrt(where(square == 0, 1.0, square))
    v, c = r / angle, np.cos(angle)
    turned = X * c + cross(v, X) * np.sin(angle) + v * (np.sum(v * X) * (1 - c))
    X = where(square == 0, X + cross(r, X), turned)
    u = X[:2] / X[2]
    rho = np.sum(u * u)
    bent = u * (1 + camera[9] * rho + camera[10] * rho * rho)
    return weight * (camera[6] * bent + camera[7:9] - feature)


def by_jax(cameras, points, weights, features):
    import jax
    import jax.numpy as jnp

    def one(*of):
        return lines(jnp, jnp.where, jnp.cross, *of)

    c, x = places(cameras, points, weights)

    def f(cameras, points, weights, features):
        errors = jax.vmap(one)(cameras[c], points[x], weights, features)
        return jnp.concatenate((errors.ravel(), 1 - weights * weights))

    def g(cameras, points, weights, features):
        blocks = jax.vmap(jax.jacrev(one, (0, 1, 2)))(cameras[c], points[x], weights, features)
        rows = jnp.concatenate((*blocks[:2], blocks[2][:, :, None]), axis=2)
        return jnp.concatenate((rows.ravel(), -2 * weights))

    jitted, given = jax.jit(g), tuple(map(jnp.asarray, (cameras, points, weights, features)))

    def jacobian(*of):
        return assembled(np.asarray(jitted(*of)), cameras, points, weights, features)

    return jax.jit(f), jacobian, given


def by_cpp(cameras, points, weights, features):
    n, m, p = len(cameras), len(points), weights.size
    return "ba", (cameras, points, weights, features, n, m, p), [(31 * p,)]

"""Geometry: distances, rotations, meshes, curves, fitting."""

import math
from itertools import combinations, pairwise

import numpy as np

from gallery.snippets import at, some


@at(some(5, 2, seed=1))
def polygon_area(pts):
    x, y = pts[:, 0], pts[:, 1]
    return 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


@at(some(6, 3, seed=2))
def curve_length(points):
    return sum(np.linalg.norm(b - a) for a, b in zip(points[:-1], points[1:]))


@at(0.3, 0.4, 0.5)
def euler_angles(a, b, c):
    Rz = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    Ry = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    Rx = np.array([[1, 0, 0], [0, np.cos(c), -np.sin(c)], [0, np.sin(c), np.cos(c)]])
    v = Rz @ Ry @ Rx @ np.array([1.0, 2.0, 3.0])
    return v[0] * v[1] + v[2]


def hamilton(p, q):
    a, b, c, d = p
    e, f, g, h = q
    return np.array(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ]
    )


@at(some(4, seed=3))
def quaternion_rotation(q):
    q = q / np.linalg.norm(q)
    conj = q * np.array([1, -1, -1, -1])
    v = np.array([0.0, 1.0, 2.0, 3.0])
    return hamilton(hamilton(q, v), conj)[1]


@at(np.array([0.2, 0.3, 0.4]))
def rodrigues(w):
    theta = np.sqrt(w @ w)
    K = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    R = np.eye(3) + np.sin(theta) / theta * K + (1 - np.cos(theta)) / theta**2 * (K @ K)
    return (R @ np.array([1.0, 0.5, -0.5])).sum()


@at(some(4, 3, seed=4))
def tetrahedron_volume(p):
    return np.linalg.det(p[1:] - p[0]) / 6


@at(some(6, 3, seed=5))
def mesh_area(vertices):
    faces = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]])
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    return 0.5 * np.sqrt((n**2).sum(axis=1)).sum()


@at(np.array([0.5, 0.4, 1.1]))
def circle_fit(params):
    cx, cy, r = params
    pts = some(7, 2, seed=6)
    d = np.hypot(pts[:, 0] - cx, pts[:, 1] - cy)
    return np.sum((d - r) ** 2)


@at(some(4, 2, seed=7))
def bezier(control):
    total = 0.0
    for t in np.linspace(0, 1, 6):
        pts = control
        while len(pts) > 1:
            pts = (1 - t) * pts[:-1] + t * pts[1:]
        total += pts[0, 0] * pts[0, 1]
    return total


@at(52.5, 13.4, 48.1, 11.6)
def haversine(lat1, lon1, lat2, lon2):
    p1, p2 = math.radians(lat1), math.radians(lat2)
    dl = math.radians(lon2 - lon1)
    h = math.sin((p2 - p1) / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin(dl / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(h))


@at(some(5, 2, seed=8), some(4, 2, seed=9))
def chamfer_distance(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return d.min(axis=0).mean() + d.min(axis=1).mean()


@at(some(5, 2, seed=10))
def repulsion(points):
    return sum(1 / np.linalg.norm(p - q) for p, q in combinations(points, 2))


@at(some(3, 3, seed=11), some(6, 3, seed=12))
def camera_projection(K, points):
    uvw = points @ K.T + np.array([0, 0, 2.0])
    uv = uvw[:, :2] / uvw[:, 2:]
    return np.mean(uv**2)


@at(some(5, 2, seed=13))
def procrustes(shape):
    target = some(5, 2, seed=14)
    a = shape - shape.mean(0)
    b = target - target.mean(0)
    m = a.T @ b
    angle = np.arctan2(m[0, 1] - m[1, 0], m[0, 0] + m[1, 1])
    rot = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return ((a @ rot - b) ** 2).sum()


@at(some(3, seed=15))
def signed_distance_blend(center):
    p = np.array([1.5, 1.0, 0.5])
    sphere = np.sqrt(np.sum((p - center) ** 2)) - 0.4
    plane = p[1] - 0.2 * center[0]
    k = 0.5
    return -k * np.log(np.exp(-sphere / k) + np.exp(-plane / k))


@at([np.array([0.0, 0.1]), np.array([1.0, 0.3]), np.array([1.7, 1.1])])
def turning_angle(path):
    headings = [math.atan2(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(path)]
    return sum((g - h) ** 2 for h, g in pairwise(headings))

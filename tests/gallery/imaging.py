"""Imaging: filters, warps, histograms, reconstruction."""

import numpy as np

from gallery.snippets import at, some

IMAGE = some(8, 9, seed=1)


@at(IMAGE)
def total_variation(img):
    dx = img[:, 1:] - img[:, :-1]
    dy = img[1:, :] - img[:-1, :]
    return np.sqrt(dx[:-1, :] ** 2 + dy[:, :-1] ** 2 + 1e-3).sum()


@at(some(3, 3, seed=2))
def convolution_by_loops(k):
    h, w = IMAGE.shape
    out = np.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            out[i, j] = (IMAGE[i : i + 3, j : j + 3] * k).sum()
    return np.tanh(out).mean()


@at(IMAGE)
def convolution_by_shifts(img):
    padded = np.pad(img, 1, mode="edge")
    blur = sum(
        padded[1 + i : 1 + i + img.shape[0], 1 + j : 1 + j + img.shape[1]]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
    )
    return np.sum((blur / 9) ** 2)


@at(1.3)
def gamma_correction(gamma):
    out = np.clip(IMAGE / IMAGE.max(), 1e-3, 1.0) ** gamma
    return out.mean()


@at(0.3, 0.4)
def bilinear_sample(x, y):
    i, j = int(x * 6), int(y * 7)
    u, v = x * 6 - i, y * 7 - j
    top = IMAGE[i, j] * (1 - v) + IMAGE[i, j + 1] * v
    bottom = IMAGE[i + 1, j] * (1 - v) + IMAGE[i + 1, j + 1] * v
    return top * (1 - u) + bottom * u


@at(np.array([0.1, -0.2, 0.05]))
def rigid_registration(p):
    ys, xs = np.mgrid[0:4, 0:4] / 4.0
    c, s = np.cos(p[2]), np.sin(p[2])
    wx = c * xs - s * ys + p[0]
    wy = s * xs + c * ys + p[1]
    warped = np.sin(3 * wx) * np.cos(2 * wy)
    return ((warped - np.sin(3 * xs) * np.cos(2 * ys)) ** 2).sum()


@at(IMAGE)
def contrast(img):
    lo, hi = img.min(), img.max()
    scaled = (img - lo) / (hi - lo)
    return (scaled**2).mean()


@at(some(4, 4, seed=3), some(4, 4, seed=4))
def structural_similarity(a, b):
    ma, mb = a.mean(), b.mean()
    va, vb = a.var(), b.var()
    cab = ((a - ma) * (b - mb)).mean()
    return (2 * ma * mb + 0.01) * (2 * cab + 0.03) / ((ma**2 + mb**2 + 0.01) * (va + vb + 0.03))


@at(IMAGE[:8, :8])
def max_pool(img):
    blocks = img.reshape(4, 2, 4, 2)
    return (blocks.max(axis=(1, 3)) ** 2).sum()


@at(some(6, 6, seed=5))
def edges(img):
    gx = np.zeros((6, 6))
    gx[1:-1, 1:-1] = (img[1:-1, 2:] - img[1:-1, :-2]) / 2
    gy = np.gradient(img, axis=0)
    return np.sum(gx**2) + np.sum(gy**2)


@at(some(5, seed=6))
def tomography(density):
    rays = [(0, 1, 2), (1, 3), (2, 3, 4), (0, 4)]
    measured = [2.0, 1.5, 2.5, 1.0]
    loss = 0
    for cells, m in zip(rays, measured):
        path = sum(density[c] for c in cells)
        loss += (1 - np.exp(-path) - m / 4) ** 2
    return loss


@at(some(3, seed=7))
def color_transform(rgb):
    r, g, b = rgb
    luma = 0.299 * r + 0.587 * g + 0.114 * b
    return (r - luma) ** 2 + (b - luma) ** 2 + luma


@at(some(4, 6, seed=8))
def integral_image(img):
    table = np.cumsum(np.cumsum(img, axis=0), axis=1)
    box = table[3, 4] - table[0, 4] - table[3, 1] + table[0, 1]
    return box**2


@at(some(8, seed=9), 0.4)
def bilateral_filter(signal, width):
    out = np.empty_like(signal)
    for i in range(len(signal)):
        near = signal[max(0, i - 2) : i + 3]
        w = np.exp(-(((near - signal[i]) / width) ** 2))
        out[i] = np.sum(w * near) / np.sum(w)
    return out @ out


@at(some(6, 6, seed=10))
def flips_and_rotations(img):
    return np.sum(np.rot90(img) * np.flipud(img) + img.T * np.fliplr(img))


@at(some(6, 6, seed=11))
def fourier_sharpness(img):
    spectrum = np.fft.fft2(img)
    return np.sum(np.abs(spectrum[2:4, 2:4]) ** 2)

"""scikit-image: colours, filters and measures on its NumPy paths."""

import numpy as np
from following import Cases

cases = Cases("skimage")

from skimage import color, exposure, filters, measure, metrics, util

IMAGE = np.random.default_rng(0).uniform(0.1, 0.9, (9, 9))


def image(a, b):
    return a * IMAGE + b * IMAGE**2


@cases.at(0.4, 0.5)
def grey(a, b):
    return np.sum(color.rgb2gray(np.stack([image(a, b)] * 3, axis=-1) ** [1.0, 2.0, 3.0]))


@cases.at(0.4, 0.5)
def lab(a, b):
    return np.sum(color.rgb2lab(np.stack([image(a, b), IMAGE, image(b, a)], axis=-1)))


@cases.at(0.4, 0.5)
def hsv(a, b):
    return np.sum(color.rgb2hsv(np.stack([image(a, b), IMAGE, image(b, a) / 2], axis=-1)))


@cases.at(0.4, 0.5)
def gaussian(a, b):
    return np.sum(filters.gaussian(image(a, b), sigma=1.2) ** 2)


@cases.at(0.4, 0.5)
def edges(a, b):
    return np.sum(filters.sobel(image(a, b)))


@cases.at(0.4, 0.5)
def noise_ratio(a, b):
    return metrics.peak_signal_noise_ratio(IMAGE, image(a, b), data_range=1.0)


@cases.at(0.4, 0.5)
def similarity(a, b):
    return metrics.structural_similarity(IMAGE, image(a, b), data_range=1.0)


@cases.at(0.4, 0.5)
def moments(a, b):
    m = measure.moments(image(a, b), order=2)
    return m[1, 0] / m[0, 0]


@cases.at(0.4, 0.5)
def gamma(a, b):
    return np.sum(exposure.adjust_gamma(image(a, b) / 2, 1.3))


@cases.at(0.4, 0.5)
def rescaled(a, b):
    return np.sum(exposure.rescale_intensity(image(a, b), out_range=(0.0, 2.0)))


@cases.at(0.4, 0.5)
def inverted(a, b):
    return np.sum(util.invert(image(a, b)) ** 2)


@cases.at(0.4, 0.5)
def total_entropy(a, b):
    return metrics.normalized_root_mse(IMAGE, image(a, b))


cases.not_captured("hsv", why="it sets how NumPy handles errors")

test_works, test_refused, test_jitted = cases.tests()

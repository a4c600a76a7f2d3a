"""colour-science: transformations and differences of colours."""

import numpy as np
from following import Cases

cases = Cases("colour")

import colour


@cases.at(0.2, 0.12, 0.05)
def lab(x, y, z):
    return np.sum(colour.XYZ_to_Lab(np.array([x, y, z])) * [1.0, 2.0, 3.0])


@cases.at(0.2, 0.12, 0.05)
def chromaticity(x, y, z):
    return np.sum(colour.XYZ_to_xy(np.array([x, y, z])) * [1.0, 2.0])


@cases.at(0.2, 0.12, 0.05)
def rgb(x, y, z):
    return np.sum(colour.XYZ_to_sRGB(np.array([x, y, z])) ** 2)


@cases.at(0.4, 0.3, 0.6)
def from_rgb(r, g, b):
    return np.sum(colour.sRGB_to_XYZ(np.array([r, g, b])) * [1.0, 2.0, 3.0])


@cases.at(48.0, 40.0, 10.0)
def difference(a, b, c):
    return colour.delta_E(np.array([a, b, c]), np.array([50.0, 30.0, 20.0]))


@cases.at(48.0, 40.0, 10.0)
def difference_1976(a, b, c):
    return colour.delta_E(np.array([a, b, c]), np.array([50.0, 30.0, 20.0]), method="CIE 1976")


@cases.at(0.4, 0.3, 0.6)
def hsv(r, g, b):
    return np.sum(colour.RGB_to_HSV(np.array([r, g, b])) * [1.0, 2.0, 3.0])


@cases.at(0.2, 0.12, 0.05)
def oklab(x, y, z):
    return np.sum(colour.XYZ_to_Oklab(np.array([x, y, z])) * [1.0, 2.0, 3.0])


@cases.at(0.3)
def transfer(x):
    return colour.eotf_inverse(x, "sRGB") + colour.cctf_decoding(x)


@cases.at(0.2, 0.12, 0.05)
def luv(x, y, z):
    return np.sum(colour.XYZ_to_Luv(np.array([x, y, z])) * [1.0, 2.0, 3.0])


@cases.at(0.2, 0.12, 0.05)
def adaptation(x, y, z):
    white_a, white_b = np.array([0.95, 1.0, 1.09]), np.array([0.96, 1.0, 0.83])
    return np.sum(colour.chromatic_adaptation(np.array([x, y, z]), white_a, white_b))


@cases.at(30.0, 20.0, 10.0)
def appearance(x, y, z):
    found = colour.XYZ_to_CIECAM02(
        np.array([x, y, z]), np.array([95.05, 100.0, 108.88]), 318.31, 20.0
    )
    return found.J + found.M


test_works, test_refused, test_jitted = cases.tests()

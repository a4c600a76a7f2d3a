"""Audio: oscillators, filters, spectra, envelopes."""

import math

import numpy as np

from gallery.snippets import at, some

RATE = 50
TIME = np.arange(40) / RATE
SOUND = np.sin(2 * np.pi * 3 * TIME) + 0.1 * some(40, seed=1)


@at(3.1, 0.9, 0.2)
def sine_fit(freq, amp, phase):
    return np.mean((amp * np.sin(2 * np.pi * freq * TIME + phase) - SOUND) ** 2)


@at(0.3)
def one_pole_lowpass(alpha):
    out = np.zeros(len(SOUND))
    state = 0.0
    for i, s in enumerate(SOUND):
        state = state + alpha * (s - state)
        out[i] = state
    return np.sum(out**2)


@at(np.array([0.2, 0.3, 0.2]), np.array([-0.5, 0.2]))
def biquad(b, a):
    y = np.zeros(len(SOUND) + 2)
    x = np.concatenate([[0, 0], SOUND])
    for n in range(2, len(y)):
        y[n] = b[0] * x[n] + b[1] * x[n - 1] + b[2] * x[n - 2] - a[0] * y[n - 1] - a[1] * y[n - 2]
    return np.abs(y[5:]).sum()


@at(some(5, seed=2))
def fir_by_convolve(taps):
    out = np.convolve(SOUND, taps, mode="valid")
    return (out**2).mean()


@at(0.05, 0.1, 0.6, 0.2)
def adsr_envelope(attack, decay, sustain, release):
    total = 0.0
    for t in TIME:
        if t < attack:
            level = t / attack
        elif t < attack + decay:
            level = 1 - (1 - sustain) * (t - attack) / decay
        elif t < 0.6:
            level = sustain
        else:
            level = sustain * math.exp(-(t - 0.6) / release)
        total += level**2
    return total


@at(2.0, 1.4)
def fm_synthesis(ratio, index):
    carrier = 2 * np.pi * 2 * TIME
    voice = np.sin(carrier + index * np.sin(ratio * carrier))
    return np.dot(voice, SOUND)


@at(SOUND[:16])
def power_spectrum(x):
    X = np.fft.rfft(x * np.hanning(16))
    power = X.real**2 + X.imag**2
    return np.log(power[1:6] + 1e-3).sum()


@at(3.2)
def goertzel(freq):
    coeff = 2 * math.cos(2 * math.pi * freq / RATE)
    s1 = s2 = 0.0
    for x in SOUND:
        s1, s2 = x + coeff * s1 - s2, s1
    return s1**2 + s2**2 - coeff * s1 * s2


@at(0.6, 0.4)
def comb_filter(gain, wet):
    buffer = [0.0] * 7
    out = []
    for n, x in enumerate(SOUND):
        delayed = buffer[n % 7]
        buffer[n % 7] = x + gain * delayed
        out.append((1 - wet) * x + wet * delayed)
    return sum(v * v for v in out)


@at(2.5)
def soft_clipping(drive):
    return np.mean(np.tanh(drive * SOUND) / np.tanh(drive) * SOUND)


@at(0.52, 3.0)
def compressor(threshold, ratio):
    level = np.abs(SOUND) + 1e-3
    over = np.maximum(np.log(level / threshold), 0.0)
    gain = np.exp(-over * (1 - 1 / ratio))
    return np.sum((SOUND * gain) ** 2)


@at(0.4, 0.8)
def resonator_response(radius, angle):
    pole = radius * np.exp(1j * angle)
    h = 1 / ((1 - pole / 1j) * (1 - np.conj(pole) / 1j))
    return abs(h)


@at(some(6, seed=3))
def autocorrelation_pitch(x):
    full = np.correlate(x, x, mode="full")
    return full[6] / full[5]


@at(some(8, seed=4))
def linear_prediction(x):
    r = np.array([np.dot(x[: len(x) - k], x[k:]) for k in range(4)])
    R = np.array([[r[abs(i - j)] for j in range(3)] for i in range(3)])
    a = np.linalg.solve(R + 0.1 * np.eye(3), r[1:])
    return r[0] - a @ r[1:]


@at(1.03)
def resampling_by_interpolation(speed):
    where = np.arange(20) * speed
    return np.sum(np.interp(where, np.arange(40), SOUND) * SOUND[:20])


@at(some(4, 5, seed=5))
def mel_like_bands(weights):
    spectrum = np.abs(np.fft.rfft(SOUND))[:5]
    bands = weights @ spectrum
    return np.diff(np.log(bands)).var()

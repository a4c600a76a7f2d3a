"""How well a recurrent network with diagonal weights foretells a sequence of characters."""

import numpy as np

import lineara

SIZES = {"small": (2, 1024), "medium": (4, 1024), "large": (6, 8192)}
BITS = 14


def data(size):
    layers, n = size
    rng = np.random.default_rng(5)
    codes = rng.integers(32, 127, size=n)
    sequence = (codes[:, None] >> np.arange(BITS) & 1).astype(float)
    main = rng.uniform(-1, 1, size=(2 * layers, 4 * BITS))
    extra = rng.uniform(-1, 1, size=(3, BITS))
    return main, extra, rng.uniform(-1, 1, size=(2 * layers, BITS)), sequence


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def value(main, extra, state, sequence):
    layers, b = state.shape[0] // 2, state.shape[1]
    state, total = np.copy(state), 0.0
    for t in range(sequence.shape[0] - 1):
        x = sequence[t] * extra[0]
        for i in range(layers):
            w, c, h, cell = main[2 * i], main[2 * i + 1], state[2 * i], state[2 * i + 1]
            forget = sigmoid(x * w[:b] + c[:b])
            enter = sigmoid(h * w[b : 2 * b] + c[b : 2 * b])
            leave = sigmoid(x * w[2 * b : 3 * b] + c[2 * b : 3 * b])
            change = np.tanh(h * w[3 * b :] + c[3 * b :])
            cell = cell * forget + enter * change
            x = leave * np.tanh(cell)
            state[2 * i], state[2 * i + 1] = x, cell
        y = x * extra[1] + extra[2]
        total = total + np.sum(sequence[t + 1] * (y - np.log(2 + np.sum(np.exp(y)))))
    return -total / ((sequence.shape[0] - 1) * b)


gradient = lineara.grad(value, argnums=(0, 1))


def step(np, main, extra, states, now, then):
    """One character; main is (layers, 2, 4, b)."""
    x, after = now * extra[0], []
    for i, (h, cell) in enumerate(states):
        w, c = main[i][0], main[i][1]
        forget = 1 / (1 + np.exp(-(x * w[0] + c[0])))
        enter = 1 / (1 + np.exp(-(h * w[1] + c[1])))
        leave = 1 / (1 + np.exp(-(x * w[2] + c[2])))
        cell = cell * forget + enter * np.tanh(h * w[3] + c[3])
        x = leave * np.tanh(cell)
        after.append((x, cell))
    y = x * extra[1] + extra[2]
    return after, np.sum(then * (y - np.log(2 + np.sum(np.exp(y)))))


def straight(np):
    """The whole, one step after the other."""

    def f(main, extra, state, sequence):
        layers, b = state.shape[0] // 2, state.shape[1]
        main = main.reshape(layers, 2, 4, b)
        states, total = [(state[2 * i], state[2 * i + 1]) for i in range(layers)], 0.0
        for t in range(sequence.shape[0] - 1):
            states, more = step(np, main, extra, states, sequence[t], sequence[t + 1])
            total = total + more
        return -total / ((sequence.shape[0] - 1) * b)

    return f


def by_jax(main, extra, state, sequence):
    import jax
    import jax.numpy as jnp

    def f(main, extra, state, sequence):
        layers, b = state.shape[0] // 2, state.shape[1]
        main = main.reshape(layers, 2, 4, b)
        states = [(state[2 * i], state[2 * i + 1]) for i in range(layers)]
        pairs = sequence[:-1], sequence[1:]
        _, parts = jax.lax.scan(lambda s, p: step(jnp, main, extra, s, *p), states, pairs)
        return -parts.sum() / ((sequence.shape[0] - 1) * b)

    given = tuple([jnp.asarray(v) for v in (main, extra, state, sequence)])
    return jax.jit(f), jax.jit(jax.grad(f, (0, 1))), given


def by_torch(main, extra, state, sequence):
    import torch

    return straight(torch), [0, 1], tuple(map(torch.tensor, (main, extra, state, sequence)))


def by_autograd(main, extra, state, sequence):
    import autograd
    import autograd.numpy as anp

    f = straight(anp)
    g = autograd.grad(lambda p: f(*p, state, sequence))
    return (lambda *p: f(*p, state, sequence)), (lambda *p: g(p)), (main, extra)


def by_cpp(main, extra, state, sequence):
    layers, n = state.shape[0] // 2, sequence.shape[0]
    return "lstm", (main, extra, state, sequence, layers, n, BITS), [main.shape, extra.shape]

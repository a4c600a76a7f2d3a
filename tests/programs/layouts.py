"""Where a reshape is a view and where a copy: programs that write through it."""

import numpy as np
from judge_programs import Programs

PROGRAMS = Programs()

P = []
X = np.array([[0.3, 1.2, -0.7], [2.1, -0.4, 0.9]])
V = np.array([0.5, -1.5, 2.5, 0.25])
T = np.arange(24.0).reshape(2, 3, 4) / 7


def p(*a):
    def d(f):
        P.append((f, *a))
        return f

    return d


@PROGRAMS.at(X)
def l2(saw, x):
    y = (x * 2).T
    r = y.ravel(order="K")
    r[0] = 9
    return y.sum()


@PROGRAMS.at(X)
def l3(saw, x):
    y = np.asfortranarray(x * 1)
    r = y.reshape(-1, order="F")
    r[1:] *= 2
    return (y * [[1, 2, 3], [4, 5, 6]]).sum()


@PROGRAMS.at(X)
def l4(saw, x):
    y = x.copy(order="F")
    r = y.reshape(3, 2)
    r[...] = 7
    return (y * y).sum()


@PROGRAMS.at(T)
def l5(saw, x):
    y = np.moveaxis(x * 1, 0, -1)
    z = y.reshape(-1, 2)
    z *= 5
    saw.append(np.shares_memory(np.zeros(2), np.zeros(2)))
    return (y * np.arange(24).reshape(3, 4, 2)).sum()


@PROGRAMS.at(T)
def l6(saw, x):
    y = np.swapaxes(x, 0, 2) * 1.0
    z = y.ravel(order="F")
    z[::2] = 0
    return (y * np.arange(24.0).reshape(4, 3, 2)).sum()


@PROGRAMS.at(X)
def l7(saw, x):
    y = np.array(x.T, order="C")
    y.T[0] = 0
    return (y * y).sum()


@PROGRAMS.at(X)
def l8(saw, x):
    y = np.empty_like(x.T)
    y[:] = x.T
    r = y.reshape(6)
    r[:2] = 1
    return (y * [[1, 2], [3, 4], [5, 6]]).sum()


@PROGRAMS.at(X)
def l9(saw, x):
    y = np.zeros_like(x.T, order="C")
    y[...] = x.T
    r = y.reshape(6)
    r[:2] = 1
    return (y * [[1, 2], [3, 4], [5, 6]]).sum()


@PROGRAMS.at(X)
def l10(saw, x):
    y = np.full_like(x.T, x[0, 0])
    r = y.ravel()
    r[0] = 5
    return y.sum()


@PROGRAMS.at(V)
def l11(saw, x):
    y = np.lib.stride_tricks.sliding_window_view(x * 1, 2)
    return (y * y).sum()


@PROGRAMS.at(V)
def l12(saw, x):
    y = np.broadcast_to(x, (3, 4)).copy()
    r = y.T.ravel()
    r[:] = 0
    return (y * y).sum()


@PROGRAMS.at(V)
def l13(saw, x):
    y = np.tile(x, (3, 1)).T
    r = y.reshape(-1)
    r[0] = 100
    return (y * y).sum()


@PROGRAMS.at(V)
def l14(saw, x):
    y = np.repeat(x[:, None], 3, axis=1)
    r = y.ravel()
    r[0] = 100
    return (y * y).sum()


@PROGRAMS.at(X)
def l15(saw, x):
    y = np.concatenate([x.T, x.T], axis=1)
    r = y.ravel()
    r[:3] = 0
    return (y * y * np.arange(12).reshape(3, 4)).sum()


@PROGRAMS.at(X)
def l16(saw, x):
    y = np.concatenate([x.T, x.T])
    r = y.ravel(order="F")
    r[:3] = 0
    saw.append(y.flags if False else 0)
    return (y * y * np.arange(12).reshape(6, 2)).sum()


@PROGRAMS.at(X)
def l17(saw, x):
    y = np.where(x.T > 0, x.T, 0)
    r = y.ravel(order="K")
    r[:3] = 4
    return (y * y * np.arange(6).reshape(3, 2)).sum()


@PROGRAMS.at(X)
def l18(saw, x):
    y = np.maximum(x.T, 0.1)
    r = y.reshape(-1, order="A")
    r[:3] = 4
    return (y * y * np.arange(6).reshape(3, 2)).sum()


@PROGRAMS.at(X)
def l19(saw, x):
    y = x.T @ np.ones((2, 2))
    r = y.ravel()
    r[:3] = 4
    return (y * y * np.arange(6).reshape(3, 2)).sum()


@PROGRAMS.at(X)
def l20(saw, x):
    y = np.einsum("ij->ji", x) * 1
    r = y.ravel()
    r[:3] = 4
    return (y * y * np.arange(6).reshape(3, 2)).sum()


@PROGRAMS.at(X)
def l21(saw, x):
    y = np.einsum("ij->ji", x.copy())
    y[0] = 4
    return (y * y * np.arange(6).reshape(3, 2)).sum()


@PROGRAMS.at(X)
def l22(saw, x):
    z = x * 1
    y = z[:, ::-1]
    r = y.ravel()
    r[:] = 0
    y += 1
    return (z * z).sum()


@PROGRAMS.at(X)
def l23(saw, x):
    z = x * 1
    y = z[::-1].reshape(-1)
    y *= 2
    return (z * z).sum() + y[0]


@PROGRAMS.at(T)
def l24(saw, x):
    z = x * 1
    y = z[:, 1]
    r = y.reshape(-1)
    r *= 2
    w = z[0].reshape(-1)
    w *= 3
    return (z * z).sum()


@PROGRAMS.at(T)
def l25(saw, x):
    z = x * 1
    y = z.transpose(2, 0, 1)[1:3]
    y.reshape(2, -1)[...] = 0
    y.reshape(2, 2, 3, 1)[0] = 4
    return (z * z * np.arange(24).reshape(2, 3, 4)).sum()


@PROGRAMS.at(V)
def l26(saw, x):
    z = x * 1
    y = z.reshape(2, 2).T
    y.flat[1] = 7
    saw.append(y.flat[2] * 0)
    return (z * np.arange(4)).sum()


@PROGRAMS.at(V)
def l27(saw, x):
    z = x * 1
    y = z.reshape(2, 2, order="F")
    y[0] = 7
    return (z * np.arange(4)).sum()


@PROGRAMS.at(V)
def l28(saw, x):
    z = x * 1
    z.shape = (2, 2)
    z.T[0] = 3
    return (z * [[1, 2], [3, 4]]).sum()


@PROGRAMS.at(V)
def l29(saw, x):
    z = np.expand_dims(x * 1, 0)
    w = np.squeeze(z)
    w[0] = 3
    return (z * np.arange(4)).sum()


@PROGRAMS.at(V)
def l30(saw, x):
    z = x * 1
    a, b = np.split(z, 2)
    a *= b
    return z.sum()


@PROGRAMS.at(X)
def l31(saw, x):
    z = x * 1
    a = np.hsplit(z, 3)
    a[1][:] = 0
    return (z * z).sum()


@PROGRAMS.at(X)
def l32(saw, x):
    z = x * 1
    r1, r2 = z
    r1 += r2
    return (z * z).sum()


@PROGRAMS.at(X)
def l34(saw, x):
    z = x * 1
    d = np.diagonal(z)
    try:
        d[0] = 1
    except ValueError:
        return z.sum() * 2
    return z.sum()


@PROGRAMS.at(X)
def l35(saw, x):
    z = np.broadcast_to(x[0], (2, 3))
    try:
        z[0] = 1
    except ValueError:
        return z.sum() * 2
    return z.sum()


@PROGRAMS.at(X)
def l36(saw, x):
    z = x * 1
    np.fill_diagonal(z, 0)
    return (z * z).sum()


@PROGRAMS.at(X)
def l37(saw, x):
    z = x * 1
    w = z.ravel("K")
    np.put(z, [0, 5], 9.0)
    return (z * z).sum() + w[0]


@PROGRAMS.at(X)
def l38(saw, x):
    z = x * 1
    np.copyto(z.T, np.ones((3, 2)), where=[[True, False]] * 3)
    return (z * z).sum()


@PROGRAMS.at(X)
def l39(saw, x):
    z = x * 1
    np.add(z[0], z[1], out=z[1])
    return (z * z).sum()


@PROGRAMS.at(X)
def l40(saw, x):
    z = np.zeros((3, 2))
    np.multiply(x.T, 2, out=z)
    r = z.ravel()
    r[0] = 1
    return (z * z).sum()


@PROGRAMS.at(X)
def l41(saw, x):
    z = np.zeros((3, 2), order="F")
    z[...] = x.T
    r = z.ravel()
    r[0] = 1
    return (z * z).sum()


@PROGRAMS.at(X)
def l42(saw, x):
    z = np.rot90(x * 1)
    r = z.reshape(-1)
    r[:] = 0
    return (z * z).sum()


@PROGRAMS.at(X)
def l43(saw, x):
    z = np.flip(x * 1, 1)
    z.ravel()[:] = 0
    return (z * z).sum()


@PROGRAMS.at(X)
def l44(saw, x):
    z = np.atleast_3d(x * 1)
    z.reshape(-1)[0] = 5
    return (z * z).sum()


@PROGRAMS.at(V)
def l45(saw, x):
    z = np.vander(x[:3])
    z.ravel()[0] = 5
    z.T.ravel()[0] = 7
    return (z * z).sum()


@PROGRAMS.at(X)
def l46(saw, x):
    z = np.sort(x.T, axis=0)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l47(saw, x):
    z = np.cumsum(x.T, axis=1)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l48(saw, x):
    z = np.diff(x.T, axis=0)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l49(saw, x):
    z = np.clip(x.T, -1, 1)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l50(saw, x):
    z = np.nan_to_num(x.T)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l51(saw, x):
    z = np.round(x.T, 1) + x.T
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l52(saw, x):
    z = x.T.astype(np.float64)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l53(saw, x):
    z = x.T.astype(np.float64, copy=False)
    saw.append(z is x)
    return (z * z).sum()


@PROGRAMS.at(X)
def l54(saw, x):
    z = np.roll(x.T, 1, axis=0)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l55(saw, x):
    z = np.pad(x.T, 1)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l56(saw, x):
    z = np.kron(x.T, np.ones((1, 2)))
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l57(saw, x):
    z = np.outer(x[0], x[1]).T
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l58(saw, x):
    z = np.linalg.inv(x @ x.T)
    z.T.ravel()[0] = 5
    z.ravel()[1] = 3
    return (z * z).sum()


@PROGRAMS.at(X)
def l59(saw, x):
    z = np.apply_along_axis(lambda r: r * 2, 0, x.T)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l60(saw, x):
    z = np.mean(x.T[None], axis=0)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l61(saw, x):
    z = np.meshgrid(x[0], x[1], indexing="ij")[0]
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l62(saw, x):
    z = np.meshgrid(x[0], x[1], copy=False)[0] + 0
    z.T.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l63(saw, x):
    z = np.dstack([x.T, x.T])
    z.ravel()[0] = 5
    z.T.ravel()[3] = 1
    return (z * z).sum()


@PROGRAMS.at(X)
def l64(saw, x):
    z = np.exp(x.T)[:, ::-1]
    z.ravel()[0] = 5
    (z + 0).ravel()[0] = 6
    return (z * z).sum()


@PROGRAMS.at(X)
def l65(saw, x):
    z = x.T + x.T[:1]
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l66(saw, x):
    z = x.T * np.ones((3, 1))
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l67(saw, x):
    z = x.T[[0, 2]]
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(X)
def l68(saw, x):
    z = x.T[:, [1, 0]]
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l69(saw, x):
    z = x[:, [0, 2], :]
    z.ravel()[0] = 5
    z.transpose(1, 0, 2).ravel()[1] = 4
    return (z * z).sum()


@PROGRAMS.at(T)
def l70(saw, x):
    z = x[[0, 1], :, [1, 2]]
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l72(saw, x):
    z = np.take(x, [1, 0], axis=1)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l73(saw, x):
    z = x.sum(axis=1, keepdims=True).T
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l74(saw, x):
    z = np.transpose(x, (1, 2, 0)).mean(axis=1)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l75(saw, x):
    z = np.max(np.transpose(x, (1, 2, 0)), axis=0)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l76(saw, x):
    z = np.linalg.norm(np.transpose(x, (2, 1, 0)), axis=1)
    z.ravel()[0] = 5
    return (z * z).sum()


@PROGRAMS.at(T)
def l77(saw, x):
    z = np.fft.irfft(np.fft.rfft(x.T, axis=0), axis=0)
    z.ravel()[0] = 5
    return (z * z).sum()

"""Gradients of pandas and xarray objects have their labels; what cannot be followed is refused."""

import numpy as np
import pytest

import lineara
from lineara import grad, hessian, hvp, jacobian, jvp, linearize, value_and_grad, vjp
from lineara.errors import DetachError, GeometryError, NonScalarOutputError, NoRuleError

GROUPS = [0, 1, 0, 1]
XY = ["x", "y"]


@pytest.fixture(scope="module", autouse=True)
def labelled():
    """pandas and xarray take half a second to import: here, once a test of this file runs."""
    global pd, xr, S, OTHER, DF, DA, WEIGHTS
    pd = pytest.importorskip("pandas", reason="the extra `frames` is not installed")
    xr = pytest.importorskip("xarray", reason="the extra `frames` is not installed")
    S = pd.Series([1.0, 2.2, 4.0, 3.0], index=list("abcd"), name="s")
    OTHER = pd.Series([1.0, 2.0, 4.0, 5.0], index=list("dabe"))
    DF = pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0, 0.5],
            "k": [1, 2, 3, 4],
            "y": [4.0, 5.0, 6.0, 1.0],
            "g": list("uvuv"),
        },
        index=[3, 1, 2, 7],
    )
    DA = xr.DataArray(
        [[1.0, 2.0, 4.0], [3.0, 0.5, 1.5]],
        dims=("t", "x"),
        coords={"t": [10, 20], "x": list("abc")},
        name="q",
        attrs={"unit": "m"},
    )
    WEIGHTS = xr.DataArray([1.0, 2.0, 3.0], dims="x", coords={"x": list("bcd")})


def written(s):
    s = s.copy()
    s.loc["a"] = 5.0 * s["b"]
    s["c"] = 2.0
    return (s**2).sum()


def column_added(d):
    d = d.copy()
    d["z"] = d.x**2
    d.loc[d.k > 2, "z"] = 0.0
    return d.z.sum()


def merged(d):
    m = d.merge(pd.DataFrame({"g": ["u", "v"], "w": [2.0, 3.0]}), on="g")
    return (m.x * m.w).sum()


def cell_written(d):
    d = d.copy()
    d[0, 0] = 5.0 * d[1, 1]
    d.loc[20, "c"] = 2.0
    return (d**2).sum()


OF_SERIES = {
    "aligned": lambda s: (s * OTHER).sum(),
    "divided both ways": lambda s: (OTHER / s + s / OTHER).sum(),
    "constants": lambda s: (2 / s - s**2 + 1).mean(),
    "an array on the left": lambda s: (np.arange(1.0, 5) * s).sum(),
    "an array on the right": lambda s: (s / np.arange(1.0, 5)).sum(),
    "standardised": lambda s: (((s - s.mean()) / s.std()) ** 3).sum(),
    "var": lambda s: s.var(ddof=0) * s.sem(),
    "max": lambda s: s.max() * s.min() + s.median() * s.prod(),
    "cumsum": lambda s: (s.cumsum() ** 2).sum() + s.shift(1).cumprod().sum(),
    "shift": lambda s: (s * s.shift(1)).sum() + s.shift(1, fill_value=0.0).sum(),
    "diff": lambda s: (s.diff() ** 2).sum() + s.pct_change().sum(),
    "loc": lambda s: s.loc["b"] * s["c"] + (s.loc["b":"d"] ** 2).sum(),
    "iloc": lambda s: s.iloc[1] * s.iloc[-1],
    "mask": lambda s: (s[s > 1.5] ** 2).sum() + s.where(s > 2, 0.0).sum(),
    "clip": lambda s: s.clip(1.5, 3.5).sum() + s.abs().sum(),
    "ufuncs": lambda s: np.exp(s).sum() + np.mean(np.sqrt(s)),
    "np.sum": lambda s: np.sum(np.log(s)) + np.cumsum(s).sum(),
    "to_numpy": lambda s: np.sum(s.to_numpy() ** 2) * np.dot(s, np.arange(4.0)),
    "values": lambda s: np.exp(s.values) @ np.arange(4.0),
    "dot": lambda s: s.dot(s) + s @ s,
    "sorted": lambda s: (s.sort_values().reset_index(drop=True) * np.arange(4.0)).sum(),
    "groupby": lambda s: (s.groupby(GROUPS).sum() ** 2).sum() + s.groupby(GROUPS).std().sum(),
    "transform": lambda s: ((s - s.groupby(GROUPS).transform("mean")) ** 3).sum(),
    "groupby cumsum": lambda s: (s.groupby([0, 1, 1, 0]).cumsum() ** 2).sum(),
    "groupby first": lambda s: (s.groupby(GROUPS).first() * s.groupby(GROUPS).last()).sum(),
    "missing": lambda s: (s.reindex(list("dcx")) ** 2).sum() + s.shift(1).fillna(2.0).sum(),
    "concat": lambda s: (pd.concat([s, s]) ** 2).sum(),
    "apply": lambda s: s.apply(lambda v: v**2).sum() + s.map(lambda v: v**3).sum(),
    "loop": lambda s: sum(v**2 for v in s) + sum(s.tolist()),
    "written": written,
    "methods": lambda s: s.mul(s).add(1).sub(s, fill_value=0).pipe(lambda q: q**2).sum(),
    "constant": lambda s: s.rank().sum() + s.count() + s.round().sum(),
    "at the largest": lambda s: s[s.idxmax()] ** 2,
    "float": lambda s: float(s.sum()),
    "quantile": lambda s: s.quantile(0.3) + s.quantile([0.2, 0.7]).sum() ** 2,
    "skew": lambda s: (s**2).skew() + (s**3).kurt(),
    "cummax": lambda s: (s.cummax() * s.cummin()).sum() + s.groupby(GROUPS).cummax().prod(),
}
OF_FRAMES = {
    "columns": lambda d: (d["x"] * d.y * d["k"]).sum(),
    "block": lambda d: (d[XY] ** 2).sum().sum() + np.exp(d[XY]).sum().sum(),
    "cells": lambda d: d.loc[1, "x"] * d.iloc[2, 2],
    "centred": lambda d: ((d[XY] - d[XY].mean()) ** 2).sum().sum(),
    "rows": lambda d: (d[XY].sum(axis=1) ** 2).sum() + (d[XY] @ np.array([1.0, 2.0])).sum(),
    "groupby": lambda d: (d.groupby("g")[XY].mean() ** 2).sum().sum(),
    "pivot": lambda d: (d.pivot_table(index="g", values="x", aggfunc="sum") ** 2).sum().sum(),
    "query": lambda d: (d.query("k > 2").x ** 2).sum() + (d[d.k > 2].x ** 2).sum(),
    "itertuples": lambda d: sum(r.x * r.y for r in d.itertuples()),
    "apply": lambda d: d.apply(lambda r: r["x"] * r["y"], axis=1).sum(),
    "merge": merged,
    "sorted": lambda d: (d.sort_values("x").x * np.arange(4.0)).sum(),
    "new column": column_added,
    "assign": lambda d: (d.assign(z=d.x * d.y).z ** 2).sum(),
    "long": lambda d: (d[XY].melt().value ** 2).sum() + (d[XY].T ** 2).sum().sum(),
    "cumsum": lambda d: (d[XY].cumsum() ** 2).sum().sum(),
    "values": lambda d: np.sum(d[XY].to_numpy() ** 2),
}
OF_DATA_ARRAYS = {
    "product": lambda d: (d * d).sum(),
    "aligned": lambda d: (d * WEIGHTS).sum(),
    "item": lambda d: (d * d).sum().item() + np.sum(d.values**2) + np.sum(d.to_numpy()),
    "data": lambda d: np.sum(d.data**2),
    "mean": lambda d: (d.mean("t") ** 2).sum() + d.std("x").sum() + d.var(),
    "max": lambda d: d.max("x").sum() + d.min() + d.median() + d.prod(),
    "sel": lambda d: d.sel(t=20, x="a") ** 2 * d.loc[10, "b"] * d[0, 1],
    "isel": lambda d: (d.isel(x=slice(1, None)) ** 2).sum(),
    "where": lambda d: (d.where(d > 1.7) ** 2).sum() + xr.where(d > 1.7, d, 0.0).sum(),
    "ufuncs": lambda d: np.exp(d).sum() + np.mean(np.log(d)) + xr.apply_ufunc(np.tanh, d).sum(),
    "cumsum": lambda d: (d.cumsum("x") ** 2).sum() + (d.diff("x") ** 2).sum(),
    "shift": lambda d: (d * d.shift(x=1)).sum() + (d.roll(x=1) * d).sum(),
    "matmul": lambda d: (d.T @ d).sum() + xr.dot(d, d),
    "groupby": lambda d: ((d.groupby("t") - d.groupby("t").mean()) ** 2).sum(),
    "rolling": lambda d: (d.rolling(x=2).mean() ** 2).sum(),
    "concat": lambda d: (xr.concat([d, d], "t") ** 2).sum() + (d.stack(z=("t", "x")) ** 2).sum(),
    "filled": lambda d: (d.shift(x=1).fillna(3.0) ** 2).sum(),
    "quantile": lambda d: d.quantile(0.3).item(),
    "differentiate": lambda d: (d.differentiate("t") ** 2).sum(),
    "pad": lambda d: (d.pad(x=1, constant_values=0.0) ** 2).sum(),
    "clip": lambda d: d.clip(1.2, 3.5).sum() + (2 / d + 1 - d).sum(),
    "written": cell_written,
    "another dimension": lambda d: (d * xr.DataArray([1.0, 2.0], dims="z")).sum(),
}


def slopes(f, values, with_values):
    found = np.zeros(values.shape)
    for i in np.ndindex(values.shape):
        step = np.zeros(values.shape)
        step[i] = 1e-6
        up, down = float(f(with_values(values + step))), float(f(with_values(values - step)))
        found[i] = (up - down) / 2e-6
    return found


@pytest.mark.parametrize("name", OF_SERIES)
def test_a_function_of_a_series(name):
    f = OF_SERIES[name]
    value, g = value_and_grad(f)(S)
    assert np.isclose(value, f(S))
    want = slopes(f, S.to_numpy(), lambda v: pd.Series(v, index=S.index, name="s"))
    pd.testing.assert_series_equal(g, pd.Series(want, S.index, name="s"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OF_FRAMES)
def test_a_function_of_a_frame(name):
    f = OF_FRAMES[name]
    g = grad(f)(DF)
    want = slopes(f, DF[XY].to_numpy(), lambda v: DF.assign(x=v[:, 0], y=v[:, 1]))
    whole = DF.assign(x=want[:, 0], y=want[:, 1], k=0.0)
    pd.testing.assert_frame_equal(g, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OF_DATA_ARRAYS)
def test_a_function_of_a_data_array(name):
    f = OF_DATA_ARRAYS[name]
    value, g = value_and_grad(f)(DA)
    assert np.isclose(float(value), float(f(DA)))
    want = DA.copy(data=slopes(f, DA.values, lambda v: DA.copy(data=v)))
    assert type(g) is xr.DataArray
    assert (g.name, g.attrs) == ("q", {"unit": "m"})
    xr.testing.assert_allclose(g, want, rtol=1e-5, atol=1e-6)


OF_PARAMETERS = {
    "scaled": (lambda p: ((DA * p - p * p) ** 2).sum("t").max(), 2.0),
    "on the left": (lambda p: (p * DA).sum().item() + (p / DA + DA / p).std("x").sum(), 2.0),
    "ufunc": (lambda p: np.exp(DA * p).mean(), 0.5),
    "masked": (lambda p: (DA.where(DA > 1) * p).mean() + (DA.groupby("t").sum() * p).sum(), 2.0),
    "an array": (lambda p: (DA * p).sum() + (p * DA).prod(), np.ones((2, 3))),
    "labels for it": (lambda p: ((DA * xr.DataArray(p, dims="x")) ** 2).sum(), np.arange(3.0)),
}


OF_PARAMETERS |= {
    "series": (lambda p: ((S * p - p) ** 2).mean() + (p / S + S / p + S**p).std(), 2.0),
    "series, ufuncs": (lambda p: np.exp(S * p[0] + p[1]).sum(), np.array([0.1, 0.2])),
    "series, two at once": (lambda p: np.multiply(S, p).sum() + np.maximum(p, S).sum(), 2.5),
    "series and array": (lambda p: ((p - S) ** 2 / p).sum(), np.arange(1.0, 5.0)),
    "series and fresh array": (lambda p: ((np.arange(4.0) * S) * p).sum() + S[p < S].sum(), 2.5),
    "columns": (lambda p: ((DF["x"] * p[0] - DF["k"] * p[1]) ** 2).mean(), np.array([1.0, 2.0])),
    "frame": (lambda p: ((DF[XY] * p) ** 2).sum().sum() + (p / DF[["k"]]).sum().sum(), 2.0),
    "frame and row": (lambda p: ((p / DF[XY]) ** 2).sum().sum(), np.array([2.0, 3.0])),
    "frame and array": (lambda p: ((DF[XY] - p) ** 2).sum().sum(), np.ones((4, 2))),
    "groups": (lambda p: (DF.groupby("g").x.sum() * p).sum() + S.mul(p).sum(), 2.0),
    "a Series of it": (lambda p: (pd.Series(p, list("abcd"))["b":] ** 2).sum(), np.arange(1.0, 5)),
    "a Series of numbers": (lambda p: pd.Series([p[0], p[1] ** 2, 3.0]).prod(), np.array([2.0, 3])),
    "a Series of constants": (
        lambda p: (pd.Series(np.zeros(4)) + p * pd.Series(np.ones(4))).sum(),
        2.0,
    ),
    "a frame of it": (
        lambda p: (
            pd.DataFrame({"a": p, "b": p**2, "s": p[0], "g": GROUPS}).groupby("g").b.sum() ** 2
        ).sum(),
        np.arange(1.0, 5.0),
    ),
    "a frame of a matrix": (lambda p: (pd.DataFrame(p, columns=XY).y ** 2).sum(), np.ones((3, 2))),
    "a column of it": (lambda p: (with_column(p) ** 2).sum(), np.arange(1.0, 5.0)),
    "isinstance": (lambda p: p * isinstance(S, pd.Series) * isinstance(DF, pd.DataFrame), 2.0),
}


def with_column(p):
    d = DF.copy()
    d["z"] = p
    d.loc[d["k"] > 2, "z"] = 0.5
    return d["z"] * d["x"]


@pytest.mark.parametrize("name", OF_PARAMETERS)
def test_labelled_data_with_traced_parameters(name):
    f, p = OF_PARAMETERS[name]
    want = slopes(f, np.asarray(p), lambda v: v if np.ndim(p) else float(v))
    assert np.allclose(grad(f)(p), want, rtol=1e-5)


def test_a_dataset():
    ds = xr.Dataset({"u": DA, "v": ("t", [1.0, 2.0]), "k": ("t", [1, 2])}, attrs={"of": "me"})

    def f(d):
        z = d.assign(z=d.u * d.v).z
        return z.sum() + (d.v * d.k).sum() + np.sum(d[["u"]].mean().u.values)

    g = grad(f)(ds)
    assert type(g) is xr.Dataset
    want = ds.copy(data={"u": ds.v + DA * 0 + 1 / 6, "v": DA.sum("x") + ds.k, "k": 0.0 * ds.k})
    xr.testing.assert_allclose(g.transpose(*want.dims), want.transpose(*want.dims))
    assert g.attrs == {"of": "me"}


def test_what_else_gives_and_takes_labels():
    ones = S * 0 + 1.0
    cube = {"primal": lambda s: (s**3).sum()}["primal"]
    for found, want in [
        (jvp(lambda s: s**2, (S,), (ones,))[1], 2 * S),
        (vjp(lambda s: s**2, S)[1](ones)[0], 2 * S),
        (linearize(lambda s: s**2, S)[1].T @ ones, 2 * S),
        (hvp(cube)(S, ones), 6 * S),
        (grad(lambda s: (grad(cube)(s) ** 2).sum())(S), 36 * S**3),
        (grad(lambda s: (cube(s), s * 2), has_aux=True)(S)[1], 2 * S),
        (grad(lineara.checkpoint(cube))(S), 3 * S**2),
        (grad(lambda p: (p["s"] * p["w"]).sum())({"s": S, "w": 2.0})["s"], 2 * ones),
        (grad(lambda s, w: (w * s).sum(), argnums=1)(ones, S), ones),
        (grad(lambda s: 3.0)(S), 0 * S),
        (grad(cube)(S.astype("float32")), (3 * S**2).astype("float32")),
        (grad(cube)(pd.Series([1, 2])), pd.Series([3.0, 12.0])),
        (grad(cube)(pd.Series([1.0, None], dtype="Float64")), pd.Series([3.0, 0.0])),
    ]:
        pd.testing.assert_series_equal(found, want)
    assert np.allclose(jacobian(lambda s: s**2)(S), np.diag(2 * S))
    assert np.allclose(hessian(cube)(S), np.diag(6 * S))
    doubled = vjp(lambda d: d[XY] * 2, DF)[1](DF[XY])[0]
    pd.testing.assert_frame_equal(doubled[XY], 2 * DF[XY])
    aux = grad(lambda d: ((d**2).sum(), (d * 2, (d * 3).data)), has_aux=True)(DA)[1]
    assert type(aux[0]) is xr.DataArray
    xr.testing.assert_allclose(aux[0], 2 * DA)
    assert np.allclose(aux[1], 3 * DA)
    assert set(jacobian(lambda d: d.x * 2)(DF)) == {"x", "y"}


def test_labels_that_do_not_match():
    for wrong in (S.sort_index(ascending=False), S.to_numpy()):
        with pytest.raises(GeometryError, match="a tangent at a Series is a Series with the same"):
            jvp(lambda s: s.sum(), (S,), (wrong,))
    for wrong in (DA.assign_coords(t=[1, 2]), DA.values):
        with pytest.raises(GeometryError, match="a tangent at a DataArray is a DataArray with"):
            jvp(lambda d: d.sum(), (DA,), (wrong,))


@pytest.mark.parametrize(
    "name", ["rolling", "ewm", "np.array", "np.where", "corr", "Float64", "interpolate"]
)
def test_compiled_code_of_pandas_is_refused(name):
    f = {
        "rolling": lambda s: s.rolling(2).mean().sum(),
        "ewm": lambda s: s.ewm(alpha=0.5).mean().sum(),
        "interpolate": lambda s: s.interpolate().sum(),
        "np.array": lambda s: np.sum(np.array(s)),
        "np.where": lambda s: np.where(s > 2, s, 0.0).sum(),
        "Float64": lambda s: s.astype("Float64").sum(),
        "corr": lambda s: s.corr(OTHER.set_axis(S.index)),
    }[name]
    with pytest.raises(DetachError, match=r"go on in NumPy with \.to_numpy\(\)"):
        grad(f)(S)


def test_other_refusals():
    with pytest.raises(NoRuleError, match="pandas' ohlc of traced values has no derivative rule"):
        grad(lambda s: s.groupby(GROUPS).ohlc().sum())(S)
    with pytest.raises(NoRuleError, match=r"pandas' groupby\.sum with min_count"):
        grad(lambda s: s.groupby(GROUPS).sum(min_count=2).sum())(S)
    with pytest.raises(DetachError, match=r"go on in NumPy with \.data"):
        grad(lambda d: d.interp(t=15).sum())(DA)
    with pytest.raises(DetachError, match=r"go on in NumPy with \.data"):
        grad(lambda p: (DA * p).values.sum())(2.0)
    for p, seen in ((S, r"f64\[4\]"), (DF[XY], "DataFrame"), (DA, r"f64\[2,3\]")):
        with pytest.raises(NonScalarOutputError, match=f"the function returned {seen}"):
            grad(lambda p: p * 2)(p)


def test_a_gradient_is_the_users_own():
    """Neither the argument nor its gradient knows of the trace."""
    s = S.copy()
    g = grad(lambda v: (v * v).sum())(s)
    g.iloc[0] = 7.0
    assert s.iloc[0] == 1.0
    assert type(g.array).__module__.startswith("pandas")
    seen = []
    grad(lambda v: seen.append(repr(v)) or v.sum())(s)
    assert "2.2\n" in seen[0]

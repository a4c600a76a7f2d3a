"""The picture: pelts, fitted curves with their uncertainty, and the orbit of the two species."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from lineara.demo.model import Parameters, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

HARE, LYNX, PELTS, INK, FAINT = "#1f7a8c", "#d1495b", "#dd9a1f", "#22303c", "#8a97a3"
STYLE: "dict[RcKeyType, Any]" = {
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#c4ccd4",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "grid.color": "#edf0f3",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}


def can_draw() -> bool:
    """Whether matplotlib, which only the picture needs, is installed."""
    return find_spec("matplotlib") is not None


def draw(
    best: Parameters, draws: Sequence[Parameters], years: np.ndarray, pelts: np.ndarray, path: Path
) -> None:
    """Save the picture; `draws` are samples of the parameters, which give the bands."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    times = np.linspace(years[0], years[-1], 10 * (len(years) - 1) + 1)
    curve = simulate(best, times, steps=1)
    curves = np.array([simulate(p, times, steps=1) for p in draws])
    with matplotlib.rc_context(STYLE):
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        figure = Figure(figsize=(12.6, 6.2), layout=layout, facecolor="white")
        left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
        _draw_years(left, years, pelts, times, curve, curves, draws)
        _draw_orbit(right, best, years, pelts, curve, curves)
        figure.suptitle(
            "Snowshoe hare and Canadian lynx, Hudson Bay, 1900\u20131920",
            x=0.01,
            ha="left",
            fontsize=16,
            fontweight="bold",
        )
        figure.savefig(path, dpi=150)


def _draw_years(
    axes: "Axes",
    years: np.ndarray,
    pelts: np.ndarray,
    times: np.ndarray,
    curve: np.ndarray,
    curves: np.ndarray,
    draws: Sequence[Parameters],
) -> None:
    """Left: both species against time, with bands for the curve and for the pelts of a year."""
    noises = np.array([(p.hare_noise, p.lynx_noise) for p in draws])
    for k, (species, colour) in enumerate((("hare", HARE), ("lynx", LYNX))):
        yearly = _with_noise(curves[:, :, k], noises[:, k])
        for some, opacity in ((yearly, 0.10), (curves[:, :, k], 0.28)):
            low, high = np.percentile(some, (5, 95), axis=0)
            axes.fill_between(times, low, high, color=colour, alpha=opacity, linewidth=0)
        axes.plot(times, curve[:, k], color=colour, linewidth=2.2, label=f"{species}, fitted")
        axes.plot(
            years, pelts[:, k], "o", ms=6.5, color=colour, mec="white", label=f"{species}, pelts"
        )
    axes.fill_between([], [], [], color=FAINT, alpha=0.6, label="the curve, 90%")
    axes.fill_between([], [], [], color=FAINT, alpha=0.22, label="pelts of a year, 90%")
    axes.set(xlim=(years[0] - 0.4, years[-1] + 0.4), ylim=(0, 125))
    axes.set(xlabel="year", ylabel="thousands of pelts")
    axes.set_xticks(range(int(years[0]), int(years[-1]) + 1, 2))
    axes.set_title("The pelts of each year, and the model fitted to them")
    axes.legend(loc="upper center", ncols=3)


def _with_noise(curves: np.ndarray, noises: np.ndarray) -> np.ndarray:
    """The curves, (draws, times), multiplied by quantiles of their noise."""
    normal = ndtri((np.arange(40) + 0.5) / 40)
    factors = np.exp(noises[:, None] * normal)
    return (curves[:, None, :] * factors[:, :, None]).reshape(-1, curves.shape[1])


def _draw_orbit(
    axes: "Axes",
    best: Parameters,
    years: np.ndarray,
    pelts: np.ndarray,
    curve: np.ndarray,
    curves: np.ndarray,
) -> None:
    """Right: the curve in the plane of the two species, around the fixed point of the model."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for some in curves[:80]:
        axes.plot(*some.T, color=FAINT, alpha=0.13, linewidth=0.8)
    axes.plot(*pelts.T, "-", color=PELTS, linewidth=0.8, alpha=0.45)
    axes.plot(*curve.T, color=INK, linewidth=2, label="the fitted orbit")
    for at in (20, 36):
        axes.annotate(
            "",
            curve[at + 1],
            curve[at],
            arrowprops={"arrowstyle": "-|>", "color": INK, "mutation_scale": 18, "linewidth": 0},
        )
    axes.plot([], [], color=FAINT, linewidth=0.8, label="orbits the data allow")
    axes.plot(*pelts.T, "o", ms=5.5, color=PELTS, mec="white", label="pelts of a year")
    for year, at in zip(years[:8], pelts, strict=False):
        axes.annotate(
            f"{year:.0f}",
            at,
            (5, -12) if at[1] < 8 else (6, 4),
            textcoords="offset points",
            fontsize=8.5,
            path_effects=halo,
        )
    fixed = best.gamma / best.delta, best.alpha / best.beta
    axes.plot(*fixed, "+", color=INK, ms=10, mew=1.8, label="the fixed point")
    axes.set(xlim=(0, 90), ylim=(0, 75))
    axes.set(xlabel="hare, thousands of pelts", ylabel="lynx, thousands of pelts")
    axes.set_title("One against the other: the cycle of ten years")
    axes.legend(loc="upper right", ncols=2)

"""`python -m benchmarks.readme`: the comparisons of README.md, a table and a picture.

Both are made of NATIVE.md, which has all rows; nothing is measured here.  A test asks whether
README.md has the table that the file gives.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "benchmarks" / "comparisons.svg"
BEGIN, END = "<!-- made by python -m benchmarks.readme -->\n", "<!-- end -->\n"
SHOWN = (
    "fill, n = 100000", "oscillator, 1000 steps", "Kalman filter, 200 × 4×4",
    "Lorenz in rows, 4000 points", "network 64×128×10", "256 examples: per-example gradients",
    "mixture 1000×25×10",
    "LSTM cell, 128", "gather and scatter, n = 1000000", "determinant in loops, 30×30",
    "bundle adjustment, 100000 sights",
)  # fmt: skip
OTHERS = {"by hand": "numba or NumPy", "g++ fast": "C++ (g++ -O3 -ffast-math)", "jax": "`jax.jit`"}


def derivatives() -> dict[str, dict[str, str]]:
    """The cells of each derivative in NATIVE.md, by their heads."""
    text = (ROOT / "benchmarks" / "NATIVE.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[:2]:
        heads, _, *rows = [
            [c.strip() for c in line[1:-1].split("|")] for line in block.splitlines()
        ]
        for row in rows:
            cells = dict(zip(heads[2:], row[2:], strict=True))
            cells.setdefault("by hand", cells.get("numba", "–"))
            if row[1] != "value":
                name = row[0] if row[1] == "gradient" else f"{row[0]}: {row[1]}"
                found[name] = cells
    return found


def times(cells: dict[str, str]) -> dict[str, float]:
    """Ours and those of the others, in microseconds."""
    told = {head: cells.get(head, "–") for head in ("native", *OTHERS)}
    return {head: float(cell) for head, cell in told.items() if cell != "–"}


def table() -> str:
    """The rows that are shown: ours in microseconds, and the ratio of each other time to it."""
    heads = ["from Python source to its derivative", "Lineara", *OTHERS.values()]
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    found = derivatives()
    for name in SHOWN:
        known = times(found[name])
        ratios = [f"{known[h] / known['native']:.2f}" if h in known else "–" for h in OTHERS]
        lines.append([name, f"{known['native']:,.0f} µs", *ratios])
    return "".join([f"| {' | '.join(line)} |\n" for line in lines])


def draw() -> None:
    """Draw the ratios of all derivatives."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib import ticker

    # the same file from the same numbers, with text as text
    mpl.rcParams |= {"svg.hashsalt": "lineara", "svg.fonttype": "none"}
    found = {name: times(cells) for name, cells in derivatives().items()}
    _, ax = plt.subplots(figsize=(8.0, 0.3 * len(found) + 1.0), layout="constrained")
    for head, label in OTHERS.items():
        rows = [k for k, known in enumerate(found.values()) if head in known]
        ratios = [known[head] / known["native"] for known in found.values() if head in known]
        ax.plot(ratios, rows, "o", label=label.replace("`", ""))
    ax.axvline(1.0, color="0.4", lw=1.0)
    ax.set_yticks(range(len(found)), [*found])
    ax.invert_yaxis()
    ax.set(
        xscale="log", xlabel="time of the other / time of Lineara (right of 1: Lineara is faster)"
    )
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.grid(True, axis="x", alpha=0.4)
    ax.set_title("One derivative, from Python source", loc="left")
    ax.figure.legend(loc="outside upper right", ncols=len(OTHERS), fontsize="small")
    plt.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


def main() -> None:
    """Write both."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    README.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
    draw()


if __name__ == "__main__":
    main()

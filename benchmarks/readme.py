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
    "network 64×128×10", "mixture 1000×25×10", "LSTM cell, 128", "determinant in loops, 30×30",
    "bundle adjustment, 100000 sights",
)  # fmt: skip
OTHERS = {"by hand": "numba or NumPy", "g++ fast": "C++ (g++ -O3 -ffast-math)", "jax": "`jax.jit`"}


def gradients() -> dict[str, dict[str, str]]:
    """The cells of each gradient in NATIVE.md, by their heads."""
    text = (ROOT / "benchmarks" / "NATIVE.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[:2]:
        heads, _, *rows = [
            [c.strip() for c in line[1:-1].split("|")] for line in block.splitlines()
        ]
        for row in rows:
            cells = dict(zip(heads[2:], row[2:], strict=True))
            cells.setdefault("by hand", cells.get("numba", "–"))
            cells["native"] = cells.get("jit", cells["native"])  # the whole call
            if row[1] == "gradient":
                found[row[0]] = cells
    return found


def times(cells: dict[str, str]) -> dict[str, float]:
    """Ours and those of the others, in microseconds."""
    told = {head: cells.get(head, "–") for head in ("native", *OTHERS)}
    return {head: float(cell) for head, cell in told.items() if cell != "–"}


def table() -> str:
    """The rows that are shown: ours in microseconds, and the ratio of each other time to it."""
    heads = ["gradient, from Python to derivative", "Lineara", *OTHERS.values()]
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    found = gradients()
    for name in SHOWN:
        known = times(found[name])
        ratios = [f"{known[h] / known['native']:.2f}" if h in known else "–" for h in OTHERS]
        lines.append([name, f"{known['native']:,.0f} µs", *ratios])
    return "".join([f"| {' | '.join(line)} |\n" for line in lines])


def draw() -> None:
    """Draw the ratios of all gradients."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    # the same file from the same numbers, with text as text
    mpl.rcParams |= {"svg.hashsalt": "lineara", "svg.fonttype": "none"}
    found = {name: times(cells) for name, cells in gradients().items()}
    _, ax = plt.subplots(figsize=(8.0, 0.3 * len(found) + 1.0), layout="constrained")
    for head, label in OTHERS.items():
        rows = [k for k, known in enumerate(found.values()) if head in known]
        ratios = [known[head] / known["native"] for known in found.values() if head in known]
        ax.plot(ratios, rows, "o", label=label.replace("`", ""))
    ax.axvline(1.0, color="0.4", lw=1.0)
    ax.set_yticks(range(len(found)), [*found])
    ax.invert_yaxis()
    ax.set(xscale="log", title="time of the other / Lineara's, one gradient")
    ax.grid(True, axis="x", alpha=0.4)
    ax.legend(loc="lower right", fontsize="small")
    plt.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


def main() -> None:
    """Write both."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    README.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
    draw()


if __name__ == "__main__":
    main()

"""`explore`: everything about the derivative of a function on one page that needs no network.

The function is captured with the user's lines on its variables, which every pass hands on; so a row
of any stage, a node of the diagram and an instruction know the line that they come from.
"""

import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lineara.api import linearize
from lineara.diagrams.from_programs import diagram_of
from lineara.diagrams.layout import layout
from lineara.diagrams.svg import STYLE, Namer, scene
from lineara.diagrams.svg import element as element_of
from lineara.errors import LinearaError, TypeMismatchError, describe_line
from lineara.explorer.costs import (
    LineCost,
    peak_by_line,
    rounds_at,
    tape_by_line,
    work_by_line,
)
from lineara.explorer.rows import Row, Source, assembly_rows, rows_of, sources_of
from lineara.facts.types import show_type
from lineara.passes.names import JVP, LIN, NL, E, T
from lineara.passes.policy_table import POLICIES, size
from lineara.passes.policy_table import plan as plan_of
from lineara.rules.kinks import kinks
from lineara.sparse import sparsity
from lineara.staging.capture import trace_with_lines
from lineara.staging.stages import Stages
from lineara.staging.tracing import Staged

DOTS = 300  # rows and columns of a spy plot: more are drawn together
NODES = 600  # of a diagram that is drawn


@dataclass(frozen=True)
class Chosen:
    """What a checkpoint policy makes: the costs of the whole and of each line, and the stages."""

    policy: str
    work: int
    again: int
    tape: int
    peak: int
    costs: dict[str, LineCost]
    stages: dict[str, list[Row]]


class Exploration:
    """What is known of a function at arguments of these types; in a notebook it is its page.

    `page` is the page as a text, `save(path)` writes it; `sources` has the user's functions,
    `chosen` what each checkpoint policy makes, the largest tape first, and `costs` what each line
    costs under the first of these.  It prints the lines that cost most.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.staged: Staged = trace_with_lines(f, *args, **kwargs)
        self.name: str = self.staged.name
        _refuse_without_numbers(self.staged)
        self.chosen: list[Chosen] = sorted(
            _all_chosen(self.staged, args, kwargs), key=lambda c: -c.tape
        )
        places = [r.line for c in self.chosen for rows in c.stages.values() for r in rows if r.line]
        self.sources: list[Source] = sources_of(dict.fromkeys(places))
        self.diagram: Any = _or_why(lambda: _diagram(self.staged))
        self.spy: Any = _or_why(lambda: _spy(f, args, kwargs))
        self.kinks: Any = _or_why(lambda: _kinks(f, args, kwargs))

    @property
    def costs(self) -> dict[str, LineCost]:
        """What each line costs, by `file:number`."""
        return self.chosen[0].costs

    @property
    def page(self) -> str:
        """One file of HTML; what is the user's stands in it as data, escaped."""
        data = json.dumps(self._data(), ensure_ascii=False, separators=(",", ":"))
        parts = {
            "@TITLE@": html.escape(self.name),
            "@STYLE@": STYLE + _asset("explorer.css"),
            "@SCRIPT@": _asset("explorer.js"),
            "@DATA@": data.replace("<", "\\u003c"),
        }
        pieces = re.split("(@[A-Z]+@)", _asset("explorer.html"))
        return "".join([parts.get(piece, piece) for piece in pieces])

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.page, encoding="utf-8")

    def _data(self) -> dict[str, object]:
        lines: dict[str, int] = {"": -1}

        def at(line: str) -> int:
            return lines.setdefault(line, len(lines) - 1)

        choices = [
            {
                "policy": c.policy,
                "said": f"work {c.work:,}, of which {c.again:,} a second time; tape "
                f"{size(c.tape)}, peak {size(c.peak)}",
                "costs": {at(k): [v.value, v.gradient, v.tape, v.peak] for k, v in c.costs.items()},
                "stages": {k: [[r.text, at(r.line)] for r in rows] for k, rows in c.stages.items()},
            }
            for c in self.chosen
        ]
        diagram = self.diagram
        if not isinstance(diagram, str):
            shapes, *rest = diagram
            diagram = [[[s, at(line)] for s, line in shapes], *rest]
        sources = [
            [
                Path(s.file).name,
                s.first,
                [[t, at(f"{s.file}:{s.first + i}")] for i, t in enumerate(s.lines)],
            ]
            for s in self.sources
        ]
        return {
            "name": self.name,
            "sources": sources,
            "choices": choices,
            "diagram": diagram,
            "spy": self.spy,
            "kinks": self.kinks,
        }

    def __repr__(self) -> str:
        first = self.chosen[0]
        lines = [
            f"{self.name}: work of the gradient {first.work:,}, tape {size(first.tape)}, "
            f"peak {size(first.peak)}"
        ]
        slow = sorted([(c.gradient, line) for line, c in self.costs.items() if line])[::-1]
        for work, line in slow[:5]:
            file, _, number = line.rpartition(":")
            share = 100 * work / max(1, sum([w for w, _ in slow]))
            lines.append(f"  {share:3.0f} %  {describe_line(file, int(number), self.name)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        page = html.escape(self.page, quote=True)
        looks = "width:100%;height:42rem;border:1px solid #8888"
        return f'<iframe title="{html.escape(self.name)}" style="{looks}" srcdoc="{page}"></iframe>'


def explore(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Exploration:
    """A page on f at arguments of these types: its source, every stage, and what each line costs.

    The page has f as a program, its jvp, that unzipped, transposed and simplified, machine code
    where there is some, and the diagram; a line that is pointed at is marked in all of them.  Work,
    tape and peak memory stand beside the lines as bars, for each checkpoint policy, which a slider
    chooses; and there are the sparsity of the derivative, and the kinks met in a run.

    What only a run can tell, such as how often a while loop goes round, is counted in a run at the
    arguments.

    Errors: TypeMismatchError where f is no function or returns no numbers, StagingError where it
    cannot be captured.

    >>> import numpy as np
    >>> def energy(x):
    ...     y = np.sin(x) * x
    ...     return np.sum(y * y)
    >>> found = explore(energy, np.ones(4))
    >>> found.chosen[0].policy, found.page[:15]
    ('store_all', '<!doctype html>')
    """
    return Exploration(f, args, kwargs)


def _refuse_without_numbers(staged: Staged) -> None:
    """A function none of whose results is a number has no derivative to explore."""
    if not staged.results.weak:
        returned = ", ".join(map(show_type, staged.results.constants)) or "nothing"
        raise TypeMismatchError(
            f"explore: {staged.name} returned {returned}, which has no derivative; return numbers, "
            "arrays or containers of them"
        )


def _all_chosen(staged: Staged, args: tuple, kwargs: dict[str, Any]) -> list[Chosen]:
    """What every policy that has a name makes."""
    operands = staged.operands(args, kwargs)
    rows = {r.policy: r for r in plan_of(staged.program, staged.name, None, *operands).rows}
    choices = []
    for policy, row in rows.items():
        stages = Stages(staged, args, kwargs, POLICIES[policy])
        shown = {s.name: rows_of(s.defs) for s in stages.stages}
        code = _or_why(lambda s=stages: assembly_rows(s.machine_code))
        shown["machine code"] = [Row(code, "")] if isinstance(code, str) else code
        costs = _costs(stages)
        choices.append(Chosen(policy, row.work, row.again, row.tape, row.peak, costs, shown))
    return choices


def _costs(stages: Stages) -> dict[str, LineCost]:
    f, program, args = stages.staged.name, stages.program, stages.operands
    nl, back = f + JVP + NL, f + JVP + LIN + T + E
    parts = {
        "value": work_by_line(program, rounds_at(program, [f], args)),
        "gradient": work_by_line(program, rounds_at(program, [nl, back], args)),
        "tape": tape_by_line(program, rounds_at(program, [nl], args)),
        "peak": peak_by_line(program, nl),
    }
    costs: dict[str, LineCost] = {}
    for name, by_line in parts.items():
        for line, n in by_line.items():
            setattr(costs.setdefault(line, LineCost()), name, n)
    return costs


def _or_why(make: Callable[[], Any]) -> Any:
    """What is made, or in words why there is none."""
    try:
        return make()
    except LinearaError as error:
        return str(error)


def _diagram(staged: Staged) -> Any:
    """The shapes of the diagram with their lines, and its size."""
    net = diagram_of(staged.program, staged.name, unfold=False).net
    nodes = sum([1 for _ in net.nodes])
    if nodes > NODES:
        return f"the diagram has {nodes} nodes, and is drawn with up to {NODES}"
    namer = Namer()
    names = namer.named(net)
    picture = layout(net, None, names)
    lines: dict[str, str] = {}
    for placed in picture.placed:
        of = [w.line for w in placed.node.outs if w.line]
        key = namer.key(placed.node.id)
        if of and placed.node.kind not in ("copy", "drop"):
            lines[key] = lines[f"{key}l"] = of[0]
    for routed in picture.wires:
        lines[f"{namer.key(routed.wire.id)}w"] = routed.wire.line
    shapes = [(element_of(s), lines.get(s.key, "")) for s in scene(picture, namer, names)]
    return shapes, picture.width, picture.height


def _spy(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Where the derivative is not zero: rows, columns, and the places, of large ones together."""
    pattern = sparsity(f, *args, **kwargs).tocoo()
    m, n = pattern.shape
    step = max(1, -(-max(m, n) // DOTS))
    places = {
        (int(i) // step, int(j) // step) for i, j in zip(pattern.row, pattern.col, strict=True)
    }
    return [m, n, step, int(pattern.nnz), sorted(places)]


def _kinks(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Sequence[Any]:
    """The kinks that a run meets, how often, and where."""
    policy = kinks()
    with np.errstate(all="ignore"):
        linearize(policy(f), *args, **kwargs)
    return [[str(part) for part in hit] for hit in policy.hits]


def _asset(name: str) -> str:
    return files("lineara.explorer").joinpath(name).read_text(encoding="utf-8")

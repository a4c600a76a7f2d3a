"""Formulas as MathML, which browsers draw themselves: no script and no font to fetch."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(self, node: nodes.math) -> None:
    """A formula within a line."""
    self.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def display(self, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}

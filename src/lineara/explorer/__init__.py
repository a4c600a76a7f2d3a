"""A page on a function: its lines, what every pass makes of them, and what each of them costs."""

from lineara.explorer.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]

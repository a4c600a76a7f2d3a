"""Evaluating programs: `run` chooses an engine and asks it; `forecast` measures without values.

The engines that compile, and what is told of machine code, are loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lineara.engines.callable_class import set_code, with_room
from lineara.engines.engine import CAPABILITIES, Ask, Engine, Entering, Outcome
from lineara.engines.evaluation import (
    direct,
    engine,
    engine_here,
    engine_of,
    engines,
    exact_engine,
    is_exact,
    run,
    takes,
)
from lineara.engines.interpreter import Exact, Machine, Numbers
from lineara.engines.memory import Meter
from lineara.engines.patterns import dependence
from lineara.engines.rehearsal import Forecast, forecast
from lineara.engines.values import ZERO, Tagged, bytes_of, ones_of

if TYPE_CHECKING:
    from lineara.engines.native import facts, guarded_call, is_installed
    from lineara.engines.native.cache import disk_cache, nothing_kept
    from lineara.engines.native.report import Listing, machine_code_facts, machine_code_listing

    ENGINES: tuple[Engine, ...]

__all__ = [
    "CAPABILITIES",
    "ENGINES",
    "ZERO",
    "Ask",
    "Engine",
    "Entering",
    "Exact",
    "Forecast",
    "Listing",
    "Machine",
    "Meter",
    "Numbers",
    "Outcome",
    "Tagged",
    "bytes_of",
    "dependence",
    "direct",
    "disk_cache",
    "engine",
    "engine_here",
    "engine_of",
    "exact_engine",
    "facts",
    "forecast",
    "guarded_call",
    "is_exact",
    "is_installed",
    "machine_code_facts",
    "machine_code_listing",
    "nothing_kept",
    "ones_of",
    "run",
    "set_code",
    "takes",
    "with_room",
]


def __getattr__(name: str) -> Any:
    """The engines, in the order in which they are asked; what machine code is, and is kept."""
    if name == "ENGINES":
        return tuple(engines().values())
    if name not in __all__:
        raise AttributeError(f"module 'lineara.engines' has no attribute {name!r}")
    if name in ("facts", "guarded_call"):
        return import_module(f"lineara.engines.native.{name}")
    if name == "is_installed":
        return import_module("lineara.engines.native").is_installed
    if name in ("disk_cache", "nothing_kept"):
        return getattr(import_module("lineara.engines.native.cache"), name)
    return getattr(import_module("lineara.engines.native.report"), name)

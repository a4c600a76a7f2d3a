"""Evaluating programs: `run` chooses an engine and asks it; `forecast` measures without values."""

from lineara.engines.engine import CAPABILITIES, Ask, Engine, Entering, Outcome
from lineara.engines.evaluation import ENGINES, direct, run
from lineara.engines.interpreter import Exact, Machine, Numbers
from lineara.engines.memory import Meter
from lineara.engines.native.cache import disk_cache
from lineara.engines.native.report import Listing, machine_code_facts, machine_code_listing
from lineara.engines.rehearsal import Forecast, forecast
from lineara.engines.values import ZERO, Tagged

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
    "direct",
    "disk_cache",
    "forecast",
    "machine_code_facts",
    "machine_code_listing",
    "run",
]

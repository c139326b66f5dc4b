"""stowplan: a provably good placement of all pods of a Kubernetes cluster, beside what kube-scheduler would do.

>>> import stowplan
>>> snapshot = stowplan.load(["dump.json"])  # doctest: +SKIP
>>> compiled = stowplan.make_problem(snapshot, stowplan.Settings(objective="balance"))  # doctest: +SKIP
>>> solution = stowplan.solve_snapshot(compiled, stowplan.Options(time_limit=20))  # doctest: +SKIP

Names are imported when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from instances.load import load
    from instances.synthetic import synthetic_snapshot
    from models.errors import InputError, StowplanError
    from models.objective import PRESETS, Objective, TierSettings
    from models.plan import LimitsDocument, Plan
    from models.result import Outcome, Status, TierOutcome
    from models.snapshot import Snapshot
    from optimizer.control import Stop
    from optimizer.portfolio import Options
    from plugins_compat.compiler.compile import Compiled
    from plugins_compat.simulate import Simulation, simulate
    from stowplan.comparison import Comparison, compare
    from stowplan.documents.comparison import ComparisonDocument, comparison_document
    from stowplan.documents.solution import SolutionDocument, solution_document
    from stowplan.inputs import Settings, make_problem, make_profile
    from stowplan.measures import Measures, measure
    from stowplan.plan_verification import PlanVerification, verify_plan
    from stowplan.planning import Planned, Terms, make_plan
    from stowplan.solution import Move, Solution, solve_snapshot
    from stowplan.verification import Verification, verify

_HOMES = {
    "instances.load": ("load",),
    "instances.synthetic": ("synthetic_snapshot",),
    "models.errors": ("InputError", "StowplanError"),
    "models.objective": ("PRESETS", "Objective", "TierSettings"),
    "models.plan": ("LimitsDocument", "Plan"),
    "models.result": ("Outcome", "Status", "TierOutcome"),
    "models.snapshot": ("Snapshot",),
    "optimizer.control": ("Stop",),
    "optimizer.portfolio": ("Options",),
    "plugins_compat.compiler.compile": ("Compiled",),
    "plugins_compat.simulate": ("Simulation", "simulate"),
    "stowplan.comparison": ("Comparison", "compare"),
    "stowplan.documents.comparison": ("ComparisonDocument", "comparison_document"),
    "stowplan.documents.solution": ("SolutionDocument", "solution_document"),
    "stowplan.inputs": ("Settings", "make_problem", "make_profile"),
    "stowplan.measures": ("Measures", "measure"),
    "stowplan.plan_verification": ("PlanVerification", "verify_plan"),
    "stowplan.planning": ("Planned", "Terms", "make_plan"),
    "stowplan.solution": ("Move", "Solution", "solve_snapshot"),
    "stowplan.verification": ("Verification", "verify"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PRESETS",
    "Comparison",
    "ComparisonDocument",
    "Compiled",
    "InputError",
    "LimitsDocument",
    "Measures",
    "Move",
    "Objective",
    "Options",
    "Outcome",
    "Plan",
    "PlanVerification",
    "Planned",
    "Settings",
    "Simulation",
    "Snapshot",
    "Solution",
    "SolutionDocument",
    "Status",
    "Stop",
    "StowplanError",
    "Terms",
    "TierOutcome",
    "TierSettings",
    "Verification",
    "compare",
    "comparison_document",
    "load",
    "make_plan",
    "make_problem",
    "make_profile",
    "measure",
    "simulate",
    "solution_document",
    "solve_snapshot",
    "synthetic_snapshot",
    "verify",
    "verify_plan",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]

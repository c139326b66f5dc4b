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
    from stowplan.answers.compare import Comparison, compare
    from stowplan.answers.measures import Measures, measure
    from stowplan.answers.solve import Solution, solve_snapshot
    from stowplan.answers.verify_plan import PlanVerification, verify_plan
    from stowplan.answers.verify_solution import Verification, verify
    from stowplan.documents.comparison import ComparisonDocument, comparison_document
    from stowplan.documents.solution import SolutionDocument, solution_document
    from stowplan.instances.load import load
    from stowplan.instances.synthetic import synthetic_snapshot
    from stowplan.models.errors import InputError, StowplanError
    from stowplan.models.objective import PRESETS, Objective, TierSettings
    from stowplan.models.limits import LimitsDocument
    from stowplan.models.plan import Plan
    from stowplan.models.result import Outcome, Status, TierOutcome
    from stowplan.models.snapshot import Snapshot
    from stowplan.models.stop import Stop
    from stowplan.optimizer.portfolio import Options
    from stowplan.planning.plan import Planned, make_plan
    from stowplan.settings.terms import Terms
    from stowplan.plans.move import Move
    from stowplan.plugins_compat.compiler.compile import Compiled
    from stowplan.plugins_compat.simulate import Simulation, simulate
    from stowplan.models.settings import Settings
    from stowplan.settings.problem import make_problem, make_profile

_HOMES = {
    "stowplan.instances.load": ("load",),
    "stowplan.instances.synthetic": ("synthetic_snapshot",),
    "stowplan.models.errors": ("InputError", "StowplanError"),
    "stowplan.models.objective": ("PRESETS", "Objective", "TierSettings"),
    "stowplan.models.plan": ("Plan",),
    "stowplan.models.limits": ("LimitsDocument",),
    "stowplan.models.result": ("Outcome", "Status", "TierOutcome"),
    "stowplan.models.snapshot": ("Snapshot",),
    "stowplan.models.stop": ("Stop",),
    "stowplan.optimizer.portfolio": ("Options",),
    "stowplan.plugins_compat.compiler.compile": ("Compiled",),
    "stowplan.plugins_compat.simulate": ("Simulation", "simulate"),
    "stowplan.answers.compare": ("Comparison", "compare"),
    "stowplan.documents.comparison": ("ComparisonDocument", "comparison_document"),
    "stowplan.documents.solution": ("SolutionDocument", "solution_document"),
    "stowplan.models.settings": ("Settings",),
    "stowplan.settings.problem": ("make_problem", "make_profile"),
    "stowplan.answers.measures": ("Measures", "measure"),
    "stowplan.answers.verify_plan": ("PlanVerification", "verify_plan"),
    "stowplan.planning.plan": ("Planned", "make_plan"),
    "stowplan.settings.terms": ("Terms",),
    "stowplan.answers.solve": ("Solution", "solve_snapshot"),
    "stowplan.answers.verify_solution": ("Verification", "verify"),
    "stowplan.plans.move": ("Move",),
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

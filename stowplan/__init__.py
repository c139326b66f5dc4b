"""stowplan: a provably good placement of all pods of a Kubernetes cluster, beside what kube-scheduler would do.

>>> import stowplan
>>> snapshot = stowplan.load("dump.json")  # doctest: +SKIP
>>> settings = stowplan.Settings(objective="balance", max_moves=20)  # doctest: +SKIP
>>> solution = stowplan.solve(snapshot, settings, stowplan.Options(time_limit=20))  # doctest: +SKIP

Names are imported when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowplan.answers.compare import Comparison
    from stowplan.answers.frontier import Frontier
    from stowplan.answers.measures import Measures, measure
    from stowplan.answers.solve import Solution
    from stowplan.answers.validate import Validation
    from stowplan.answers.verify_plan import PlanVerification, verify_plan
    from stowplan.answers.verify_solution import Verification, verify
    from stowplan.answers.what_if import WhatIf
    from stowplan.api import anonymize, compare, drain, explain, fit, frontier, plan, replay, solve, validate
    from stowplan.documents.comparison import ComparisonDocument, comparison_document
    from stowplan.documents.solution import solution_document
    from stowplan.explaining.node import NodeExplanation
    from stowplan.explaining.pending import PendingExplanation
    from stowplan.explaining.pod import PodExplanation
    from stowplan.html_report.writing import write_report
    from stowplan.hypothetical import survive, what_if
    from stowplan.instances.load import load
    from stowplan.instances.synthetic import synthetic_snapshot
    from stowplan.models.assignment import Assignment
    from stowplan.models.errors import InputError, StowplanError
    from stowplan.models.limits import LimitsDocument
    from stowplan.models.objective import PRESETS, Objective, TierSettings
    from stowplan.models.options import Options
    from stowplan.models.plan import Plan
    from stowplan.models.result import Outcome, Status, TierOutcome
    from stowplan.models.settings import Settings, SettingsDocument
    from stowplan.models.snapshot import Snapshot
    from stowplan.models.solution import SolutionDocument
    from stowplan.models.stop import Stop
    from stowplan.optimizer.backend import Backend, ProcessBackend, RayBackend, SerialBackend
    from stowplan.planning.drain import Drained
    from stowplan.planning.fit import Fitted
    from stowplan.planning.plan import Planned
    from stowplan.planning.replay import Replay
    from stowplan.planning.survive import Survival
    from stowplan.plugins_compat.compiler.compile import Compiled
    from stowplan.plugins_compat.simulate import Simulation, simulate
    from stowplan.report.frames import frame
    from stowplan.scenarios.apply import apply_scenario
    from stowplan.scenarios.scenario import Scenario
    from stowplan.settings.problem import make_problem, make_profile
    from stowplan.settings.terms import Terms

__all__ = [
    "PRESETS",
    "Assignment",
    "Backend",
    "Comparison",
    "ComparisonDocument",
    "Compiled",
    "Drained",
    "Fitted",
    "Frontier",
    "InputError",
    "LimitsDocument",
    "Measures",
    "NodeExplanation",
    "Objective",
    "Options",
    "Outcome",
    "PendingExplanation",
    "Plan",
    "PlanVerification",
    "Planned",
    "PodExplanation",
    "ProcessBackend",
    "RayBackend",
    "Replay",
    "Scenario",
    "SerialBackend",
    "Settings",
    "SettingsDocument",
    "Simulation",
    "Snapshot",
    "Solution",
    "SolutionDocument",
    "Status",
    "Stop",
    "StowplanError",
    "Survival",
    "Terms",
    "TierOutcome",
    "TierSettings",
    "Validation",
    "Verification",
    "WhatIf",
    "anonymize",
    "apply_scenario",
    "compare",
    "comparison_document",
    "drain",
    "explain",
    "fit",
    "frame",
    "frontier",
    "load",
    "make_problem",
    "make_profile",
    "measure",
    "plan",
    "replay",
    "simulate",
    "solution_document",
    "solve",
    "survive",
    "synthetic_snapshot",
    "validate",
    "verify",
    "verify_plan",
    "what_if",
    "write_report",
]

_HOMES = {
    "stowplan.answers.compare": ("Comparison",),
    "stowplan.answers.frontier": ("Frontier",),
    "stowplan.answers.measures": ("Measures", "measure"),
    "stowplan.answers.solve": ("Solution",),
    "stowplan.answers.validate": ("Validation",),
    "stowplan.answers.verify_plan": ("PlanVerification", "verify_plan"),
    "stowplan.answers.verify_solution": ("Verification", "verify"),
    "stowplan.answers.what_if": ("WhatIf",),
    "stowplan.api": (
        *("anonymize", "compare", "drain", "explain", "fit", "frontier", "plan", "replay", "solve", "validate"),
    ),
    "stowplan.documents.comparison": ("ComparisonDocument", "comparison_document"),
    "stowplan.documents.solution": ("solution_document",),
    "stowplan.explaining.node": ("NodeExplanation",),
    "stowplan.explaining.pending": ("PendingExplanation",),
    "stowplan.explaining.pod": ("PodExplanation",),
    "stowplan.instances.load": ("load",),
    "stowplan.instances.synthetic": ("synthetic_snapshot",),
    "stowplan.models.assignment": ("Assignment",),
    "stowplan.models.errors": ("InputError", "StowplanError"),
    "stowplan.models.limits": ("LimitsDocument",),
    "stowplan.models.objective": ("PRESETS", "Objective", "TierSettings"),
    "stowplan.models.options": ("Options",),
    "stowplan.models.plan": ("Plan",),
    "stowplan.models.result": ("Outcome", "Status", "TierOutcome"),
    "stowplan.models.settings": ("Settings", "SettingsDocument"),
    "stowplan.models.snapshot": ("Snapshot",),
    "stowplan.models.solution": ("SolutionDocument",),
    "stowplan.models.stop": ("Stop",),
    "stowplan.optimizer.backend": ("Backend", "ProcessBackend", "RayBackend", "SerialBackend"),
    "stowplan.planning.drain": ("Drained",),
    "stowplan.planning.fit": ("Fitted",),
    "stowplan.html_report.writing": ("write_report",),
    "stowplan.hypothetical": ("survive", "what_if"),
    "stowplan.planning.plan": ("Planned",),
    "stowplan.planning.replay": ("Replay",),
    "stowplan.planning.survive": ("Survival",),
    "stowplan.report.frames": ("frame",),
    "stowplan.plugins_compat.compiler.compile": ("Compiled",),
    "stowplan.plugins_compat.simulate": ("Simulation", "simulate"),
    "stowplan.scenarios.apply": ("apply_scenario",),
    "stowplan.scenarios.scenario": ("Scenario",),
    "stowplan.settings.problem": ("make_problem", "make_profile"),
    "stowplan.settings.terms": ("Terms",),
}
"""Where each name is imported from; a test holds it against the imports above."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME_OF]

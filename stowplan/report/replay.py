"""Reports of a replayed plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from stowplan.models.words import plural
from stowplan.planning.replay import Replay
from stowplan.plans.replay.distribution import HIGH, LOW, Certainty, Distribution
from stowplan.plans.replay.outcome import Landing, MoveVerdict
from stowplan.report.rows import Row
from stowplan.report.tables import label_column, plain_table, say, show_names
from stowplan.report.words import figure, tier_label

SHOWN = 20
"""Maximum number of landings in a report; ``-o wide`` shows all."""

ORDER = (
    MoveVerdict.NEEDS_STEERING,
    MoveVerdict.NOT_EVICTED,
    MoveVerdict.NOT_BEGUN,
    MoveVerdict.AS_GOOD,
    MoveVerdict.PLANNED,
)
"""The moves that need attention come first."""


def show_replay(console: Console, replay: Replay, *, wide: bool = False) -> None:
    """Print the result of a replay."""
    outcome = replay.outcome
    console.print(Text(headline(replay), style="bold"))
    if outcome.halted:
        console.print(f"Stops early: {outcome.halted}.", markup=False)
    if replay.distribution is not None and outcome.landings:
        for line in chance_lines(replay.distribution):
            say(console, line)
    console.print()
    table = plain_table()
    label_column(table, "", [tier_label(tier) for tier in replay.compiled.problem.tiers])
    for name in ("today", "planned", "simulated"):
        table.add_column(name, justify="right", no_wrap=True)
    worths = (outcome.before.values, outcome.planned.values, outcome.actual.values)
    for tier, *values in zip(replay.compiled.problem.tiers, *worths, strict=True):
        if any(values):
            table.add_row(escape(tier_label(tier)), *(figure(tier.shown(value)) for value in values))
    console.print(table)
    if not outcome.actual.legal:
        console.print("The simulated result has constraint violations that today has not.")
    landings = outcome.landings if wide else sorted(outcome.landings, key=lambda landing: ORDER.index(landing.verdict))
    _landings(console, landings if wide else landings[:SHOWN], replay.distribution)
    if not wide and len(landings) > SHOWN:
        console.print(f"… and {len(landings) - SHOWN} more; -o wide shows all", style="dim")
    if outcome.waiting:
        console.print(f"\n{plural(len(outcome.waiting), 'pod')} unscheduled at the end:")
        for key, said in list(outcome.waiting.items())[: None if wide else SHOWN]:
            console.print(f"  {key}: {said}", markup=False)
    if outcome.preempted:
        console.print("\nPreempted by kube-scheduler:")
        for preempted in outcome.preempted[: None if wide else SHOWN]:
            console.print(f"  {preempted.key} on {preempted.node} by {preempted.preemptor}", markup=False)
    for note in replay.notes:
        console.print(f"note: {note}", markup=False, style="dim")


WORDS = {
    MoveVerdict.AS_GOOD: "elsewhere with a result as good",
    MoveVerdict.NEEDS_STEERING: "need steering",
    MoveVerdict.NOT_EVICTED: "not evicted",
    MoveVerdict.NOT_BEGUN: "not begun",
}
"""Results of the other moves, in words."""


def headline(replay: Replay) -> str:
    """Return one sentence about the result of the replay."""
    outcome = replay.outcome
    moves = len(outcome.landings)
    if not moves:
        return "The plan has no moves."
    counts = [f"{outcome.count(verdict)} {words}" for verdict, words in WORDS.items() if outcome.count(verdict)]
    hand = "Steered by the extender" if replay.steered else "Without steering"
    done = (
        f"{outcome.count(MoveVerdict.PLANNED)} of {plural(moves, 'pod')} {'lands' if moves == 1 else 'land'} as planned"
    )
    kept = [] if replay.kept is None else [f"{replay.kept:.0%} of the improvement is kept"]
    return f"{hand}: {'; '.join([', '.join([done, *counts]), *kept])}."


def chance_lines(found: Distribution) -> Iterator[str]:
    """Yield sentences about what may become of a plan."""
    kept = ""
    if found.mean is not None:
        low, high = found.quantile(LOW), found.quantile(HIGH)
        kept = f"; {found.mean:.0%} of the improvement is kept on average, {low:.0%} to {high:.0%} in nine of ten runs"
    counts = ", ".join(f"{found.count(certainty)} {certainty.value}" for certainty in Certainty)
    yield f"In {plural(found.runs, 'run')} with chance: {found.finished} come to their end{kept}."
    yield f"Landings: {counts}."
    if found.halts:
        why, number = found.halts[0]
        yield f"The most frequent end ({number} of {found.runs}): {why}."


def _landings(console: Console, landings: Sequence[Landing], found: Distribution | None) -> None:
    if not landings:
        return
    certainty = found.certainty if found is not None else {}
    console.print()
    rows = [
        (
            str(landing.wave),
            landing.move.pod.key,
            landing.move.source or "(pending)",
            landing.move.target or "(none)",
            landing.node or "(none)",
            landing.verdict.value,
            certainty[landing.move.id].value if landing.move.id in certainty else "-",
        )
        for landing in landings
    ]
    columns = ("WAVE", "POD", "FROM", "PLANNED", "LANDS ON", "VERDICT", "LANDING IS")
    show_names(console, columns, rows, right=("WAVE",))


def replay_rows(replay: Replay) -> Iterator[Row]:
    """Yield one row for every move."""
    yield ["wave", "id", "namespace", "name", "source", "target", "node", "verdict", "message", "certainty"]
    certainty = replay.distribution.certainty if replay.distribution is not None else {}
    for landing in replay.outcome.landings:
        move = landing.move
        yield [
            landing.wave,
            move.id,
            move.pod.namespace,
            move.pod.name,
            move.source or "",
            move.target or "",
            landing.node,
            landing.verdict.value,
            landing.message,
            certainty.get(move.id, ""),
        ]

"""Reports of ``explain`` for a pod: the answer, what would help, and the nodes one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from stowplan.explaining.conflict import BlockingRule, Conflict
from stowplan.explaining.node_results import NodeResult
from stowplan.explaining.placing import Difference
from stowplan.explaining.pod import PodExplanation
from stowplan.models.result import Status
from stowplan.models.words import plural
from stowplan.report.limits import SHOWN
from stowplan.report.rows import Row
from stowplan.report.tables import ARROW, plain_table, say, show_names
from stowplan.report.words import amount, change, figure, gap_lines, tier_label, violation_lines

MOST_TIES = 3
"""Further nodes of the same score that are named."""


def show_pod(console: Console, told: PodExplanation, *, wide: bool = False) -> None:
    """Print an explanation of a pod; if ``wide``, with every node."""
    for line in gap_lines(told.compiled.snapshot.gaps):
        say(console, line)
    say(console, pod_headline(told), style="bold")
    if told.message:
        say(console, told.message)
    if told.conflict is not None:
        _show_conflict(console, told, told.conflict)
    _show_relaxations(console, told)
    _show_single(console, told)
    _show_best(console, told)
    _show_admitting(console, told, wide)
    _show_refusing(console, [result for result in told.results if not result.admitted], wide)


def pod_headline(told: PodExplanation) -> str:
    """Say in one sentence where a pod is, where kube-scheduler takes it, and where the best placement has it."""
    where = f"is on {told.pod.node_name}" if told.pod.node_name else "is pending"
    if told.reason:
        where += f" ({told.reason})"
    parts = [f"{told.pod.key} {where}"]
    who = told.compiled.profile.release.who
    if told.greedy is None:
        parts.append(f"{who} finds no node for it")
    else:
        more = len(told.tied) - MOST_TIES
        ties = ", ".join(told.tied[:MOST_TIES]) + (f", and {more} more" if more > 0 else "")
        parts.append(f"{who} takes {told.greedy}" + (f" (or, at the same score, {ties})" if ties else ""))
    if told.solution is not None:
        proven = "optimal" if told.solution.status is Status.OPTIMAL else "best found"
        parts.append(f"the {proven} placement has it on {told.placed}" if told.placed else _nowhere(told))
    return "; ".join(parts) + "."


def _nowhere(told: PodExplanation) -> str:
    proven = told.solution is not None and told.solution.status is Status.OPTIMAL
    return f"the {'optimal' if proven else 'best found'} placement has no node for it either"


def _show_conflict(console: Console, told: PodExplanation, conflict: Conflict) -> None:
    what = "filters" if conflict.by_filters else "rules"
    nodes, count = len(told.compiled.problem.nodes), len(conflict.rules)
    console.print()
    if count == 1:
        say(console, f"One of the {what} keeps it off every node:")
    elif not conflict.minimal:
        say(console, f"{count} {what} keep it off every node; {_ended(told)}, so perhaps not all are needed:")
    else:
        say(console, f"{count} {what} in conflict; without any one of them, the others leave it a node:")
    for rule in conflict.rules:
        blocked = int(rule.blocks.sum())
        line = f"  {rule.origin}: keeps it off {blocked:,} of {plural(nodes, 'node')}"
        if count > 1:
            line += f", {len(conflict.alone(rule)):,} of them alone"
        say(console, line + _why(rule))


def _why(rule: BlockingRule) -> str:
    if rule.asked is not None and rule.left is not None:
        what = rule.origin.what
        return f"; asks for {amount(what, rule.asked)}, the most that is left is {amount(what, rule.left)}"
    return f"; maxSkew {rule.max_skew}" if rule.max_skew is not None else ""


def _show_relaxations(console: Console, told: PodExplanation) -> None:
    if told.relaxations:
        console.print()
        say(console, "Each of these admits it, as checked by the filters on the changed cluster:")
        for one in told.relaxations:
            perhaps = "" if one.minimal else " (perhaps not all of it is needed)"
            say(console, f"  {', and '.join(one.changes)} {ARROW} {one.node}{perhaps}")
            if one.victims:
                shown = ", ".join(one.victims[:SHOWN])
                more = len(one.victims) - SHOWN
                say(console, f"    evicted: {shown}" + (f", and {more} more" if more > 0 else ""))
    elif told.message and not told.pod.node_name:
        console.print()
        say(console, "Nothing that was tried admits it.")
        if told.refusing:
            say(console, "Without every rule that can be dropped, and on a node with room, it is still refused by")
            for one_of_them in told.refusing[:SHOWN]:
                say(console, f"  {one_of_them}")
    if told.untried:
        say(console, f"Not tried to the end ({_ended(told)}): {', '.join(told.untried)}.")


def _ended(told: PodExplanation) -> str:
    return "interrupted" if told.interrupted else "the time limit was over"


def _show_single(console: Console, told: PodExplanation) -> None:
    single = told.single
    if single is None:
        return
    console.print()
    verb = "Move" if told.pod.node_name else "Schedule"
    checked = "better than today" if single.better else "no better than today"
    if not single.differences:
        checked = "changes no objective"
    limited = f"; best of the first {single.tried:,} of {single.admitting:,}" if single.tried < single.admitting else ""
    say(console, f"{verb} it alone: {ARROW} {single.node}, {checked}{limited}.")
    _show_differences(console, single.differences)


def _show_best(console: Console, told: PodExplanation) -> None:
    if told.placed is None:
        return
    others = plural(told.moves_of_others, "move")
    if told.instead is None:
        if not told.pod.node_name or told.placed == told.pod.node_name:
            console.print()
            say(console, f"The best placement, with {others} of others, has it on {told.placed} too.")
        return
    console.print()
    say(console, f"The best placement, with {others} of others: why {told.placed} and not {told.instead.node}?")
    if told.instead.broken:
        say(console, f"  On {told.instead.node}, it would break:")
        for line in violation_lines(told.instead.broken):
            say(console, f"    {line}")
    _show_differences(console, told.instead.differences)


def _show_differences(console: Console, found: Sequence[Difference]) -> None:
    for one in found:
        tier = one.tier
        say(console, f"  {change(tier_label(tier), tier.shown(one.before), tier.shown(one.after))}")
        parts = ", ".join(f"{part.name} {_signed(tier.shown_difference(part.change))}" for part in one.parts)
        if len(one.parts) > 1:
            say(console, f"    {parts}")


def _signed(value: float) -> str:
    return f"+{figure(value)}" if value > 0 else f"−{figure(-value)}"


def _show_admitting(console: Console, told: PodExplanation, wide: bool) -> None:
    admitting = sorted((v for v in told.results if v.admitted), key=lambda v: (-(v.total or 0), v.node))
    if not admitting:
        return
    shown = admitting if wide else admitting[:SHOWN]
    plugins = list(told.weights)
    short = _initials(plugins)
    console.print()
    table = plain_table(tight=True)
    table.add_column("node", no_wrap=True)
    for title in ("score", *(short[plugin] for plugin in plugins)):
        table.add_column(escape(title), justify="right", no_wrap=True)
    for result in shown:
        cells = [figure((result.scores or {}).get(plugin, 0)) for plugin in plugins]
        table.add_row(escape(_marked(told, result.node)), figure(result.total or 0), *cells)
    console.print(table)
    _more(console, len(admitting) - len(shown), "node admits it", "nodes admit it")
    if plugins:
        say(console, ", ".join(f"{short[plugin]} {plugin} ×{told.weights[plugin]}" for plugin in plugins), style="dim")


def _marked(told: PodExplanation, node: str) -> str:
    """Return a node's name with a star if the pod is on it."""
    return f"{node} *" if node == told.pod.node_name else node


def _initials(names: Sequence[str]) -> dict[str, str]:
    """Return a short title for each plugin: its capitals, numbered where two plugins share them."""
    found: dict[str, str] = {}
    for name in names:
        initials = "".join(letter for letter in name if letter.isupper()) or name
        same = sum(1 for short in found.values() if short.rstrip("0123456789") == initials)
        found[name] = f"{initials}{same + 1}" if same else initials
    return found


def _show_refusing(console: Console, refusing: Sequence[NodeResult], wide: bool) -> None:
    if not refusing:
        return
    shown = refusing if wide else refusing[:SHOWN]
    console.print()
    rows = [(result.node, result.plugin, ", ".join(result.reasons)) for result in shown]
    show_names(console, ("node", "first filter that refuses it", "reason"), rows)
    _more(console, len(refusing) - len(shown), "node refuses it", "nodes refuse it")


def _more(console: Console, number: int, verb: str, verbs: str) -> None:
    if number > 0:
        say(console, f"… {plural(number, f'more {verb}', f'more {verbs}')}; -o wide shows all", style="dim")


def pod_rows(told: PodExplanation) -> Iterator[Row]:
    """Yield one row for each node, with one column for each score plugin."""
    plugins = list(told.weights)
    yield ["node", "plugin", "reason", "score", *plugins]
    for result in told.results:
        scores = result.scores or {}
        total = "" if result.total is None else result.total
        cells = [scores.get(plugin, "") for plugin in plugins]
        yield [result.node, result.plugin, ", ".join(result.reasons), total, *cells]

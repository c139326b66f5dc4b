"""Decides recorded scheduler decisions again with our framework, and counts differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stowplan.instances.traces import TraceWriter, read_traces
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.stop import Stop
from stowplan.models.trace import Expectation, Trace
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.parity.differences import PREEMPTION, Difference, differences
from stowplan.plugins_compat.parity.record import make_case
from stowplan.plugins_compat.parity.replay import recorded_profile, replay
from stowplan.plugins_compat.profiles import led_by, read_configuration


@dataclass(slots=True)
class FileCounts:
    """Counts of a file: cases, decisions, and decisions that differ."""

    file: str
    cases: int = 0
    pods: int = 0
    different: int = 0


@dataclass(slots=True)
class PluginCounts:
    """Counts of a plugin: recorded refusals (or nominations) and scores, and the number of differences."""

    plugin: str
    refusals: int = 0
    scores: int = 0
    different: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference with the file and case that it was found in."""

    source: str
    case: str
    pod: str
    difference: Difference


@dataclass(slots=True)
class Validation:
    """Result of validating traces.

    Parameters
    ----------
    files, plugins
        Counts by file, and by name of plugin.
    findings
        The first differences.
    total
        Number of all differences.
    complete
        Whether every case was decided; ``False`` after an interruption.
    """

    files: list[FileCounts] = field(default_factory=list)
    plugins: dict[str, PluginCounts] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    total: int = 0
    complete: bool = True

    @property
    def holds(self) -> bool:
        """Whether every decision equals the recorded one."""
        return self.total == 0

    @property
    def pods(self) -> int:
        """Number of decisions that were compared."""
        return sum(counts.pods for counts in self.files)

    def plugin(self, name: str) -> PluginCounts:
        """Return the counts of a plugin."""
        return self.plugins.setdefault(name, PluginCounts(name))


def validate(
    files: Sequence[Path],
    *,
    profile: Profile | None = None,
    config: dict[str, Any] | None = None,
    record: TraceWriter | None = None,
    keep: int = 20,
    stop: Stop | None = None,
    progress: Callable[[FileCounts], None] = lambda counts: None,
) -> Validation:
    """Decide every recorded case again and compare.

    Parameters
    ----------
    profile
        Profile to use instead of the recorded one.
    config
        The parsed configuration that ``profile`` was read from, if any; written to ``record``.
    record
        Also write our decisions.
    keep
        Maximum number of differences to describe.

    Raises
    ------
    InputError
        With the line that cannot be used.
    """
    stop = stop or Stop()
    validation = Validation()
    for file in files:
        counts = FileCounts(str(file))
        validation.files.append(counts)
        for trace in read_traces(file):
            if stop.is_set():
                validation.complete = False
                return validation
            _run(trace, profile, validation, counts, keep)
            if record is not None:
                _record(trace, profile, config, record)
        progress(counts)
    return validation


def _run(
    trace: Trace,
    profile: Profile | None,
    validation: Validation,
    counts: FileCounts,
    keep: int,
) -> None:
    used = profile or recorded_profile(trace)
    counts.cases += 1
    for recorded, ours in zip(trace.expect, replay(trace.case, used, trace.expect), strict=True):
        counts.pods += 1
        _count(recorded, validation)
        found = list(differences(recorded, ours))
        counts.different += bool(found)
        validation.total += len(found)
        for difference in found:
            if difference.plugin:
                validation.plugin(difference.plugin).different += 1
            if len(validation.findings) < keep:
                validation.findings.append(Finding(trace.source, trace.case.id, recorded.pod, difference))


def _record(trace: Trace, profile: Profile | None, config: dict[str, Any] | None, record: TraceWriter) -> None:
    """Write our decisions with the configuration, so that validating them again finds no difference."""
    used = profile or recorded_profile(trace)
    case = trace.case if profile is None else replace(trace.case, config=config)
    record.write(used.release.name, case, replay(case, used))


def _count(recorded: Expectation, validation: Validation) -> None:
    refusals = [recorded.pre_filter] if recorded.pre_filter else list((recorded.filter or {}).values())
    for refusal in refusals:
        validation.plugin(refusal.plugin).refusals += 1
    if recorded.nominated:
        validation.plugin(PREEMPTION).refusals += 1
    for plugin, scores in (recorded.scores or {}).items():
        validation.plugin(plugin).scores += len(scores)


def record_simulation(
    file: str,
    compiled: Compiled,
    profile: Profile,
    queue: Sequence[Pod],
    node_of: Mapping[str, str],
    config: str | None,
) -> None:
    """Write the decisions about the pods of a queue as a trace of one case.

    Parameters
    ----------
    profile
        Breaks ties by the first node, as records do.
    config
        Path of the configuration that the profile was read from, if any.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if compiled.snapshot.metrics is not None:
        raise InputError("decisions by measured load cannot be recorded", field="--record")
    content = led_by(read_configuration(config), profile.scheduler_name) if config is not None else None
    case = make_case(Path(file).name, compiled.snapshot, profile, queue, node_of, content)
    writer = TraceWriter(Path(file))
    writer.write(profile.release.name, case, replay(case, profile))
    writer.close()

"""Shell scripts: the plan as lines that call functions, after the functions themselves."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from importlib.resources import files

from stowplan.emitters.emission import File
from stowplan.emitters.words import expiry, one_line
from stowplan.models.plan import MoveDocument, Plan, WaveDocument
from stowplan.models.words import plural

NONE = "-"


def script(plan: Plan, libraries: Sequence[str], lines: Iterable[str], **variables: str) -> File:
    """Return an executable script.

    Parameters
    ----------
    libraries
        Files in ``shell/`` that the script begins with, without their suffix; the last one gives it its name.
    lines
        What comes after them.
    variables
        Shell variables of that name, beside those that all scripts have.
    """
    name = f"{plan.id}-{libraries[-1]}.sh"
    known = {
        "PLAN": plan.id,
        "CREATED": plan.created_at,
        "EXPIRES": expiry(plan),
        "NAMED": " ".join(_named(plan)),
        **variables,
    }
    does = f"{plural(len(plan.moves), 'move')} in {plural(len(plan.waves), 'wave')}"
    head = [
        "#!/bin/sh",
        f"# Plan {plan.id}: {does}. Made by stowplan; see {name} --help.",
        "# shellcheck disable=SC2016,SC2034 # a reason may hold any sign; a library is here as a whole",
        "set -eu",
        "",
        *(f"{key}={shlex.quote(value)}" for key, value in known.items()),
        f'STATE=${{STOWPLAN_STATE:-$(dirname -- "$0")/{plan.id}-{libraries[-1]}.state}}',
        "",
    ]
    return File(name, "\n".join([*head, *map(_library, libraries), *lines]), executable=True)


def _named(plan: Plan) -> list[str]:
    """Return the uids of pods that have moves of their own, where other moves have to find theirs."""
    owners = {move.owner.uid for move in plan.moves if move.follows is not None and move.owner is not None}
    return [m.pod.uid for m in plan.moves if m.follows is None and m.owner is not None and m.owner.uid in owners]


def _library(name: str) -> str:
    return (files("stowplan.emitters") / "shell" / f"{name}.sh").read_text(encoding="utf-8")


def plan_lines(plan: Plan) -> list[str]:
    """Return the lines that carry a plan out."""
    closed = [shlex.join(["closed", *plan.cordon]), ""] if plan.cordon else []
    return [*closed, *(line for wave in plan.waves for line in _wave(wave))]


def _wave(wave: WaveDocument) -> list[str]:
    barrier = wave.barrier
    waits = " ".join("yes" if wanted else "no" for wanted in (barrier.gone, barrier.ready))
    begin = [f"wave {wave.number} {barrier.timeout_seconds}"]
    if wave.cordon:
        begin.append(shlex.join(["cordon", *wave.cordon]))
    return [*begin, *map(_move, wave.moves), f"carry_out {waits}", ""]


def _move(move: MoveDocument) -> str:
    words = [
        move.id,
        move.kind,
        move.pod.namespace,
        move.pod.name,
        move.pod.uid,
        move.source or NONE,
        move.target or NONE,
        move.owner.uid if move.owner and move.owner.uid else NONE,
        move.template_hash,
        "yes" if move.same_name else "no",
        move.follows or NONE,
        one_line(move.why).replace("|", "/"),
    ]
    return " ".join(["move", *map(shlex.quote, words)])

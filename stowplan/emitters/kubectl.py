"""A shell script that carries a plan out with kubectl and nothing else."""

from __future__ import annotations

import shlex
from importlib.resources import files

from models.plan import MoveDocument, Plan, WaveDocument
from stowplan.emitters.emission import Choices, Emission, File
from stowplan.emitters.words import expiry, one_line, require_plain, require_uids

NONE = "-"


def emit_kubectl(plan: Plan, choices: Choices) -> Emission:
    """Return the script.

    It posts Evictions with the uid as a precondition, one wave after the other. Parked pods are found when their turn
    comes: they are those of the same owner and template on the node that they were parked on.

    Raises
    ------
    InputError
        If a pod has no uid, or a name is none.
    """
    require_plain(plan)
    require_uids(plan)
    script = "\n".join([*_head(plan), library("pods"), library("kubectl"), *map(_wave, plan.waves)])
    note = "replacements go where the scheduler puts them; run stowplan serve beside it, or pin them (emit --to pin)"
    return Emission([File(f"{plan.id}.sh", script, executable=True)], [note] if plan.moves else [])


def library(name: str) -> str:
    """Return the shell functions of a file."""
    return (files("stowplan.emitters") / "shell" / f"{name}.sh").read_text(encoding="utf-8")


def assigned(**values: str) -> list[str]:
    """Return lines that set shell variables."""
    return [f"{name}={shlex.quote(value)}" for name, value in values.items()]


def _head(plan: Plan) -> list[str]:
    moves = f"{len(plan.moves)} moves in {len(plan.waves)} waves"
    return [
        "#!/bin/sh",
        f"# Plan {plan.id}: {moves}. Made by stowplan; {plan.id}.sh --help says how it is run.",
        "# shellcheck disable=SC2016 # a reason may hold any sign",
        "set -eu",
        "",
        *assigned(PLAN=plan.id, EXPIRES=expiry(plan)),
        f"STATE=${{STATE:-./{plan.id}.state}}",
        "",
    ]


def _wave(wave: WaveDocument) -> str:
    barrier = wave.barrier
    yes_or_no = " ".join("yes" if wanted else "no" for wanted in (barrier.gone, barrier.ready))
    lines = [f"wave {wave.number} {barrier.timeout_seconds}", *map(_move, wave.moves), f"carry_out {yes_or_no}", ""]
    return "\n".join(lines)


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

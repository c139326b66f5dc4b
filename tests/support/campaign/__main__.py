"""Carries out a campaign."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.support.campaign.alone import carried_out_alone, carried_out_of_dump
from tests.support.campaign.dumps import dumps_of_data
from tests.support.campaign.outcomes import Outcome
from tests.support.campaign.report import told_of
from tests.support.campaign.steered import carried_out_steered

CAMPAIGNS = {"none": carried_out_alone, "extender": carried_out_steered}


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry plans out; exit 1 if one ended worse than it began, or a pod was deleted that should not have been."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.campaign")
    parser.add_argument("steer", choices=sorted(CAMPAIGNS))
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first plan")
    parser.add_argument("--real", action="store_true", help="of the dumps in the folder that STOWPLAN_DATA names")
    parser.add_argument("--dump", type=Path, action="append", default=[], help="of this dump; may be repeated")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further plan after so long")
    given = parser.parse_args(arguments)
    dumps = [*given.dump, *(dumps_of_data() if given.real else ())]
    if dumps and given.steer != "none":
        parser.error("dumps are for none")
    outcomes: list[Outcome] = []
    seed, began = given.seed, time.monotonic()
    while len(outcomes) < given.plans and time.monotonic() - began < 60 * given.minutes:
        carry_out: Callable[[int, Path], Outcome | None] = CAMPAIGNS[given.steer]
        about = f"seed {seed}"
        if dumps:
            dump = dumps[seed % len(dumps)]
            carry_out, about = partial(carried_out_of_dump, dump=dump), f"{about} of {dump.name}"
        with tempfile.TemporaryDirectory() as folder:
            found = carry_out(seed, Path(folder))
        if found is not None:
            outcomes.append(found)
            if found.stopped or found.worse or found.twice or found.broken or found.hopeless:
                print(f"{about}: {found}", flush=True)
        seed += 1
    print("\n".join(told_of(outcomes)))
    print(f"seeds {given.seed} to {seed - 1}, {time.monotonic() - began:.0f} s")
    return 1 if any(found.worse or found.twice or found.broken for found in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())

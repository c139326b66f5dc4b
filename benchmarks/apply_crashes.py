"""How a run of ``apply`` survives being killed.

``python -m benchmarks.apply_crashes [--campaigns 50] [--seed 1000]``: each campaign carries a random plan out in a
random cluster behind the API server of the tests, with the real kubectl. The run is killed with SIGKILL one to three
times: at a random time, when a pod is looked at, when an eviction arrives, or when it has been carried out and is not
answered yet; a request that is ``late`` is carried out up to 1.2 s after its sender was killed. Then it is started
until it ends by itself. A campaign fails if a pod was evicted twice or lost, the journal cannot be read, or the end is
not as planned.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.support.crashing import Crash, crash
from tests.support.kubectl import missing_kubectl


def main() -> int:
    """Run the campaigns; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apply_crashes")
    parser.add_argument("--campaigns", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1000, help="of the first campaign")
    chosen = parser.parse_args()
    if reason := missing_kubectl():
        print(reason)
        return 1
    found: list[Crash] = []
    failed: list[int] = []
    began = time.monotonic()
    for seed in range(chosen.seed, chosen.seed + chosen.campaigns):
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = crash(Path(folder), seed)
            except AssertionError as error:
                print(f"seed {seed}: {error}", flush=True)
                failed.append(seed)
                continue
        found.append(result)
        told = f"{result.moves} moves, killed {', '.join(result.kills)}, {result.runs} runs"
        print(f"seed {seed}: {told}, {result.repeated} repeated requests", flush=True)
    kills = [kill for crash_ in found for kill in crash_.kills]
    ways = Counter(kill.split()[1] if kill.startswith("at ") else "time" for kill in kills)
    print(
        f"{len(found)} of {chosen.campaigns} campaigns ended as planned, {len(failed)} failed; "
        f"{sum(crash_.moves for crash_ in found)} moves, {len(kills)} kills ({dict(ways)}), "
        f"{sum(crash_.runs for crash_ in found)} runs, {sum(crash_.repeated for crash_ in found)} repeated requests; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

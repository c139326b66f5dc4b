"""Runs of ``apply`` that are killed at random moments and started again, and what came of them."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from stowplan.applying.journal import read_journal
from stowplan.models.plan import MoveDocument, Plan
from tests.support.api_server import Pace, Request
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, budget, deployment, namespace, node, stateful_set
from tests.support.applying import Scene, scene
from tests.support.moving import Moving
from tests.support.plans import plan

MOST_RUNS = 12


@dataclass(frozen=True, slots=True)
class Crash:
    """One campaign: how often it was killed and where, how many requests hit a pod that was leaving already."""

    seed: int
    kills: tuple[str, ...]
    runs: int
    moves: int
    repeated: int


def random_manifests(rng: random.Random) -> list[Object]:
    """Return a random cluster with room to spare: the order of things is at stake here, not their size."""
    nodes = [f"n{i}" for i in range(rng.randint(3, 5))]
    found = [namespace("kube-system"), *(node(name, cpu="32", memory="64Gi") for name in nodes)]
    for i in range(rng.randint(1, 2)):
        replicas = rng.randint(2, 4)
        found += deployment("shop", f"web{i}", [rng.choice(nodes) for _ in range(replicas)])
        found.append(budget("shop", f"web{i}", f"web{i}", maxUnavailable=rng.randint(1, 2)))
    found += stateful_set("shop", "db", [rng.choice(nodes) for _ in range(rng.randint(1, 2))], policy="Parallel")
    return [*found, bare_pod("shop", "new", None)]


def random_plan(rng: random.Random, manifests: list[Object]) -> Plan:
    """Return a plan for it: every second pod moves, some twice, in up to three waves."""
    made = Moving(manifests)
    nodes = [m["metadata"]["name"] for m in manifests if m["kind"] == "Node"]
    waves: list[list[MoveDocument]] = [[], [], []]
    for key, pod in sorted(made.pods.items()):
        at = pod["spec"].get("nodeName")
        if at is not None and rng.random() < 0.4:
            continue
        number = rng.randrange(3)
        target = rng.choice([name for name in nodes if name != at])
        move = made.move(key, target)
        waves[number].append(move)
        if at is not None and number < 2 and rng.random() < 0.3:
            onward = rng.choice([name for name in nodes if name != target])
            waves[number + 1].append(made.move(key, onward, source=target, follows=move.id))
    return plan(*(wave for wave in waves if wave))


def crash(home: Path, seed: int, most: int = 3) -> Crash:
    """Kill a run up to ``most`` times, each time at another moment, then let it come to its end, and judge.

    Raises
    ------
    AssertionError
        If a pod was evicted twice or lost, the journal cannot be read, or the end is not as planned.
    """
    rng = random.Random(seed)
    manifests = random_manifests(rng)
    pace = Pace(grace=rng.uniform(0.02, 0.3), schedule=0.02, ready=rng.uniform(0.02, 0.3))
    home.mkdir(parents=True, exist_ok=True)
    with scene(home, manifests, lambda objects: random_plan(rng, objects), pace=pace) as stage:
        kills = [_run_and_kill(stage, rng) for _ in range(rng.randint(1, most))]
        runs = len(kills)
        while True:
            runs += 1
            done = stage.command(*_arguments())
            assert read_journal(stage.journal), "the journal is empty"
            if done.returncode == 0:
                break
            assert runs < MOST_RUNS, done.stdout + done.stderr
        stage.server.cluster.settle()
        evaluator(stage)
        repeated = sum(count - 1 for count in stage.accepted().values())
        return Crash(seed, tuple(kills), runs, len(stage.plan.moves), repeated)


def evaluator(stage: Scene) -> None:
    """Check that each pod was evicted once, none was lost, and all stand where they should.

    A request whose sender was killed can arrive after the next run has looked at the pod, and sent its own. Both name
    the uid, so the second one finds the same pod leaving already, and changes nothing.
    """
    evicted = [move for move in stage.plan.moves if move.kind != "place"]
    gone = stage.terminated()
    assert len(gone) == len(set(gone)), f"a pod was deleted twice: {gone}"
    assert len(gone) == len(evicted), f"{len(gone)} pods left, {len(evicted)} were to"
    planned = {move.pod.uid for move in evicted if move.follows is None}
    assert planned <= set(gone), "a pod was left out"
    assert stage.standing() == stage.wanted(), "pods do not stand as planned"


def _arguments() -> tuple[str, ...]:
    return "apply", "plan.json", "--yes", "--unsteered", "-q", "--poll", "0.1", "--timeout", "60"


def _run_and_kill(stage: Scene, rng: random.Random) -> str:
    """Run, kill at a random moment, and say when; it may have come to its end before."""
    process = stage.start(*_arguments())

    late = rng.uniform(0.3, 1.2)

    def kill(request: Request) -> None:
        process.kill()
        if way == "late":
            time.sleep(late)

    way = rng.choice(["time", "request", "late", "answer", "look"])
    if way == "time":
        seen, seconds = len(stage.server.requests), rng.uniform(0.0, 1.5)
        while process.poll() is None and len(stage.server.requests) == seen:
            time.sleep(0.005)
        time.sleep(seconds)
        process.kill()
        said = f"after {seconds:.2f} s"
    else:
        wish, after = "get" if way == "look" else "evict", way == "answer"
        skip = rng.randrange(3)
        stage.server.faults.on(wish, kill, matching="/pods/", skip=skip, after=after)
        said = f"at {way} {skip + 1}"
    try:
        process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    stage.server.faults.clear()
    return said

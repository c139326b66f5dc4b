"""How fast the scheduler extender answers, and whether every answer is right.

``python -m benchmarks.serving [--seconds 60] [--clients 32] [--nodes 100] [--mode prioritize] [--rate 0] [--silent 0]
[--slow 0]``: the server in a process of its own, on loopback, with its journal in a temporary folder; clients in
another process, each of which asks as a scheduler would: filter and then prioritize, again and again, for replacements
of the plan's owners, for pods asked about before, and for pods that nothing is known of. Beside them, silent clients
connect and say nothing, and slow ones send a byte of a question every tenth of a second; both connect again when they
are turned out. With a rate, the clients together ask about so many pods a second, and otherwise without a pause.
Printed are questions a second, percentiles of the time from sending the first byte to having the last, the server's
memory, and the number of wrong answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stowplan.models.objective import PRESETS
from stowplan.models.plan import (
    MoveDocument,
    OwnerDocument,
    Plan,
    PlanSnapshot,
    PodReference,
    TokenDocument,
    WaveDocument,
)
from stowplan.models.settings import SettingsDocument

PER_TOKEN, TOKENS_PER_OWNER = 5, 4
LABEL = "pod-template-hash"


def make_plan(owners: int, nodes: Sequence[str], rng: random.Random) -> Plan:
    """Make a plan of one wave with so many owners, each with tokens for several nodes."""
    tokens = []
    for i in range(owners):
        for target in rng.sample(list(nodes), TOKENS_PER_OWNER):
            tokens.append(
                TokenDocument(
                    wave=1, namespace="shop", owner_uid=f"owner-{i}", template_hash="h", target=target, count=PER_TOKEN
                )
            )
    move = MoveDocument(
        id="m0001",
        kind="evict",
        pod=PodReference(namespace="shop", name="web-1", uid="u"),
        source=nodes[0],
        target=nodes[1],
        owner=OwnerDocument(kind="ReplicaSet", name="web", uid="owner-0"),
        requests={},
    )
    return Plan(
        id="benchmark",
        created_at="2026-01-01T00:00:00Z",
        expires_at="2126-01-01T00:00:00Z",
        snapshot=PlanSnapshot(fingerprint="", nodes=len(nodes), pods=0),
        settings=SettingsDocument(objective=PRESETS["balance"], release="1.36", scheduler="default-scheduler"),
        executor="eviction-api",
        status="OPTIMAL",
        tiers=(),
        waves=(WaveDocument(number=1, moves=(move,), peak={}),),
        least_waves=1,
        tokens=tuple(tokens),
        immovable=(),
    )


@dataclass
class Observed:
    """What the clients saw.

    Parameters
    ----------
    seconds
        Of each question.
    held
        Target by uid of a pod.
    megabytes
        The most memory that the server had.
    again
        How often silent and slow clients were turned out and connected again.
    """

    seconds: list[float] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    owner_of: dict[str, str] = field(default_factory=dict)
    megabytes: float = 0.0
    again: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    def percentile(self, share: float) -> float:
        """Return the time in milliseconds that such a share of the answers did not take longer than."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Client:
    """One scheduler, on one connection."""

    def __init__(self, port: int, plan: Plan, nodes: Sequence[str], mode: str, observed: Observed, seed: int) -> None:
        self.port, self.nodes, self.mode, self.observed = port, nodes, mode, observed
        self.rng = random.Random(seed)
        self.owners = sorted({token.owner_uid for token in plan.tokens})
        self.targets: dict[str, set[str]] = {}
        for token in plan.tokens:
            self.targets.setdefault(token.owner_uid, set()).add(token.target)
        self.seed, self.made, self.known = seed, 0, []

    async def run(self, until: float, pause: float) -> None:
        """Ask until it is time, about a pod every ``pause`` seconds."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while (begun := time.perf_counter()) < until:
            pod, owner = self._pod()
            body = json.dumps({"Pod": pod, "NodeNames": self.nodes}).encode()
            try:
                passed = await self._ask(reader, writer, "filter", body)
                scored = await self._ask(reader, writer, "prioritize", body)
            except (OSError, asyncio.IncompleteReadError):
                self.observed.wrong["a connection ended instead of an answer"] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                continue
            self._check(pod["metadata"]["uid"], owner, passed["NodeNames"], scored)
            if pause:  # not all at the same moments
                await asyncio.sleep(max(0.0, begun + 2 * pause * self.rng.random() - time.perf_counter()))
        writer.close()

    def _pod(self) -> tuple[dict[str, Any], str]:
        """Return a pod: one asked about before, one without owner in the plan, or a new replacement."""
        if self.known and self.rng.random() < 0.5:
            uid, owner = self.rng.choice(self.known)
        else:
            owner = self.rng.choice(self.owners) if self.rng.random() < 0.8 else "unknown-owner"
            uid = f"pod-{self.seed}-{self.made}"
            self.made += 1
            self.known.append((uid, owner))
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": owner, "controller": True}
        metadata = {
            "name": uid,
            "namespace": "shop",
            "uid": uid,
            "labels": {LABEL: "h", "app": "web"},
            "ownerReferences": [reference],
        }
        container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
        spec = {"containers": [container], "schedulerName": "default-scheduler"}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}, owner

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, verb: str, body: bytes
    ) -> dict[str, Any]:
        begun = time.perf_counter()
        writer.write(
            b"POST /v1/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (verb.encode(), len(body))
        )
        writer.write(body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        answer = await reader.readexactly(length)
        self.observed.seconds.append(time.perf_counter() - begun)
        if not head.startswith(b"HTTP/1.1 200"):
            self.observed.wrong[head.split(b"\r\n")[0].decode()] += 1
        content: dict[str, Any] = json.loads(answer)
        return content

    def _check(self, uid: str, owner: str, passed: list[str], scored: Any) -> None:
        wrong = self.observed.wrong
        best = [entry["Host"] for entry in scored if entry["Score"]]
        if [entry["Host"] for entry in scored] != list(self.nodes):
            wrong["not every node is scored"] += 1
        expected = best if self.mode == "filter" and best else list(self.nodes)
        if passed != expected:
            wrong["filter and prioritize disagree"] += 1
        target = best[0] if best else ""
        if len(best) > 1 or (target and target not in self.targets.get(owner, ())):
            wrong["a node that no token of the owner names"] += 1
        if self.observed.held.setdefault(uid, target) != target:
            wrong["another answer about the same pod"] += 1
        self.observed.owner_of[uid] = owner


@dataclass(frozen=True, slots=True)
class Load:
    """Who asks, and who is in the way.

    Parameters
    ----------
    clients
        How many ask.
    rate
        Pods a second that they ask about together; without a pause if 0.
    silent, slow
        How many say nothing, and how many a byte every tenth of a second.
    """

    clients: int
    rate: float = 0.0
    silent: int = 0
    slow: int = 0


async def hinder(port: int, observed: Observed, *, slow: bool) -> None:
    """Connect and say nothing, or very little at a time; again whenever the server ends the connection."""
    head = b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                ended = asyncio.create_task(reader.read())
                if slow:
                    writer.write(head)
                while not ended.done():
                    if slow:
                        writer.write(b" ")
                    await asyncio.wait([ended], timeout=0.1 if slow else None)
            finally:
                ended.cancel()
                writer.transport.abort()
        observed.again += 1
        await asyncio.sleep(0.5)


async def drive(port: int, plan: Plan, nodes: Sequence[str], mode: str, load: Load, seconds: float) -> Observed:
    """Let clients ask for some time, and check all answers together."""
    observed = Observed()
    kinds = [False] * load.silent + [True] * load.slow
    hindering = [asyncio.create_task(hinder(port, observed, slow=slow)) for slow in kinds]
    if hindering:
        await asyncio.sleep(2.0)  # all are there before the first question
    until = time.perf_counter() + seconds
    pause = load.clients / load.rate if load.rate else 0.0
    clients = (Client(port, plan, nodes, mode, observed, seed) for seed in range(load.clients))
    await asyncio.gather(*(client.run(until, pause) for client in clients))
    for task in hindering:
        task.cancel()
    await asyncio.gather(*hindering, return_exceptions=True)
    given = Counter((observed.owner_of[uid], target) for uid, target in observed.held.items() if target)
    tokens = Counter({(token.owner_uid, token.target): token.count for token in plan.tokens})
    for key in given:
        if given[key] > tokens[key]:
            observed.wrong["a token handed out too often"] += 1
    asked = Counter(observed.owner_of.values())
    for owner in {token.owner_uid for token in plan.tokens}:
        total = sum(count for (of, _), count in tokens.items() if of == owner)
        if sum(count for (of, _), count in given.items() if of == owner) != min(total, asked[owner]):
            observed.wrong["a token held back"] += 1
    return observed


async def measure(load: Load, seconds: float, nodes: int, mode: str, owners: int = 2000) -> Observed:
    """Serve a plan in a process of its own, and drive it."""
    names = [f"node-{i:04d}" for i in range(nodes)]
    plan = make_plan(owners, names, random.Random(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(plan.model_dump_json(by_alias=True))
        command = "from stowplan.cli import main; main()"
        arguments = ["serve", str(path), "--bind", "127.0.0.1:0", "--mode", mode, "--state", f"{folder}/leases"]
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-c", command, *arguments, stderr=asyncio.subprocess.PIPE, cwd=os.getcwd()
        )
        assert server.stderr is not None
        port = 0
        while line := (await server.stderr.readline()).decode():
            if " serving http" in line:
                port = int(line.rpartition(":")[2].partition("/")[0])
                break
        if not port:
            raise SystemExit("the server did not start")
        try:
            observed = await drive(port, plan, names, mode, load, seconds)
            status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
            observed.megabytes = int(status.split("VmHWM:")[1].split()[0]) / 1024
            return observed
        finally:
            server.send_signal(signal.SIGTERM)
            await server.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--silent", type=int, default=0)
    parser.add_argument("--slow", type=int, default=0)
    parser.add_argument("--mode", choices=["prioritize", "filter"], default="prioritize")
    chosen = parser.parse_args()
    load = Load(chosen.clients, chosen.rate, chosen.silent, chosen.slow)
    observed = asyncio.run(measure(load, chosen.seconds, chosen.nodes, chosen.mode))
    number = len(observed.seconds)
    print(f"{number:,} questions of {chosen.clients} clients in {chosen.seconds:g} s: {number / chosen.seconds:,.0f}/s")
    shown = ", ".join(f"p{100 * share:g} {observed.percentile(share):.1f} ms" for share in (0.5, 0.9, 0.99, 0.999))
    print(f"{shown}; the longest {1000 * max(observed.seconds):.1f} ms")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{1e6 * (spent.ru_utime + spent.ru_stime) / number:.0f} µs of processor time a question in the server")
    print(f"{observed.megabytes:.0f} MB; silent and slow clients were turned out {observed.again:,} times")
    print(f"{sum(1 for target in observed.held.values() if target):,} tokens handed out")
    for what, count in observed.wrong.items():
        print(f"WRONG: {what}: {count}")
    print(f"wrong answers: {sum(observed.wrong.values())}")
    sys.exit(bool(observed.wrong))


if __name__ == "__main__":
    main()

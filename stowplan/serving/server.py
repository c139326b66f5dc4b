"""What the server answers: filter, prioritize, and what those who run it want to know."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec
from aiohttp import web

from stowplan.models.moments import require_time
from stowplan.models.plan import MoveDocument, Plan
from stowplan.serving.access import JSON, Access
from stowplan.serving.bodies import Bodies
from stowplan.serving.connection import Connection
from stowplan.serving.journal import LeaseJournal
from stowplan.serving.ledger import LedgerRecord, TokenLedger
from stowplan.serving.metrics import Metrics
from stowplan.serving.options import Mode, Serving
from stowplan.serving.protocol import BadRequest, Question, all_pass, only, read_question, scores, without

TEXT = "text/plain; version=0.0.4; charset=utf-8"

SWEEP_SECONDS = 5.0
DIGITS = 9
"""Of the number of a wave."""


class Unwritten(Exception):
    """What would have to be on the disk before the answer is not."""


class Server:
    """One plan, its ledger, its journal."""

    def __init__(
        self,
        plan: Plan,
        journal: LeaseJournal,
        serving: Serving | None = None,
        access: Access | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.plan, self.journal, self.clock = plan, journal, clock
        self.serving = serving = serving or Serving()
        self.access = access or Access()
        self.bodies = Bodies(serving.max_body, serving.bodies)
        expires = require_time(plan.expires_at, "expiresAt").timestamp()
        firm = range(len(plan.tokens)) if serving.mode is Mode.FILTER else waiting_tokens(plan)
        pending, placing = pending_pods(plan)
        timeouts = {wave.number: float(wave.barrier.timeout_seconds) for wave in plan.waves}
        terms = (serving.lease, firm, serving.patience, pending, placing, timeouts)
        planned = require_time(plan.created_at, "createdAt").timestamp()
        self.ledger = TokenLedger(plan.tokens, expires, *terms, planned=planned)
        self.metrics = Metrics(plan, self.ledger, clock)
        self.why = f"plan {plan.id} has another node for this pod"
        self.why_expired = f"plan {plan.id} expired at {plan.expires_at}"
        self.ready = False
        self.under_way = 0

    def restore(self) -> int:
        """Take up what the journal holds; return how many records that were."""
        records = self.journal.begin(self.plan, self.ledger)
        self.ledger.touch(self.clock())
        self.ready = True
        return records

    @property
    def expired(self) -> bool:
        """Whether no wave can be opened any more, and no pod is steered but those of one that is under way."""
        return self.clock() >= self.ledger.expires

    def app(self, *, health: bool = True) -> web.Application:
        """Return the application, with what tells of its health or without."""
        app = self.health_app() if health else web.Application(middlewares=[self._measured])
        app.router.add_post("/v1/filter", self.filter)
        app.router.add_post("/v1/prioritize", self.prioritize)
        app.router.add_post("/v1/waves/{number}", self.open_wave)
        app.router.add_get("/v1/leases", self.leases)
        return app

    def health_app(self) -> web.Application:
        """Return an application that tells of the server's health alone."""
        app = web.Application(middlewares=[self._measured])
        app.router.add_get("/healthz", self.health)
        app.router.add_get("/readyz", self.readiness)
        app.router.add_get("/metrics", self.show_metrics)
        return app

    async def filter(self, request: web.Request) -> web.Response:
        """Answer which nodes will do."""
        async with self._asked(request, "filter") as (question, target):
            body = all_pass(question)
            if target is not None and self.ledger.is_firm(question.asker):
                body = only(question, target, self.why)
            elif target is None and (wave := self.ledger.turn(question.asker, self.clock())) is not None:
                body = only(question, None, f"plan {self.plan.id} places this pod in wave {wave}")
            elif target is None and (closed := self.ledger.kept_from(question.asker, self.clock())):
                body = without(question, closed, f"plan {self.plan.id} has the room of this node for other pods")
            return web.Response(body=body, content_type=JSON)

    async def prioritize(self, request: web.Request) -> web.Response:
        """Answer how good each node is."""
        async with self._asked(request, "prioritize") as (question, target):
            return web.Response(body=scores(question, target), content_type=JSON)

    async def open_wave(self, request: web.Request) -> web.Response:
        """Let the tokens of a wave be handed out, whatever became of the waves before.

        A request may name a plan (``?plan=ID&createdAt=TIME``), and is refused if it is not this one.
        """
        self.access.require_opener(request)
        async with self.bodies.of(request) as body:
            _require_json(body)
        text = request.match_info["number"]
        # Python refuses to read numbers of some thousand digits, so their length comes first.
        short = text.isascii() and text.isdigit() and len(text) <= DIGITS
        if not short or not 1 <= int(text) <= len(self.plan.waves):
            shown = text if len(text) <= DIGITS else f"{text[:DIGITS]}…"
            raise BadRequest("wave", f"{shown!r} is not a wave of the plan, which has {len(self.plan.waves)}")
        own = self.plan.id, self.plan.created_at
        named = request.query.get("plan", own[0]), request.query.get("createdAt", own[1])
        if named != own:
            raise web.HTTPConflict(
                text=f"plan {own[0]} of {own[1]} is served here, not {named[0]} of {named[1]}; serve that one"
            )
        if self.expired:
            raise web.HTTPConflict(text=f"{self.why_expired}; make a new one")
        await self._write(self.ledger.open_wave(int(text), self.clock()))
        return web.json_response({"open": self.ledger.open})

    async def leases(self, request: web.Request) -> web.Response:
        """Show who holds what."""
        self.access.require_reader(request)
        now, ledger = self.clock(), self.ledger
        held = [
            {
                "pod": lease.pod,
                "uid": lease.uid,
                "wave": ledger.tokens[lease.token].wave,
                "target": ledger.tokens[lease.token].target,
                "granted": lease.granted,
                "state": "landed" if ledger.landed(lease, now) else "leased",
                "offered": lease.offered,
            }
            for lease in ledger.leases.values()
        ]
        return web.json_response({"plan": self.plan.id, "open": ledger.open, "leases": held})

    async def health(self, request: web.Request) -> web.Response:
        """Say that the process answers."""
        return web.Response(text="ok\n")

    async def readiness(self, request: web.Request) -> web.Response:
        """Say whether tokens can be handed out."""
        if self.journal.broken is not None:
            return web.Response(status=503, text=f"the journal cannot be written: {self.journal.broken.strerror}\n")
        if self.expired:
            return web.Response(status=503, text=f"{self.why_expired}\n")
        return web.Response(text="ok\n") if self.ready else web.Response(status=503, text="ending\n")

    async def show_metrics(self, request: web.Request) -> web.Response:
        """Show the metrics."""
        return web.Response(body=self.metrics.text(), headers={"Content-Type": TEXT})

    async def sweep(self) -> None:
        """Take tokens back from time to time."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            records = self.ledger.sweep(self.clock())
            self.metrics.count(records)
            with contextlib.suppress(OSError):  # told by /readyz
                await self.journal.write(records)

    @contextlib.asynccontextmanager
    async def _asked(self, request: web.Request, verb: str) -> AsyncIterator[tuple[Question, str | None]]:
        """Yield a question and the node that is the answer, if there is one; the question's body counts meanwhile."""
        self.access.require_asker(request)
        async with self.bodies.of(request) as body:
            question = read_question(body)
            # From here to the records there is no await: one pod after the other.
            target, records = self.ledger.ask(question.asker, question.nodes, self.clock())
            self.metrics.count(records)
            self.metrics.steered.labels(verb, "none" if target is None else "held").inc()
            if records or target is not None:
                await self._write(records)
            yield question, target

    async def _write(self, records: Sequence[LedgerRecord]) -> None:
        try:
            await self.journal.write(records)
        except OSError as error:
            raise Unwritten(f"the journal cannot be written: {error.strerror}") from None

    @web.middleware
    async def _measured(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        begun = time.perf_counter()
        if isinstance(request.protocol, Connection):
            request.protocol.hear()
        self.under_way += 1
        try:
            answer = await self._answer(request, handler)
        finally:
            self.under_way -= 1
        resource = request.match_info.route.resource
        verb = "none" if resource is None else resource.canonical.removeprefix("/v1").split("/")[1]
        self.metrics.requests.labels(verb, str(answer.status)).inc()
        self.metrics.seconds.labels(verb).observe(time.perf_counter() - begun)
        return answer

    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadRequest as error:
            self.metrics.bad.labels(error.reason).inc()
            return web.Response(status=400, text=f"{error}\n")
        except web.HTTPException as error:
            self.metrics.bad.labels(f"http-{error.status}").inc()
            return web.Response(status=error.status, text=f"{(error.text or error.reason).strip()}\n")
        except Unwritten as error:
            return web.Response(status=500, text=f"{error}\n")


def waiting_tokens(plan: Plan) -> set[int]:
    """Return the numbers of the tokens whose pods find their node closed at first, and must not go elsewhere."""
    return _tokens_of(plan, lambda move: bool(move.waits))


def pending_pods(plan: Plan) -> tuple[set[str], set[int]]:
    """Return the uids of the pods that have no node and are to get one, and the numbers of the tokens for them."""
    uids = {move.pod.uid for move in plan.moves if move.kind == "place"}
    return uids, _tokens_of(plan, lambda move: move.kind == "place")


def _tokens_of(plan: Plan, chosen: Callable[[MoveDocument], bool]) -> set[int]:
    """Return the numbers of the tokens that some chosen move needs."""
    wanted = {
        (wave.number, move.pod.namespace, move.owner.uid if move.owner else "", move.template_hash, move.target)
        for wave in plan.waves
        for move in wave.moves
        if chosen(move)
    }
    return {
        i
        for i, token in enumerate(plan.tokens)
        if (token.wave, token.namespace, token.owner_uid, token.template_hash, token.target) in wanted
    }


def _require_json(body: bytes | bytearray) -> None:
    """Refuse a body that is no JSON; there need be none."""
    try:
        if body:
            msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest("json", f"the body is not JSON: {error}") from None

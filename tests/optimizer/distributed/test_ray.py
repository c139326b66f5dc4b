"""In a real Ray cluster of several nodes, answers are those of this process, whatever happens to workers and nodes."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.parts import side_by_side
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.problem import Problem
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import NOTHING, ProcessBackend, RayBackend, SerialBackend
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed import cluster as joining
from stowplan.optimizer.distributed import connection
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.regions.engine import NAME
from stowplan.optimizer.regions.parameters import RegionParameters
from stowplan.settings.problem import make_problem
from tests.optimizer.parts.test_partition import EVERY
from tests.optimizer.test_backend import Answer, deadly, deadly_once, found, stream, tasks, uneven
from tests.support.processes import ended
from tests.support.ray_clusters import NodesOnOneMachine, nodes_on_one_machine
from tests.support.ray_solves import Solve

pytest.importorskip("ray", reason="Ray is not installed")
# Ray's own warnings: files and sockets that it leaves to its end.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.first]


@pytest.fixture(scope="module")
def nodes() -> Iterator[NodesOnOneMachine]:
    with nodes_on_one_machine(2) as running:
        yield running


@pytest.fixture
def ray(nodes: NodesOnOneMachine) -> Iterator[RayBackend]:
    backend = RayBackend(nodes.address)
    await_workers(backend, 2)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def expected() -> list[Answer]:
    return found(stream(SerialBackend(), tasks(6)))


def await_workers(backend: RayBackend, number: int) -> None:
    until = time.monotonic() + 60
    while backend.cluster.workers < number:
        assert time.monotonic() < until, "workers did not begin"
        time.sleep(0.05)


def test_a_cluster_answers_as_this_process_does_in_the_order_of_the_tasks(
    ray: RayBackend, expected: list[Answer]
) -> None:
    assert found(stream(ray, tasks(6))) == expected
    assert found(stream(ray, tasks(2))) == expected[:2]
    assert not ray.notes
    assert (ray.counts.done, ray.counts.lost) == (8, 0)


def test_answers_come_as_they_are_found_where_order_is_of_no_account(ray: RayBackend, expected: list[Answer]) -> None:
    (slow,) = tasks(1, 400, SolverLimits(seconds=10))  # longer than the others take on a machine with other work
    came = list(ray.stream([slow, *tasks(6)], ordered=False))
    assert came[-1][0] == 0
    assert found(answer for number, answer in sorted(came, key=lambda one: one[0]) if number) == expected


def test_searches_that_count_work_find_the_same_here_in_processes_and_in_a_cluster(ray: RayBackend) -> None:
    problem = uneven()
    options = Options(0.3, deterministic=True, largest_model=0)
    here = solve(problem, options, backend=SerialBackend())
    with ProcessBackend(2, Stop()) as processes:
        beside = solve(problem, options, backend=processes)
    there = solve(problem, options, backend=ray)
    assert here.placement.same_as(beside.placement)
    assert here.placement.same_as(there.placement)
    assert here.values == there.values
    assert ray.counts.done
    assert any(note.endswith("of the time") and "2 workers" in note for note in there.notes)


def test_workers_anneal_too_where_seconds_count(ray: RayBackend) -> None:
    before = ray.counts.done
    outcome = solve(uneven(), Options(8.0, largest_model=0), backend=ray)
    assert ray.counts.done > before
    assert outcome.values <= solve(uneven(), Options(0.1, deterministic=True, largest_model=0)).values


def test_exact_parts_are_solved_by_workers_beside_the_largest_one_here(ray: RayBackend) -> None:
    problem = make_problem(side_by_side(3, 6, 2), Settings(objective="balance")).problem
    before = ray.counts.done
    # Every part can be proven, so that the solve ends with the last proof and not with the time, on any machine.
    outcome = solve(problem, Options(90.0, parameters=Parameters(parts=EVERY)), backend=ray)
    assert ray.counts.done > before + 1
    assert sum("workers" in note for note in outcome.notes) == 1
    here = solve(problem, Options(10.0, deterministic=True, parameters=Parameters(parts=EVERY)))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values[:-1] == here.values[:-1]
    assert outcome.tiers[-1].bound <= here.values[-1]
    assert here.tiers[-1].bound <= outcome.values[-1] <= here.values[-1] * 1.01
    assert outcome.values[-1] < Evaluator(problem).evaluate(problem.start).values[-1]
    assert outcome.tiers[-1].bound_by.endswith("part by part")


SMALL = RegionParameters(least_nodes=10, least_seconds=2.0)


@pytest.fixture(scope="module")
def one_part() -> Problem:
    return make_problem(synthetic_snapshot(40, 400, 3), Settings(objective="balance")).problem


def test_regions_of_one_part_are_solved_side_by_side(ray: RayBackend, one_part: Problem) -> None:
    before = ray.counts.done, ray.counts.dropped
    outcome = solve(one_part, Options(12.0, parameters=Parameters(regions=SMALL)), backend=ray)
    assert NAME in dict(outcome.stages)
    assert ray.counts.done >= before[0] + 4
    assert ray.counts.dropped == before[1]
    assert Evaluator(one_part).evaluate(outcome.placement).legal
    assert outcome.values < Evaluator(one_part).evaluate(one_part.start).values
    assert 0 < outcome.tiers[-1].bound <= outcome.values[-1]


def test_a_lost_node_leaves_its_region_as_it_is(nodes: NodesOnOneMachine, ray: RayBackend, one_part: Problem) -> None:
    lost = threading.Timer(3.0, nodes.kill_node)
    lost.start()
    try:
        outcome = solve(one_part, Options(12.0, parameters=Parameters(regions=SMALL)), backend=ray)
    finally:
        lost.join()
        nodes.add_node()  # whatever becomes of this test, those that follow need two nodes
    assert ray.counts.lost >= 1
    assert Evaluator(one_part).evaluate(outcome.placement).legal
    assert outcome.values < Evaluator(one_part).evaluate(one_part.start).values
    await_workers(ray, 2)


def test_a_killed_worker_costs_its_job_alone(ray: RayBackend, expected: list[Answer], tmp_path: Path) -> None:
    first, *others = tasks(6)
    assert found(stream(ray, [deadly_once(first, tmp_path / "killed"), *others])) == expected
    assert set(ray.notes) == {RayBackend.lost}
    assert ray.counts.lost == 1


def test_a_task_that_costs_worker_after_worker_is_left_out(ray: RayBackend, expected: list[Answer]) -> None:
    answers = [answer for _, answer in ray.stream([deadly(), *tasks(6)])]
    assert answers[0] is NOTHING
    assert found(iter(answers[1:])) == expected
    assert RayBackend.left_out in ray.notes


def test_a_lost_node_costs_its_jobs_and_a_new_one_is_used(
    nodes: NodesOnOneMachine, ray: RayBackend, expected: list[Answer]
) -> None:
    (slow,) = tasks(1, 400, SolverLimits(seconds=5))
    lost = threading.Timer(1.0, nodes.kill_node)
    lost.start()
    try:
        answers = [answer for _, answer in ray.stream([slow, slow, *tasks(6)])]
    finally:
        lost.join()
        nodes.add_node()  # whatever becomes of this test, those that follow need two nodes
    assert all(answer.values is not None for answer in answers)
    assert found(iter(answers[2:])) == expected
    assert ray.counts.lost >= 1
    await_workers(ray, 2)
    assert found(stream(ray, tasks(2))) == expected[:2]


def test_the_stop_signal_reaches_the_cluster_within_a_second(nodes: NodesOnOneMachine) -> None:
    stop = Stop()
    endless = tasks(20, 400, SolverLimits(seconds=300))
    with RayBackend(nodes.address, stop) as backend:
        await_workers(backend, 2)
        told_at: list[float] = []
        threading.Timer(1.0, lambda: (told_at.append(time.monotonic()), stop.set())).start()
        assert len(list(backend.stream(endless))) == len(endless)
        assert time.monotonic() < told_at[0] + 1.5
    with RayBackend(nodes.address) as backend:  # the same workers serve the next search
        assert next(backend.stream(tasks(1)))[1].optimal


def test_a_search_in_a_cluster_ends_at_its_deadline(ray: RayBackend) -> None:
    began = time.monotonic()
    assert len(list(ray.stream(tasks(3, 400, SolverLimits(seconds=300)), Deadline(1.0)))) == 3
    assert time.monotonic() - began < 2.5


def test_the_workers_of_a_process_end_with_it(nodes: NodesOnOneMachine) -> None:
    await_workers(RayBackend(nodes.address), 2)
    joining.leave()
    assert nodes.await_no_workers()


def test_nodes_with_another_version_are_refused_before_anything_begins(
    nodes: NodesOnOneMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    joining.leave()
    here = connection.versions()
    monkeypatch.setattr(connection, "versions", lambda: (here[0], "99.0"))
    message = rf"the Ray node \S+ has Python {here[0]} and stowplan {here[1]}; must have Python .* and stowplan 99.0"
    with pytest.raises(InputError, match=message):
        RayBackend(nodes.address)
    assert not nodes.workers()


def test_an_address_without_a_cluster_is_refused_at_once() -> None:
    joining.leave()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = f"127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(InputError, match=f"no Ray cluster answers at {silent}: timed out"):
            RayBackend(silent)
        assert time.monotonic() - began < 10
    with pytest.raises(InputError, match=f"no Ray cluster answers at {silent}: Connection refused"):
        RayBackend(silent)


def test_another_server_is_not_taken_for_a_cluster() -> None:
    def answer(listener: socket.socket) -> None:
        with listener.accept()[0] as peer:
            peer.recv(100)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(InputError, match=f"what answers at {address} is no Ray cluster"):
            RayBackend(address)


def test_a_missing_installation_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    joining.leave()
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(InputError, match=r"needs Ray: pip install 'stowplan\[ray\]'"):
        RayBackend("127.0.0.1:6379")


def test_a_killed_coordinator_leaves_its_answer_and_no_workers(nodes: NodesOnOneMachine, tmp_path: Path) -> None:
    search = Solve(tmp_path, nodes)
    first = search.killed_when_something_was_found()
    second = search.finished()
    assert second["values"] <= first
    assert any("began with the answer" in note for note in second["notes"])
    assert not nodes.workers()


def test_a_signal_ends_a_search_in_the_cluster_with_its_answer(nodes: NodesOnOneMachine, tmp_path: Path) -> None:
    search = Solve(tmp_path, nodes)
    found = search.interrupted(seconds=300.0)
    assert "Ray at" in found["notes"][-1]
    assert "Traceback" not in found["said"]


def test_a_cluster_that_is_begun_for_a_command_ends_with_it(nodes: NodesOnOneMachine, tmp_path: Path) -> None:
    """Although another one runs on this machine, which must not be joined."""
    search = Solve(tmp_path, nodes)
    with search.begin(3.0, backend="ray") as process:
        begun: set[psutil.Process] = set()
        while process.poll() is None:
            begun |= set(psutil.Process(process.pid).children(recursive=True))
            time.sleep(0.2)
        assert process.returncode == 0, process.stderr and process.stderr.read()
    (note,) = [note for note in json.loads(search.answer.read_bytes())["notes"] if "Ray at" in note]
    assert nodes.address not in note
    assert begun
    assert ended(list(begun), 60.0)  # Ray's own helpers notice in their own time that what they serve has ended

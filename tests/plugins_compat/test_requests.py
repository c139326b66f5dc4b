"""Effective requests of a pod, by release: containers, init containers, sidecars, overhead, the pod as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.framework import _heap_root
from stowplan.plugins_compat.release import K24, K36
from stowplan.plugins_compat.requests import is_extended, is_scalar, requests, score_request
from tests.support.cases import cases, count
from tests.support.clusters import pod, snapshot


def container(cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    asked = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return {"name": "c", "resources": {"requests": asked}, **more}


def make(containers: list[dict[str, Any]], **spec: Any) -> Pod:
    manifest = pod("p")
    manifest["spec"] |= {"containers": containers, **spec}
    return snapshot(pods=[manifest]).pods[0]


def test_init_containers_count_one_at_a_time() -> None:
    asked = make([container("1"), container("2")], initContainers=[container("2500m"), container("4")])
    assert requests(asked, K36)["cpu"] == requests(asked, K24)["cpu"] == 4000


def test_a_sidecar_runs_beside_all_that_follows() -> None:
    sidecar = container("500m", restartPolicy="Always")
    asked = make([container("1")], initContainers=[container("2"), sidecar, container("1200m")])
    assert requests(asked, K36)["cpu"] == 2000  # max(2, 0.5 + 1.2, 0.5 + 1)
    later = make([container("1")], initContainers=[sidecar, container("1800m")])
    assert requests(later, K36)["cpu"] == 2300
    assert requests(later, K24)["cpu"] == 1800  # the release knows no sidecars


def test_the_pod_as_a_whole_overrides_its_containers() -> None:
    asked = make([container("1", "1Gi")], resources={"requests": {"cpu": "3"}})
    assert requests(asked, K36) == {"cpu": 3000, "memory": 2**30}
    assert requests(asked, K24) == {"cpu": 1000, "memory": 2**30}


def test_overhead_is_added() -> None:
    asked = make([container("1", "1Mi")], overhead={"cpu": "250m", "memory": "1Mi"})
    assert requests(asked, K36) == requests(asked, K24) == {"cpu": 1250, "memory": 2**21}


def test_old_releases_count_overhead_in_scores_as_whole_cores() -> None:
    asked = make([container("1")], overhead={"cpu": "250m"})
    assert score_request(asked, K24, nonzero=False)["cpu"] == 1001
    assert score_request(asked, K36, nonzero=False)["cpu"] == 1250


def test_rounding_happens_once_or_at_every_container() -> None:
    asked = make([container("500u"), container("500u")])
    assert requests(asked, K36)["cpu"] == 1
    assert requests(asked, K24)["cpu"] == 2


def test_scores_give_a_silent_container_a_default() -> None:
    asked = make([container(), container("1", "1Gi")])
    assert requests(asked, K36, nonzero=True) == {"cpu": 1100, "memory": 2**30 + 200 * 2**20}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("cpu", False, False),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("kubernetes.io/thing", False, True),
        ("requests.example.com/gpu", False, False),
        ("batch.kubernetes.io/x", False, True),
    ],
)
def test_resource_names(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended(name) is extended
    assert is_scalar(name) is scalar


@cases(
    50,
    at_least={"not the first of the best": 2},
    scores=st.lists(st.integers(0, 2), min_size=2, max_size=40),
)
def test_the_heap_root_is_what_go_s_container_heap_has_there(scores: list[int]) -> None:
    """Against the algorithm itself: heap.Init sifts down from the middle; a child wins only if strictly greater."""
    heap = list(enumerate(scores))

    def greater(i: int, j: int) -> bool:
        return heap[i][1] > heap[j][1]

    for start in reversed(range(len(heap) // 2)):
        i = start
        while (left := 2 * i + 1) < len(heap):
            child = left + 1 if left + 1 < len(heap) and greater(left + 1, left) else left
            if not greater(child, i):
                break
            heap[i], heap[child] = heap[child], heap[i]
            i = child
    best = np.flatnonzero(np.array(scores) == max(scores))
    assert _heap_root(best) == heap[0][0]
    count("not the first of the best", heap[0][0] != best[0])

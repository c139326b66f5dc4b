"""An API server in this process, good enough for the real ``kubectl``, with a small living cluster behind it.

::

    with ApiServer(Cluster(manifests, scheduler=ByTokens(plan.tokens))) as server:
        kubeconfig = server.kubeconfig(tmp_path)
        server.faults.on("evict", cut(), after=True)
        …
        assert [eviction.code for eviction in server.evictions] == [201]

What it serves: discovery, lists with pages and selectors, get, watch, create, update, the three patches, delete with
preconditions and grace, evictions with the meaning of disruption budgets, ``Status`` objects for what goes wrong.
"""

from tests.support.api_server.cluster import Cluster, Pace
from tests.support.api_server.faults import Cut, Faults, Request, cut, hang, refuse
from tests.support.api_server.scheduling import ByMap, ByTokens, emptiest, first_fit
from tests.support.api_server.serving import ApiServer, Eviction

__all__ = [
    "ApiServer",
    "ByMap",
    "ByTokens",
    "Cluster",
    "Cut",
    "Eviction",
    "Faults",
    "Pace",
    "Request",
    "cut",
    "emptiest",
    "first_fit",
    "hang",
    "refuse",
]

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.instances.load import load
from stowplan.models.errors import InputError

TABLE = "kind,name,cpu,memory,at\nnode,n1,4,8Gi,\npod,a,500m,1Gi,n1\npod,b,1,1Gi,\n"


def test_a_table_is_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "cluster.csv"
    path.write_text(TABLE)
    snapshot = load([str(path)])
    assert [node.name for node in snapshot.nodes] == ["n1"]
    assert snapshot.nodes[0].allocatable["cpu"] == 4 * 10**9
    assert [(pod.key, pod.node_name) for pod in snapshot.pods] == [("default/a", "n1"), ("default/b", "")]
    assert snapshot.pods[0].spec.containers[0].requests["cpu"] == 5 * 10**8


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("pod,b,one,1Gi,", "line 4: 'one' is not a quantity"),
        ("job,b,1,1Gi,", "line 4: kind is 'job'; must be node or pod"),
        ("pod,b,1", "line 4: has too few columns"),
        ("pod,b,1,1Gi,n9", "node 'n9' is not in the snapshot"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(row: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.csv"
    path.write_text(TABLE.replace("pod,b,1,1Gi,", row))
    with pytest.raises(InputError, match=said) as caught:
        load([str(path)])
    assert caught.value.file == str(path)

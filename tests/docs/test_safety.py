"""Every row of what `docs/safety.md` promises is held by a test, which is named here."""

from __future__ import annotations

import pytest

from tests.docs.blocks import ROOT
from tests.docs.promises import flowing, is_there, unmatched

PAGE = ROOT / "docs" / "safety.md"

GAPS = "tests/instances/test_completeness.py"
FIELDS = "tests/instances/test_missing_fields.py"
REFUSED = "tests/stowplan/test_partial_dumps.py"
PRUNING = "tests/instances/test_pruning.py"
HEALTH = "tests/models/test_node_health.py"
SUCH = f"{REFUSED}::test_plans_of_such_dumps_are_refused"
FIELD = f"{FIELDS}::test_a_field_that_is_missing_is_named"
KIND = f"{GAPS}::test_a_kind_that_is_missing_is_warned_of"

HELD_BY = {
    "has a list with `metadata.continue`": SUCH,
    "has fewer objects of a kind": f"{GAPS}::test_what_is_lost_from_a_dump_that_says_what_it_has",
    "has a node without any DaemonSet pod": SUCH,
    "has pods of one namespace alone": SUCH,
    "has ReplicaSets or StatefulSets of a namespace that report pods": SUCH,
    "has a node without `status.allocatable`": SUCH,
    "has a pod without `status.phase`": FIELD,
    "has a pod without requests and limits": FIELD,
    "has a pod whose containers mount volumes": FIELD,
    "has no object of a kind that stowplan reads": KIND,
    "has pods of a DaemonSet or Jobs of a CronJob": f"{GAPS}::test_what_others_name_is_missed",
    "does not say that all pods were asked for": f"{GAPS}::test_namespaces_without_pods_are_named",
    "has a ReplicaSet or StatefulSet that wants replicas": f"{GAPS}::test_workloads_without_pods_are_named",
    "names claims, volumes, storage classes, or priority classes": f"{GAPS}::test_what_others_name_is_missed",
    "has a node without `status.conditions`": FIELD,
    "has a pod without uid": FIELD,
    "has a disruption budget without selector or limit": f"{FIELDS}::test_a_budget_that_lost_a_field_is_named",
    "has a list with a `resourceVersion`": f"{GAPS}::test_a_resource_version_that_is_none",
    "was taken without annotations": f"{PRUNING}::test_annotations_that_a_configuration_reads_are_kept_or_missed",
    "a dead node": f"{HEALTH}::test_a_dead_node_is_seen_and_its_pods_are_named",
    "its pods": f"{HEALTH}::test_solve_finds_homes_for_the_pods_of_a_dead_node",
    "those that tolerate the taint for good": f"{HEALTH}::test_pods_that_tolerate_a_dead_node_for_good_stay",
    "those without a controller": f"{HEALTH}::test_pods_that_tolerate_a_dead_node_for_good_stay",
    "those of StatefulSets": f"{HEALTH}::test_pods_of_stateful_sets_wait_for_the_node_to_be_gone",
    "a node whose last heartbeat": f"{HEALTH}::test_an_old_heartbeat_is_said",
    "has data on its node": "tests/plans/test_local_data.py::test_nobody_moves_a_pod_with_local_data_by_default",
    "is of a Job": "tests/plans/test_jobs.py::test_pods_of_jobs_stay",
    "is of a controller other than": "tests/plans/test_jobs.py::test_only_controllers_that_replace_pods_let_them_go",
    "is not ready, on a": "tests/plans/test_movability.py::test_pods_that_are_not_ready_stay_unless_asked_for",
}
"""How a row of a table begins, and the test that fails if it is not true."""

SENTENCES = {
    "only objects of an API server": f"{GAPS}::test_a_cluster_written_by_hand_is_taken_as_whole",
    "pods of `fit -f` are to be created, and are not of the dump": (
        f"{GAPS}::test_pods_that_are_to_be_created_are_not_of_the_dump"
    ),
    "the first line of a report is about the most important one": (
        f"{REFUSED}::test_the_first_line_says_what_is_missing"
    ),
    "`--partial` turns a refusal into a warning": f"{REFUSED}::test_partial_plans_nevertheless_and_says_so",
    "`emit` and `apply` refuse it, unless `--partial`": f"{REFUSED}::test_nobody_carries_out_a_partial_plan",
    "what was asked is not missed": f"{GAPS}::test_what_was_asked_is_not_missed",
    "by default these are all but `taints`": (
        "tests/plugins_compat/test_repair.py::test_cordons_and_taints_are_no_violations_and_let_nobody_in"
    ),
    "which kinds of standing violations are worth moves": (
        "tests/plugins_compat/test_repair.py::test_every_other_kind_is_repaired_or_left_as_asked"
    ),
    "say for each move what it `loses`": "tests/stowplan/test_one_movability.py::test_moves_say_what_they_lose",
    "say [what each protection costs]": (
        "tests/stowplan/test_one_movability.py::test_what_a_protection_costs_is_what_waiving_it_brings"
    ),
    "a placement is worth the same in every command, to the last digit": (
        "tests/stowplan/test_one_value.py::test_a_placement_is_worth_the_same_to_the_last_digit"
    ),
    "today's value is `before` of a tier": "tests/stowplan/test_one_value.py::test_documents_say_the_same_of_today",
    "and within 0.01 % of it elsewhere": (
        "tests/plugins_compat/test_variance_curves.py::test_many_pods_are_worth_their_square_within_the_stated_error"
    ),
}
"""Words of its sentences, likewise."""


def _rows() -> list[str]:
    lines = PAGE.read_text().splitlines()
    rows = [line.strip("| ").split(" | ")[0] for line in lines if line.startswith("| ")]
    return [row for row in rows if row not in ("the dump", "the pod", "") and not row.startswith("---")]


def test_every_row_of_a_table_has_a_test() -> None:
    assert unmatched(_rows(), HELD_BY) == ([], [])


@pytest.mark.parametrize("words", SENTENCES)
def test_the_page_says_so(words: str) -> None:
    assert words.lower() in flowing(PAGE).lower()


@pytest.mark.parametrize("test", sorted({*HELD_BY.values(), *SENTENCES.values()}))
def test_the_test_is_there(test: str) -> None:
    assert is_there(test)

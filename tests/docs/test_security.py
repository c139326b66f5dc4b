"""Every row of what `docs/security.md` promises is held by a test, which is named here."""

from __future__ import annotations

import pytest

from tests.docs.blocks import ROOT
from tests.docs.promises import flowing, is_there, unmatched

PAGE = ROOT / "docs" / "security.md"

HOSTILE = "tests/instances/test_hostile_input.py"
FUZZING = "tests/instances/test_fuzzing.py"
NAMES = "tests/stowplan/test_evil_names.py"
NETWORK = "tests/stowplan/test_network.py"
STATE = "tests/stowplan/test_append_only_file.py"
CACHE = "tests/optimizer/compiled/test_kernel_cache.py"
RIGHTS = "tests/deploy/test_rights.py"
SERVER = "tests/stowplan/serving/test_hardened.py"

HELD_BY = {
    "YAML or JSON that is nested": f"{HOSTILE}::test_each_reader_ends_with_one_line",
    "gzip or a bundle that unpacks": f"{HOSTILE}::test_gzip_that_unpacks_to_hundreds_of_times_its_size_is_refused",
    "a document with a value in every second byte": f"{FUZZING}::test_what_is_large_when_it_is_read_is_refused",
    "a file larger than": f"{HOSTILE}::test_max_input_bounds_a_document",
    "an answer of a server without end": "tests/instances/test_metrics.py::test_an_answer_without_end_is_cut_off",
    "a symbolic link in a dump folder": f"{HOSTILE}::test_a_link_that_leads_nowhere_is_named",
    "any other change of good input": f"{FUZZING}::test_changed_input_ends_as_it_should",
    "control characters in names": f"{NAMES}::test_no_form_of_an_answer_holds_what_a_terminal_obeys",
    "names that a spreadsheet computes": f"{NAMES}::test_a_cell_is_no_formula",
    "names that are HTML": f"{NAMES}::test_a_page_about_a_plan_holds_no_such_name",
    "names that are more than names": f"{NAMES}::test_scripts_and_manifests_hold_no_such_name",
    "extenders and metrics servers": f"{NETWORK}::test_an_extender_is_named_before_it_is_asked",
    "any server, and the cluster": f"{NETWORK}::test_offline_no_server_is_asked",
    "where a redirect leads": f"{NETWORK}::test_load_is_not_fetched_from_where_a_server_sends_us",
    "any other server": f"{NETWORK}::test_every_command_runs_without_a_network",
    "machine code of kernels": f"{CACHE}::test_a_planted_file_in_the_shared_temporary_folder_is_not_read",
    "journals of": f"{STATE}::test_a_file_that_others_can_write_is_not_believed",
    "`snapshot` | without": "tests/instances/test_pruning.py::test_a_secret_is_gone_and_nothing_else_is",
    "a client of the authority": f"{SERVER}::test_a_right_is_for_those_whose_certificate_names_them",
    "a page in a browser": f"{SERVER}::test_a_page_in_a_browser_opens_no_wave",
    "clients that say nothing": f"{SERVER}::test_clients_that_say_nothing_keep_nobody_out",
    "bodies that do not end": f"{SERVER}::test_twenty_unfinished_bodies_take_no_memory_from_others",
    "answers that are not taken": f"{SERVER}::test_a_client_that_does_not_take_its_answer_is_left",
    "certificates that cannot be used": f"{SERVER}::test_renewed_certificates_are_read_and_the_last_good_pair_stays",
    "`snapshot` and `--live`": f"{RIGHTS}::test_who_plans_asks_for_what_the_role_grants",
    "`apply --yes`": f"{RIGHTS}::test_who_applies_asks_for_what_the_roles_grant",
    "`serve` | its plan": f"{STATE}::test_serve_and_apply_say_why_they_do_not_believe_a_file",
    "all others": f"{NETWORK}::test_every_command_runs_without_a_network",
}
"""How a row of a table begins, and the test that fails if it is not true."""

SENTENCES = {
    "Without any temporary folder": f"{CACHE}::test_without_any_temporary_folder_there_is_an_answer",
    "where the installation cannot be written": (
        f"{CACHE}::test_an_installation_that_cannot_be_written_is_used_where_it_is_complete"
    ),
    "apply exactly those bytes with `--expect-hash`": (
        "tests/stowplan/test_plan_command.py::test_apply_refuses_bytes_that_were_not_reviewed"
    ),
}
"""Words of its sentences, likewise."""

HEADINGS = ("attack |", "who |", "file |", "part |", "---")


def _rows() -> list[str]:
    rows = [line.strip("| ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.startswith(HEADINGS)]


def test_every_row_of_a_table_has_a_test() -> None:
    assert unmatched(_rows(), HELD_BY) == ([], [])


@pytest.mark.parametrize("words", SENTENCES)
def test_the_page_says_so(words: str) -> None:
    assert words in flowing(PAGE)


@pytest.mark.parametrize("test", sorted({*HELD_BY.values(), *SENTENCES.values()}))
def test_the_test_is_there(test: str) -> None:
    assert is_there(test)

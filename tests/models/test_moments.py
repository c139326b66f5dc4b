from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from stowplan.models.moments import parse_time, stamp

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T13:30:00+01:30", "2026-01-31T12:00:00.000000Z"]
)
def test_a_time_is_read_wherever_it_was_written(text: str) -> None:
    assert parse_time(text) == NOON


@pytest.mark.parametrize("text", ["", "noon", "2026-02-30T12:00:00Z", "12:00:00Z"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_time(text) is None


def test_a_time_is_written_in_utc_and_cut_off() -> None:
    there = timezone(timedelta(hours=-3))
    late = (NOON + timedelta(microseconds=999_999)).astimezone(there)
    assert stamp(late) == "2026-01-31T12:00:00Z"
    assert stamp(late, "milliseconds") == "2026-01-31T12:00:00.999Z"
    assert stamp(NOON, "milliseconds") == "2026-01-31T12:00:00.000Z"

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.models.quantity import MAX_INT64, NANO, Nanos, milli, parse_quantity, whole


@pytest.mark.parametrize(
    ("text", "value", "thousandths"),
    [
        ("1500m", 2, 1500),
        ("0.5", 1, 500),
        ("1.5Gi", 1610612736, 1610612736000),
        ("0.1Ki", 103, 102400),
        ("1.1Ki", 1127, 1126400),
        ("100n", 1, 1),
        ("1e3", 1000, 1000000),
        ("1E", 10**18, 10**21),
        ("1E3", 1000, 1000000),
        ("5.", 5, 5000),
        (".5", 1, 500),
        ("-1", -1, -1000),
        ("+2k", 2000, 2000000),
        (" 7 ", 7, 7000),
        (1, 1, 1000),
        (0.25, 1, 250),
    ],
)
def test_values_of_the_reference(text: str, value: int, thousandths: int) -> None:
    assert whole(parse_quantity(text)) == value
    assert milli(parse_quantity(text)) == thousandths


NO_QUANTITIES = [
    "1.5.2",
    "1e",
    "K",
    "1K",
    "1ki",
    "1mi",
    "",
    ".",
    "-",
    "1 Gi",
    "0x10",
    "1_000",
    "１",
    "1Gib",
    True,
    None,
]


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)  # type: ignore[arg-type]


def test_an_overflow_is_refused_and_a_binary_suffix_is_capped() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_quantity("12E")
    assert parse_quantity("9Ei") == MAX_INT64 * NANO


def test_finer_than_nano_is_rounded_away_from_zero() -> None:
    assert parse_quantity("0.1n") == 1
    assert parse_quantity("-0.1n") == -1


def test_reading_twice_changes_nothing() -> None:
    assert parse_quantity(parse_quantity("250m")) == parse_quantity("250m")
    assert isinstance(parse_quantity("1"), Nanos)


SUFFIXES = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2", "e+1"])


@settings(deadline=None)  # the first call imports the client
@given(st.decimals(min_value=0, max_value=10**5, places=4), SUFFIXES)
def test_agrees_with_an_independent_reader(number: Decimal, suffix: str) -> None:
    """The official client's reader is exact, but knows nothing of the nano limit; these values stay above it."""
    from kubernetes.utils.quantity import parse_quantity as official

    text = f"{number}{suffix}"
    if suffix in ("n", "u"):
        exact = number * (Decimal("1e-9") if suffix == "n" else Decimal("1e-6"))
    elif suffix[:1] in ("e", "E"):
        exact = number * Decimal(10) ** int(suffix[1:])
    else:
        exact = official(text)
    assert parse_quantity(text) == math.ceil(exact * NANO)


@given(st.text(alphabet="0123456789.eEnumkKMGTPi+- ", max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        nanos = parse_quantity(text)
    except ValueError:
        return
    assert isinstance(nanos, Nanos)

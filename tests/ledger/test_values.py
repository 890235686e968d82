"""Exact amounts: what is accepted, how they are written, and that sums stay short."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.display import format_amount
from idios.errors import InvalidInput
from idios.ledger import Account, ChargeRequest, Declaration
from idios.ledger.values import (
    COMMON,
    check_amount,
    decode_amount,
    encode_amount,
    format_time,
    system_clock,
)
from tests.ledger.ledger_place import ask, people


@pytest.mark.parametrize("value", [0.1, 1.0, "1/2", None, True, float("nan"), 1j])
def test_only_exact_numbers_are_amounts(value: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be an exact Fraction"):
        check_amount("epsilon", value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [Fraction(-1, 2), Fraction(10**12 + 1), Fraction(1, 1009), Fraction(0.1), Fraction(1, 10**40)]
)
def test_amounts_that_are_refused(value: Fraction) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be"):
        ChargeRequest("people", "1", None, "q", value)
    with pytest.raises(InvalidInput, match="delta must be"):
        Declaration("people", "1", Fraction(1), value)


def test_an_enormous_amount_is_refused_without_printing_it() -> None:
    with pytest.raises(InvalidInput, match=r"a fraction of \d+ bits"):
        check_amount("epsilon", Fraction(1, 10**100_000))


@pytest.mark.parametrize("text", ["0.05", "1e-30", "1/3", "1/997", "1/3000", "10", "0"])
def test_amounts_that_people_write(text: str) -> None:
    assert check_amount("epsilon", Fraction(text)) == Fraction(text)


def test_sums_stay_short_whatever_is_asked() -> None:
    chance = random.Random(7)
    total = Fraction(0)
    for _ in range(3000):
        total += check_amount(
            "epsilon",
            Fraction(chance.randint(1, 10**9), chance.randint(1, 1000) * 10 ** chance.randint(0, 27)),
        )
    assert COMMON % total.denominator == 0
    assert len(encode_amount(total)) < 1000
    assert decode_amount(encode_amount(total)) == total


@given(st.fractions(min_value=0, max_denominator=10**9))
def test_what_is_stored_is_read_back(value: Fraction) -> None:
    assert decode_amount(encode_amount(value)) == value
    assert Fraction(format_amount(value)) == value


@pytest.mark.parametrize("text", ["", "1", "2/4", "-1/2", "1/0", "01/2", "1/2 ", "0.5", "1/2/3", "٣/٤", "nan"])
def test_one_text_for_one_amount(text: str) -> None:
    with pytest.raises(ValueError, match="an amount is stored"):
        decode_amount(text)


def test_accounts_compare_exactly() -> None:
    account = Account(budget=Fraction(1), spent=Fraction(2, 3))
    assert account.allows(Fraction(1, 3))
    assert not account.allows(Fraction(1, 3) + Fraction(1, 10**30))
    assert Account(budget=None, spent=Fraction(5)).allows(Fraction(10**12))
    assert Account(budget=Fraction(0), spent=Fraction(5)).allows(Fraction(0))


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00b", "\ud800", "x" * 201, 5, None])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="a name of a data set is 1 to 200 printable"):
        ChargeRequest(name, "1", None, "q", Fraction(1))
    with pytest.raises(InvalidInput, match="version"):
        people(version=name)
    if name is not None:
        with pytest.raises(InvalidInput, match="analyst"):
            ask(analyst=name)


def test_a_question_is_text() -> None:
    with pytest.raises(InvalidInput, match="normal form"):
        ask("")


def test_a_clock_has_a_time_zone() -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        format_time(system_clock().replace(tzinfo=None))

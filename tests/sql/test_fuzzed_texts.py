"""Any text is planned or refused, quickly, and what is twice as long takes twice as much: counted, and by the clock."""

import sys

import pytest

from idios.sql.lexer import MAX_LENGTH
from tests.sql.fuzzed_texts import GROWING, SECONDS, TookTooLong, fit, fuzz, limited, measure, outcome


def test_thousands_of_texts_are_planned_or_refused_quickly():
    assert fuzz(2000, seed=5, told=lambda line: None) == []


def count_calls(sql, number):
    """How many functions are called, those of C included, in reading and planning a text."""
    count = 0

    def called(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    with limited(60):
        sys.setprofile(called)
        try:
            outcome(sql, number)
        finally:
            sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWING)
def test_what_is_twice_as_long_takes_twice_as_much(name):
    make, number = GROWING[name], 3 if "JOIN" in name or name == "ON" else 0
    largest = 4
    while len(make(2 * largest)) <= 5_000:
        largest *= 2
    outcome(make(4), number)  # what is made once, whatever the text, is not counted
    quarter, half, all_of_it = (count_calls(make(largest // part), number) for part in (4, 2, 1))
    grows = all_of_it > 2.6 * max(half, 1000) or all_of_it - half > 2.6 * max(half - quarter, half / 2, 1000)
    assert not grows, (quarter, half, all_of_it)
    for size in (6, 10, 14, 18, 24, 32, 48, MAX_LENGTH):  # what nests is refused beyond some depth
        found, seconds = measure(fit(make, size), number)
        assert seconds <= SECONDS, (size, found)


def never_end():
    while True:
        pass


def test_what_never_ends_is_interrupted():
    with pytest.raises(TookTooLong), limited(0.05):
        never_end()

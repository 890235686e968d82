"""What a data set promises is edited after answers: the sum in the ledger bounds what anyone loses, or it is refused.

Losses are exact: the laws of all that is drawn, on a table and on others in which one or two records differ.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from idios.core.calibration import Added, Level, Mechanism
from idios.core.neighbours import Neighbours
from idios.data.backend import open_source
from idios.errors import DataChanged, LedgerError
from idios.ledger import Ledger, rules
from idios.party import TrustedParty
from idios.plan.question import Plan
from tests.losses import ROUNDING, find_loss
from tests.people import answer_however_few
from tests.test_party_differential import read_backend

LOW, MIDDLE, FAR = 9_999, 10_000, 2**40
TABLE = (*[LOW] * 29, *[MIDDLE] * 2, *[FAR] * 28)
CHANGED = {
    "replace": [(*TABLE[changes:], *[FAR] * changes) for changes in (1, 2)],
    "add-remove": [TABLE[changes:] for changes in (1, 2)],
}
"""One and two records of the least values are replaced by the greatest, or removed."""
COLUMNS = {"x": {"type": "integer", "nullable": False}}
QUESTIONS = ["SELECT MEDIAN(x) FROM t", "SELECT COUNT(*) FROM t"]
LEVELS: dict[str, dict[str, Any]] = {
    "individual": {"protection": "individual"},
    "differential": {"protection": "differential"},
    "group of 2": {"protection": "group", "group": 2},
    "group of 2, flat": {"protection": "group", "group": [1, 1]},
}
PROMISES = {
    f"{level}, {notion}": {**declared, "neighbours": notion.value}
    for level, declared in LEVELS.items()
    for notion in Neighbours
}


@pytest.fixture(autouse=True)
def _however_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_however_few(monkeypatch)


def open_party(promise: str, ledger: Path | None = None) -> TrustedParty:
    given: dict[str, Any] = {"columns": COLUMNS, "check": 0, "budget": 2, "version": "1"}
    return TrustedParty.open({"x": TABLE}, name="t", ledger=ledger, **given, **PROMISES[promise])


@cache
def draw(sql: str, promise: str, epsilon: str, table: tuple[int, ...]) -> Mechanism:
    """What is drawn for a question that is answered with a promise."""
    plan = make_plan(sql, promise, epsilon)
    with open_source({"x": table}, plan.dataset) as backend:
        ((mechanism,),) = read_backend(backend, plan).mechanisms[None, 0]
    return mechanism


@cache
def make_plan(sql: str, promise: str, epsilon: str) -> Plan:
    with open_party(promise) as party:
        return party.make_plan(sql, epsilon)


@cache
def lose(sql: str, answered: str, epsilon: str, promised: str) -> list[float]:
    """What one, two, … records lose that change as one promise says, by an answer that was given with another.

    With noise fitted to the data the promise is for the noise as it was.
    """
    level, _, notion = promised.rpartition(", ")
    here, losses = draw(sql, answered, epsilon, TABLE), []
    for table in CHANGED[notion][: 2 if level.startswith("group") else 1]:
        there = draw(sql, answered, epsilon, table)
        if level != Level.DIFFERENTIAL and isinstance(here, Added) and isinstance(there, Added):
            there = Added(there.value, here.noise)
        losses.append(max(find_loss(here, there), find_loss(there, here)))
    return losses


def limit(promised: str, spent: Fraction) -> list[float]:
    """What the ledger's total promises to one, two, … records."""
    return [float(spent), float(spent if promised.startswith("group of 2, flat") else 2 * spent)]


def test_one_median_loses_two_with_the_other_neighbours_and_the_edit_is_refused(tmp_path: Path) -> None:
    """2.0 and 0.997 of a budget of 2, which would read "2 of 2 spent" if both could be asked."""
    median, before, after = QUESTIONS[0], "differential, add-remove", "differential, replace"
    both = TABLE, CHANGED["replace"][0]
    first, second = (find_loss(*(draw(median, each, "1", table) for table in both)) for each in (before, after))
    assert 1.9999 < first <= 2
    assert 0.997 < second <= 1
    with open_party(before, tmp_path / "ledger.db") as party:
        party.query(median, 1)
    with pytest.raises(
        LedgerError, match=r'neighbours = "replace", but was asked about with neighbours = "add-remove"'
    ):
        open_party(after, tmp_path / "ledger.db")
    with open_party(before, tmp_path / "ledger.db") as party:
        assert party.ledger.balance("t").epsilon.spent == 1
        party.query(median, "0.5")
        assert party.ledger.verify().ok


def test_the_number_of_records_is_not_told_after_it_was_protected(tmp_path: Path) -> None:
    count = QUESTIONS[1]
    assert max(lose(count, "differential, replace", "1", "differential, add-remove")) == float("inf")
    with open_party("differential, add-remove", tmp_path / "ledger.db") as party:
        party.query(count, 1)
    with pytest.raises(LedgerError, match="was asked about with"):
        open_party("differential, replace", tmp_path / "ledger.db")


def test_spending_is_not_shown_as_if_it_were_of_another_level(tmp_path: Path) -> None:
    with open_party("individual, replace", tmp_path / "ledger.db") as party:
        party.query(QUESTIONS[0], 1)
        assert party.ledger.balance("t").promise == "individual, replace"
    with pytest.raises(LedgerError, match=r'protection = "differential", but was asked about .* "individual"'):
        open_party("differential, replace", tmp_path / "ledger.db")


def list_steps(seed: int) -> Iterator[tuple[str, str, str]]:
    """Questions, each after the data set was perhaps declared otherwise."""
    rng = random.Random(seed)
    promise = rng.choice([*PROMISES])
    for _ in range(rng.randint(2, 4)):
        if rng.random() < 0.5:
            promise = rng.choice([*PROMISES])
        yield rng.choice(QUESTIONS), promise, rng.choice(["0.1", "0.5"])


def follow(seed: int, path: Path) -> tuple[bool, int]:
    """Whether the ledger's total bounds all losses under the promise on record, and how many edits were refused."""
    asked: dict[tuple[str, str, str], None] = {}  # a second time it is free
    refused = 0
    for sql, promise, epsilon in list_steps(seed):
        try:
            party = open_party(promise, path)
        except LedgerError:
            refused += 1
            continue
        with party:
            party.query(sql, epsilon)
            asked[sql, promise, epsilon] = None
    with Ledger.open(f"sqlite:///{path}") as ledger:
        balance = ledger.balance("t")
        assert ledger.verify().ok
    losses = zip(*(lose(*question, balance.promise) for question in asked), strict=True)
    allowed = limit(balance.promise, balance.epsilon.spent)
    return all(sum(each) <= most + ROUNDING for each, most in zip(losses, allowed, strict=False)), refused


@pytest.mark.slow
def test_the_total_bounds_the_loss_or_the_edit_is_refused(tmp_path: Path) -> None:
    results = [follow(seed, tmp_path / f"{seed}.db") for seed in range(24)]
    assert all(bounded for bounded, _ in results)
    assert sum(refused for _, refused in results) > 10


@pytest.mark.slow
def test_an_edit_that_is_let_through_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_refuse_other_promise", lambda *_: None)
    results = [follow(seed, tmp_path / f"{seed}.db") for seed in range(24)]
    assert sum(not bounded for bounded, _ in results) > 3


def test_a_process_that_opened_it_before_does_not_answer_with_the_promise_of_then(tmp_path: Path) -> None:
    """Two servers of one ledger: the second was declared otherwise while nothing was answered yet."""
    with (
        open_party("differential, replace", tmp_path / "ledger.db") as first,
        open_party("differential, add-remove", tmp_path / "ledger.db") as second,
    ):
        for call in (first.query, first.quote):
            with pytest.raises(DataChanged, match="'t' was declared with another promise since it was opened"):
                call(QUESTIONS[0], 1)
        second.query(QUESTIONS[0], 1)
        with pytest.raises(DataChanged):
            first.query(QUESTIONS[0], 1)
        assert second.ledger.balance("t").epsilon.spent == 1

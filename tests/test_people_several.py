"""Whole answers about people of whom each has several records, through SQL: what neighbours tell apart, exactly.

A person may have as many records as ``rows`` or ``groups`` say, or one for each of their evenly spaced values, of which
there are two here. Of every two tables that differ in one person:

1. the reduced tables differ in at most so many records, each of which comes, leaves or is another;
2. envelopes hold what the other table gives;
3. the laws of whole answers differ by at most what is promised to a person: calibrated on each table where mechanisms
   are differentially private, frozen where noise is fitted to the data.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeVar

import pytest

from idios.core.calibration import Added, Protection
from idios.core.distributions import DiscreteGaussian
from idios.core.guarantee import Guarantee
from idios.data.backend import Backend, open_source
from idios.data.engines.sql_backend import SqlBackend
from idios.data.sql import reduction_sql
from idios.party import TrustedParty
from idios.plan import reductions
from idios.plan.question import Plan
from tests.conformance.test_people import read_points
from tests.people import Person, Table, answer_however_few, forget_questions, make_data
from tests.test_party_checks import freeze
from tests.test_party_concentrated import NOTHING, WITHIN, diverge_clipped, diverge_mechanisms
from tests.test_party_differential import Drawing, lose, read_backend
from tests.test_people_enumeration import keep_everyone

PEOPLE: list[Person] = [
    ((0, 1, "a", 1),),
    ((8, 1, "b", 1),),
    ((None, 1, "a", 1),),
    ((8, 0, None, 1),),
    ((0, 1, "a", 1), (8, 0, "b", 2)),
    ((8, 1, "b", 1), (8, 1, "a", 2), (1, 1, None, None)),
]
COLUMNS: dict[str, Any] = {
    "x": {"type": "integer", "bounds": [0, 8]},
    "y": {"type": "integer", "bounds": [0, 1], "nullable": False},
    "g": {"type": "category", "values": ["a", "b"]},
    "t": {"type": "integer", "bounds": [1, 2], "nullable": False},
}
UNBOUNDED = COLUMNS | {"x": {"type": "integer"}}
EPSILONS = {"pure": Fraction(2), "concentrated": Fraction(1, 2)}
NOTIONS = ["replace", "add-remove"]
SPREAD = 2
"""As how many values a person's rows are read here."""
OTHERS: Table = (((0, 1, "a", 1), (8, 1, "b", 1)), ((8, 1, "a", 2),), ((1, 1, "b", 1), (0, 0, "b", 2)))
"""People who are in every table where noise is fitted to the data."""
PERSON = "name, number"

Declared = Mapping[str, Any]
Asked = tuple[str, Declared]

OF_ROWS: list[Asked] = [
    ("SELECT COUNT(*), SUM(x) FROM t WHERE y = 1", {"rows": 2}),
    ("SELECT AVG(x), VARIANCE(x) FROM t", {"rows": 2}),
    ("SELECT COUNT(*), MODE(g), COUNT(DISTINCT g) FROM t", {"rows": 2}),
    ("SELECT g, MEDIAN(x), COUNT(*) FROM t GROUP BY g", {"rows": 2}),
    ("SELECT MEDIAN(x), MAX(t) FROM t WHERE y = 1", {"rows": 1}),
    ("SELECT SUM(t), AVG(t), MODE(g) FROM t", {"rows": 1}),
    ("SELECT BIN(x, 4) AS b, SUM(t) FROM t GROUP BY b", {"rows": 2}),
]
OF_GROUPS: list[Asked] = [
    ("SELECT g, COUNT(*) FROM t GROUP BY g", {"groups": 2}),
    ("SELECT g, SUM(x), AVG(x) FROM t WHERE y = 1 GROUP BY g", {"groups": 1}),
    (f"SELECT g, MEDIAN(s), MODE(g) FROM (SELECT g, MAX(x) AS s FROM t GROUP BY {PERSON}, g) GROUP BY g",
     {"groups": 2}),
    (f"SELECT SUM(s), COUNT(*) FROM (SELECT g, LAST(x) AS s FROM t GROUP BY {PERSON}, g) WHERE s > 0", {"groups": 2}),
    (f"SELECT COUNT(*) FROM (SELECT COUNT(*) AS n, g FROM t GROUP BY {PERSON}, g) WHERE g = 'a' OR n > 1",
     {"groups": 1}),
]  # fmt: skip
OF_VALUES: list[Asked] = [
    ("SELECT MEDIAN(x) FROM t", {}),
    ("SELECT QUANTILE(x, 0.25), TRIMMED_MEAN(x, 0.3) FROM t WHERE y = 1", {}),
    ("SELECT g, MEDIAN(x) FROM t GROUP BY g", {"groups": 2}),
    ("SELECT g, QUANTILE(t, 0.95) FROM t GROUP BY g", {"groups": 1}),
]
WITHOUT_BOUNDS: list[Asked] = [
    ("SELECT COUNT(*) FROM t", {}),
    ("SELECT SUM(x) FROM t WHERE y = 1", {}),
    ("SELECT AVG(x), COUNT(x) FROM t", {}),
    ("SELECT SUM(x), AVG(x) FROM t", {"rows": 2}),
    ("SELECT g, SUM(x) FROM t GROUP BY g", {"groups": 2}),
]
SEVERAL = [*OF_ROWS, *OF_GROUPS, *OF_VALUES]
BACKENDS: dict[tuple[Table, bool], Backend] = {}
PARTIES: dict[str, TrustedParty] = {}


@pytest.fixture(scope="module", autouse=True)
def _opened() -> Iterator[None]:
    yield
    for held in (BACKENDS, PARTIES):
        for each in held.values():
            each.close()
        held.clear()


@pytest.fixture(autouse=True)
def _few_people_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_however_few(monkeypatch)
    for module in (reductions, reduction_sql):
        monkeypatch.setattr(module, "SPREAD_VALUES", SPREAD)


def open_party(notion: str, size: int, accounting: str = "pure", **declared: Any) -> TrustedParty:
    key = json.dumps([notion, size, accounting, declared])
    if key not in PARTIES:
        given: dict[str, Any] = {"protection": "differential", "columns": COLUMNS} | declared
        PARTIES[key] = TrustedParty.open(
            make_data(tuple(PEOPLE[:1] * size)),
            name="t",
            unit=["name", "number"],
            order="t",
            neighbours=notion,
            accounting=accounting,
            check=0,
            budget=10**6 if accounting == "pure" else {"epsilon": 1000, "delta": "1e-6"},
            min_epsilon="0.0001",
            fineness=60,
            parameters={"trim": False, "quantile": False, "k": False},
            **given,
        )
    return PARTIES[key]


def make_plan(sql: str, notion: str, size: int = 2, accounting: str = "pure", **declared: Any) -> Plan:
    return open_party(notion, size, accounting, **declared).make_plan(sql, EPSILONS[accounting])


def open_table(table: Table, plan: Plan) -> Backend:
    bounded = plan.dataset.reduction is not None and plan.dataset.reduction.base["x"].domain.bounded
    if (table, bounded) not in BACKENDS:
        base = open_party("replace", 1, columns=COLUMNS if bounded else UNBOUNDED).datasets["t"].dataset
        BACKENDS[table, bounded] = open_source(make_data(table), base)
    return BACKENDS[table, bounded]


def list_tables(notion: str) -> list[Table]:
    """Every table of at most two people, by their names, as what is kept of someone follows from their name too."""
    tables = list(product([(), *PEOPLE], [(), *PEOPLE[3:]]))
    return tables[1:] if notion == "replace" else tables


def find_distance(one: Table, two: Table, notion: str) -> int | None:
    """How many people come or leave, or how many are replaced by others, who may have other names."""
    changed = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    left, entered = sum(a != () for a, _ in changed), sum(b != () for _, b in changed)
    if notion == "add-remove":
        return left + entered
    return left if left == entered else None


Read = TypeVar("Read")


def pair_neighbours(read: Mapping[Table, Read], notion: str, group: int = 1) -> Iterator[tuple[Read, Read, int]]:
    """What was read of every two tables that differ in a few people, and in how many."""
    for one, two in product(read, repeat=2):
        distance = find_distance(one, two, notion)
        if distance and distance <= group:
            yield read[one], read[two], distance


def count_people(table: Table) -> int:
    return sum(person != () for person in table)


def read_all(sql: str, notion: str, **declared: Any) -> dict[Table, Drawing]:
    """What is drawn of every table; where noise is fitted to the data, beside more people, without whom it has none."""
    others = () if declared.get("protection", "differential") == "differential" else OTHERS
    sizes = range(notion == "replace", 3)
    plans = {size: make_plan(sql, notion, size + len(others), **declared) for size in sizes}
    found = {}
    for table in list_tables(notion):
        plan = plans[count_people(table)]
        found[table] = read_backend(open_table((*table, *others), plan), plan)
    return found


# ------------------------------------------------------------------------------------------------------------ records


def differ(one: Counter[Any], two: Counter[Any]) -> tuple[int, int]:
    """How many records each has that the other has not."""
    return (one - two).total(), (two - one).total()


def compare_records(sql: str, notion: str, **declared: Any) -> int:
    """The most records in which neighbours differ, which must be at most those that a person has."""
    plan, worst = make_plan(sql, notion, **declared), 0
    read = {}
    for table in list_tables(notion):
        backend = open_table(table, plan)
        assert isinstance(backend, SqlBackend)
        read[table] = Counter(read_points(backend, plan))
    for one, two, _ in pair_neighbours(read, notion):
        left, entered = differ(one, two)
        assert (left if notion == "replace" else left + entered) <= plan.dataset.records, (one, two)
        worst = max(worst, left, entered)
    return worst


@pytest.mark.slow
def test_neighbours_differ_in_as_many_records_as_a_person_has() -> None:
    for number, (sql, declared) in enumerate(SEVERAL):
        plan = make_plan(sql, "add-remove", **declared)
        assert plan.dataset.records == declared.get("rows") or declared.get("groups", 1) * (
            SPREAD if (sql, declared) in OF_VALUES else 1
        )
        assert compare_records(sql, NOTIONS[number % 2], **declared) == plan.dataset.records, sql


# ------------------------------------------------------------------------------------------------------------- losses


def freeze_noise(one: Drawing, two: Drawing) -> Drawing:
    """What would be drawn of the other table, with the noise that is fitted to this one."""
    fitted = [aggregate.fitted for aggregate in one.plan.aggregates]
    mechanisms = {
        outcome: [
            [
                freeze(mine[cell][i], one.plan.aggregates[i], two.summaries[cell][i]) if frozen else mechanism
                for i, (frozen, mechanism) in enumerate(zip(fitted, theirs, strict=True))
            ]
            for cell, theirs in enumerate(two.mechanisms[outcome])
        ]
        for outcome, mine in one.mechanisms.items()
    }
    return replace(two, mechanisms=mechanisms)


def check_envelopes(one: Drawing, two: Drawing, distance: int) -> None:
    """Whether envelopes hold what the other table gives."""
    reach = distance * one.plan.dataset.records
    for here, there in zip(one.summaries, two.summaries, strict=True):
        for aggregate, summary, other in zip(one.plan.aggregates, here, there, strict=True):
            if aggregate.fitted:
                envelope, value = (aggregate.statistic.envelope(each, reach, 60) for each in (summary, other))
                assert value.value is None or envelope.lows[reach] <= value.value <= envelope.highs[reach]


def diverge(one: Drawing, two: Drawing) -> float:
    """The greatest D_α/α of two answers: of Gaussian noise around values d apart d²/2σ² at every order."""
    mine, theirs = (next(iter(each.mechanisms.values())) for each in (one, two))
    total, shifted = NOTHING.copy(), Fraction(0)
    for (i, aggregate), cell in product(enumerate(one.plan.aggregates), range(len(one.summaries))):
        here, there = mine[cell][i], theirs[cell][i]
        if aggregate.choice.clipping:
            if not cell:  # of all cells together
                total += diverge_clipped(one, two, i, aggregate.choice.clipping)
        elif isinstance(here, Added) and isinstance(here.noise, DiscreteGaussian):
            assert isinstance(there, Added)
            assert there.noise == here.noise
            shifted += (here.value - there.value) ** 2 / (2 * here.noise.variance)
        else:
            total += diverge_mechanisms(here, there)
    return float(total.max()) + float(shifted)


def lose_most(sql: str, notion: str, **declared: Any) -> float:
    """The greatest loss to a person, or to a group of them, in units of what is promised to them."""
    drawings, worst = read_all(sql, notion, **declared), 0.0
    for one, two, distance in pair_neighbours(drawings, notion, declared.get("group", 1)):
        check_envelopes(one, two, distance)
        promised, two = one.plan.guarantee, freeze_noise(one, two)
        if one.plan.dataset.concentrated:
            loss, most = diverge(one, two), promised.protect_rho(distance)
        else:
            loss, most = lose(one, two), promised.protect(distance)
        worst = max(worst, loss / float(most or one.plan.asked))
    return worst


def compare_losses(asked: Sequence[Asked], parity: int, **declared: Any) -> None:
    """Losses of questions, every second of them with another notion of neighbours."""
    for number, (sql, own) in enumerate(asked):
        notion = NOTIONS[(number + parity) % 2]
        assert 0.0005 < lose_most(sql, notion, **own, **declared) <= WITHIN, (sql, notion)


@pytest.mark.slow
def test_the_loss_to_a_person_is_at_most_epsilon() -> None:
    compare_losses(SEVERAL, 0)


@pytest.mark.slow
def test_the_loss_to_a_person_is_at_most_rho() -> None:
    compare_losses([*SEVERAL, *WITHOUT_BOUNDS], 1, accounting="concentrated")


FITTED = [(sql, own) for sql, own in SEVERAL if any(name in sql for name in ("MEDIAN", "QUANTILE", "VARIANCE"))]


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_loss_in_cells_apart_is_attained(notion: str) -> None:
    """Whoever is in both groups loses in each what one record loses there, and not four times as much."""
    sql = f"SELECT g, COUNT(*) FROM (SELECT g FROM t GROUP BY {PERSON}, g) GROUP BY g"
    worst = lose_most(sql, notion, accounting="concentrated", groups=2)
    assert (0.9 if notion == "add-remove" else 0.45) < worst <= WITHIN


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ["pure", "concentrated"])
def test_the_loss_with_noise_that_is_fitted_to_a_person(accounting: str) -> None:
    compare_losses(FITTED, accounting == "pure", protection="individual", accounting=accounting)


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ["pure", "concentrated"])
def test_the_loss_with_noise_that_is_fitted_to_groups_of_people(accounting: str) -> None:
    chosen = FITTED[accounting == "pure" :: 2]
    compare_losses(chosen, accounting == "concentrated", protection="group", group=2, accounting=accounting)


# ---------------------------------------------------------------------------------------------------- planted errors


def rewrite(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Plant other SQL where a limit is taken."""
    written: Callable[..., str] = getattr(reduction_sql._Writer, name)

    def write(self: Any, *given: Any) -> str:
        text = written(self, *given)
        if old not in text:
            raise LookupError(f"{old} is not in {text}")
        return text.replace(old, new)

    monkeypatch.setattr(reduction_sql._Writer, name, write)


def test_a_limit_by_position_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if rows were told apart by their place among all rows, which those of others decide."""
    alike = '(PARTITION BY "u0", "u1", "v0" ORDER BY "u0", "u1")'
    rewrite(monkeypatch, "_keep_rows", alike, '(ORDER BY "u0", "u1", "v0")')
    with pytest.raises(AssertionError):
        compare_records("SELECT MEDIAN(x) FROM t", "add-remove", rows=2)


def test_a_limit_of_all_rows_together_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite(monkeypatch, "_keep_rows", '(PARTITION BY "u0", "u1" ORDER BY hash', "(ORDER BY hash")
    with pytest.raises(AssertionError):
        compare_records("SELECT MEDIAN(x) FROM t", "add-remove", rows=1)


def test_a_limit_within_every_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there is none of groups."""
    person = 'OVER (PARTITION BY "u0", "u1"'
    rewrite(monkeypatch, "_group", f"ROW_NUMBER() {person}", f'ROW_NUMBER() {person}, "v0"')
    with pytest.raises(AssertionError):
        compare_records("SELECT g, COUNT(*) FROM t GROUP BY g", "add-remove", groups=1)


@pytest.mark.parametrize(("sql", "declared"), [OF_ROWS[0], OF_GROUPS[3], OF_VALUES[0]])
def test_a_person_who_counts_as_one_record_is_caught(
    monkeypatch: pytest.MonkeyPatch, sql: str, declared: Declared
) -> None:
    forget_questions(monkeypatch)
    protect = Protection.protect_records
    monkeypatch.setattr(Protection, "protect_records", lambda self, each: protect(self, 1))
    monkeypatch.setattr(Guarantee, "protect_people", lambda self, records, level: self)
    assert lose_most(sql, "add-remove", **declared) > 1.9


def test_records_in_one_cell_that_count_as_apart_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the keys of a reduction were those of the question."""
    sql = f"SELECT COUNT(*) FROM (SELECT g FROM t GROUP BY {PERSON}, g)"
    assert 0.9 < lose_most(sql, "add-remove", accounting="concentrated", groups=2) <= WITHIN
    monkeypatch.setattr(reductions.Reduction, "count_apart", lambda *_: 2)
    assert lose_most(sql, "add-remove", accounting="concentrated", groups=2) > 1.9


def test_a_public_size_in_spite_of_a_limit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of values of at least 1 moves by more when rows come than when they are replaced."""
    sql = "SELECT SUM(t) FROM t WHERE y = 1"
    assert 0.7 < lose_most(sql, "replace", rows=2) <= WITHIN
    keep_everyone(monkeypatch)
    assert lose_most(sql, "replace", rows=2) > 1.4


def test_a_public_number_of_records_where_everyone_has_several_is_caught() -> None:
    """Everyone has one record where one row counts: not so two, where two count."""
    everyone = make_plan("SELECT SUM(t) FROM t", "replace", rows=1).dataset
    assert (everyone.has_everyone, everyone.size) == (True, 2)
    for sql, declared in (("SELECT SUM(t) FROM t", {"rows": 2}), ("SELECT SUM(t) FROM t WHERE y = 1", {"rows": 1})):
        several = make_plan(sql, "replace", **declared).dataset
        assert (several.has_everyone, several.size) == (False, None)

"""What a question computes is forgotten with it, also where another question is asked within it."""

import functools
import gc

import pyarrow as pa
import pytest

from idios.core.question_memory import one_question, remembered
from idios.party import TrustedParty

PEOPLE = pa.table({"income": list(range(500)), "age": [i % 90 for i in range(500)]})
QUESTIONS = (
    "SELECT MEDIAN(income) FROM people WHERE income > {literal}",
    "SELECT AVG(income), STDDEV(income), COUNT(*) FROM people WHERE age > {literal}",
    "SELECT SUM(age), KTH_LARGEST(age, 20), QUANTILE(age, 0.05) FROM people WHERE age > {literal}",
)
ACCOUNTINGS = ({"budget": 1000}, {"budget": {"epsilon": 1000, "delta": "1e-6"}, "accounting": "concentrated"})


def test_each_question_begins_with_nothing() -> None:
    calls: list[int] = []

    @remembered(2)
    def note(number: int) -> int:
        calls.append(number)
        return number

    for _ in range(2):
        with one_question():
            note(1)
            with one_question():
                assert note(1) == 1
            note(1)
    assert calls == [1, 1]
    assert note(3) == note(3) == 3
    assert calls == [1, 1, 3]


def count_computed() -> dict[str, int]:
    """By function of the package that keeps results in the process, how many it has computed."""
    kept = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
    own = [each for each in kept if each.__module__.startswith("idios.core")]
    return {f"{each.__module__}.{each.__qualname__}": each.cache_info().misses for each in own}


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=("pure", "concentrated"))
@pytest.mark.parametrize("sql", QUESTIONS)
def test_nothing_of_what_is_drafted_is_kept_for_another_caller(sql: str, accounting: dict[str, object]) -> None:
    """Neither literals nor ε: else the time of a quote would tell who drafted them before."""
    columns = {"income": {"type": "integer"}, "age": {"type": "integer", "bounds": [0, 120]}}
    with TrustedParty.open(PEOPLE, name="people", columns=columns, **accounting) as party:  # type: ignore[arg-type]
        for free in (party.quote, party.sandbox):
            free(sql.format(literal=3), 8)
            before = count_computed()
            free(sql.format(literal=17), "9.13")
            assert {name for name, count in count_computed().items() if count > before.get(name, 0)} == set()

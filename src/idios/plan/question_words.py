"""A stored question in words, read back from its normal form (``normal_form``).

``describe_question`` says what it asked, ``describe_selection`` what it selected. These words are public facts about
what was released: whoever may see the answer may see them, whereas the SQL of one analyst is shown to nobody else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from idios.core import statistics
from idios.core.domain import Kind
from idios.core.exact import text
from idios.core.neighbours import to_plural
from idios.declare.dates import format_value
from idios.plan.reductions import SEVERAL, SPREAD, describe_value

MAX_DESCRIBED_NODES = 12
MAX_DESCRIPTION = 240
LONG_CONDITION = "under a longer condition"

WORDS = {
    "count": "number of records",
    "distinct_count": "number of distinct values of {column}",
    "iqr": "interquartile range of {column}",
    "kth_smallest": "k-th smallest {column}, k = {argument}",
    "kth_largest": "k-th largest {column}, k = {argument}",
    "trimmed_mean": "mean of {column} with {argument} trimmed off each end",
    "winsorized_mean": "mean of {column} with {argument} winsorized at each end",
    "quantile": "{argument} quantile of {column}",
    "discrete_quantile": "discrete {argument} quantile of {column}",
}
"""How a statistic is said; otherwise by its name."""


Form: TypeAlias = str | Mapping[str, Any]
"""A normal form, or what a plan holds of it (``Plan.form``), which need not be read back."""


@lru_cache(maxsize=2)
def _read_text(form: str) -> Any:
    """A normal form, which is long where there are many groups; nobody changes what is read."""
    return json.loads(form)


def _read_form(form: Form) -> Any:
    return _read_text(form) if isinstance(form, str) else form


def name_statistics(form: Form) -> tuple[str, ...]:
    """Each statistic of a question as a call in SQL, in the order of release, whatever the analysts called them.

    >>> name_statistics('{"statistics": [["count", null, null, 0, "1"], ["kth_largest", "2", "age", 0, "1"]]}')
    ('COUNT(*)', 'KTH_LARGEST(age, 2)')
    """
    question = _read_form(form)
    names = [_write_call(*statistic[:3]) for statistic in question["statistics"]]
    # counts of records that differ in what they select, such as COUNT(*) and COUNT(income)
    return tuple(
        f"{name} {_describe_conditions(question, [number])}".strip() if names.count(name) > 1 else name
        for number, name in enumerate(names)
    )


def _write_call(name: str, argument: str | None, column: str | None) -> str:
    if name == "count":
        return "COUNT(*)"
    statistic = next((each for each in statistics.STATISTICS if each.name == name and each.spellings), None)
    if statistic is None:  # what a later version asked
        return f"{name}({column or '*'})"
    return statistic.spellings[0].write(column or "*", argument if statistic.parameter else None)


def describe_question(form: Form) -> str:
    """A question in words, read back from its normal form.

    >>> describe_question('{"columns": {"age": ["integer", "1", 0, 120, 0, false]}, "groups": [], "statistics": '
    ... '[["median", "0.5", "income", 0, "1"]], "selections": '
    ... '[[["age", [[0, 29, false], [30, 40, true], [41, 120, false]], null]]]}')
    'median of income where age is from 30 to 40'
    """
    question = _read_form(form)
    by_conditions: dict[str, dict[str, None]] = {}
    for number, statistic in enumerate(question["statistics"]):
        words = by_conditions.setdefault(_describe_conditions(question, [number]), {})
        words[_describe_statistic(question, *statistic[:3])] = None
    asked = "; ".join(f"{_list_words(list(words))} {where}".strip() for where, words in by_conditions.items())
    return _add_keys(question, asked)


def put_into_words(form: Form) -> tuple[str, ...]:
    """Each statistic in words, without its conditions, in the order of release."""
    question = _read_form(form)
    return tuple(_describe_statistic(question, *statistic[:3]) for statistic in question["statistics"])


def describe_statistics(form: Form) -> tuple[str, ...]:
    """The question that each statistic answers, in words, in the order of release."""
    question = _read_form(form)
    return tuple(
        _add_keys(
            question,
            f"{_describe_statistic(question, *statistic[:3])} {_describe_conditions(question, [number])}".strip(),
        )
        for number, statistic in enumerate(question["statistics"])
    )


def _list_words(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _add_keys(question: Mapping[str, Any], asked: str) -> str:
    keys = [_describe_key(column, groups, question["columns"][column]) for column, groups in question["groups"]]
    checked = f"distance of the answer with ε = {question['answered with']} to: " if "checks" in question else ""
    rows = _describe_rows(question)
    return f"{checked}{asked}" + (f", by {' and '.join(keys)}" if keys else "") + (f", of {rows}" if rows else "")


def _describe_statistic(question: Mapping[str, Any], name: str, argument: str | None, column: str | None) -> str:
    """A statistic in words; of people, their values are what it is of."""
    words, people = WORDS.get(name, f"{name.replace('_', ' ')} of {{column}}"), question.get("people")
    if people is None:
        return words.format(column=column, argument=argument)
    if name == "count":
        keys = [people["values"].get(column, [None, None])[1] for column, _ in question["groups"]]
        apart = set(people.get("by", ())) <= set(keys)
        several = to_plural(people["word"]) + ("" if apart else " in each of their groups")
        return "number of rows" if "kept" in people else f"number of {several}"
    value = people["values"].get(column)
    alone = value is None or value[0] in SEVERAL
    owned = (column if value is None else value[1]) if alone else f"each {people['word']}'s {describe_value(*value)}"
    return words.format(column=owned, argument=argument)


def _describe_rows(question: Mapping[str, Any]) -> str:
    """Which rows of people are read, if not all of them."""
    people = question.get("people")
    if people is None:
        return ""
    rows = f"rows of {_list_words(list(people['join']['tables']))}" if "join" in people else "rows"
    limited = ""
    if "kept" in people:
        limited = f", at most {people['kept']} of each {people['word']}"
    elif "by" in people:
        limited = f", in at most {people['groups']} groups of each {people['word']}"
    elif any(value[0] == SPREAD for value in people["values"].values()):
        limited = f" in which each {people['word']} counts alike"
    if limited or "join" in people or not isinstance(people["rows"], bool):
        return f"{rows}{_describe_selected_rows(people)}{limited}"
    return ""


def _describe_selected_rows(people: Mapping[str, Any]) -> str:
    """Which rows are read, if not all of them."""
    if isinstance(people["rows"], bool):
        return ""
    if len(people["rows"]) > MAX_DESCRIBED_NODES:
        return f" {LONG_CONDITION}"
    description = f" where {_describe_node(people['rows'], 0, people['columns'], set())}"
    return description if len(description) <= MAX_DESCRIPTION else f" {LONG_CONDITION}"


def _describe_key(column: str, groups: Sequence[Sequence[Any]], declared: Sequence[Any]) -> str:
    """The column, and of bins the first and the last of them."""
    if declared[0] == Kind.CATEGORY:
        return column
    ends = [_describe_interval([*declared[:2], None, None], group[0][0], group[-1][1]) for group in groups if group]
    return (
        f"{column} in {len(ends)} bins, {ends[0]}, …, {ends[-1]}" if len(ends) > 2 else f"{column}, {' or '.join(ends)}"
    )


def describe_selection(form: Form) -> str:
    """The conditions of a question in words, read back from its normal form; empty if it was about all records.

    >>> describe_selection('{"columns": {"age": ["integer", "1", 0, 120, 0, false]}, "groups": [], "statistics": '
    ... '[["count", null, null, 0, "1"]], "selections": '
    ... '[[["age", [[0, 29, false], [30, 40, true], [41, 120, false]], null]]]}')
    'where age is from 30 to 40'
    """
    question = _read_form(form)
    rows = _describe_rows(question)
    parts = [_describe_conditions(question, None), f"of {rows}" if rows else ""]
    return ", ".join(part for part in parts if part)


def _describe_conditions(question: Mapping[str, Any], numbers: Sequence[int] | None) -> str:
    """The conditions of some statistics; None: of all."""
    chosen = question["statistics"] if numbers is None else [question["statistics"][number] for number in numbers]
    # a statistic of a column and a key already say that the column is known
    implied = {column for _, _, column, *_ in chosen} | {column for column, _ in question["groups"]}
    conditions: dict[str, None] = {}
    for place in sorted({statistic[3] for statistic in chosen}):
        diagram = question["selections"][place]
        if isinstance(diagram, bool):
            continue
        if len(diagram) > MAX_DESCRIBED_NODES:
            return LONG_CONDITION
        if condition := _describe_node(diagram, 0, question["columns"], implied):
            conditions[condition] = None
    description = "where " + "; or for some statistics ".join(conditions) if conditions else ""
    return description if len(description) <= MAX_DESCRIPTION else LONG_CONDITION


def _describe_node(diagram: Sequence[Any], at: int, columns: Mapping[str, Any], implied: set[str]) -> str:
    """What leads from one node to true; empty if everything does.

    A node asks one column and leads, by interval of its grid or for a missing value, to another node, to true or to
    false.
    """
    column, intervals, null_goal = diagram[at]
    intervals_to: dict[str, list[tuple[int | None, int | None]]] = {}
    for low, high, goal in intervals:
        # as JSON text: True is equal to 1 in Python, and 1 is a node
        intervals_to.setdefault(json.dumps(goal), []).append((low, high))
    missing_to = json.dumps(null_goal)
    alternatives = []
    for goal in dict.fromkeys([*intervals_to, *([missing_to] if null_goal is not None else [])]):
        if goal == "false":
            continue
        leading = intervals_to.get(goal, [])
        everything = len(leading) == len(intervals)
        own = _describe_values(column, columns[column], leading, missing_to == goal, everything, column in implied)
        rest = "" if goal == "true" else _describe_node(diagram, int(goal), columns, implied)
        alternatives.append(" and ".join(part for part in (own, rest) if part))
    if len(alternatives) == 1:
        return alternatives[0]
    return "(" + " or ".join(condition or "anything" for condition in alternatives) + ")"


def _describe_values(
    column: str,
    declared: Sequence[Any],
    intervals: Sequence[tuple[int | None, int | None]],
    missing: bool,
    everything: bool,
    implied: bool,
) -> str:
    if everything:
        return "" if missing or implied else f"{column} is known"
    if declared[0] == Kind.CATEGORY:
        names = [declared[1][point] for low, high in intervals for point in range(low or 0, (high or 0) + 1)]
        parts = [" or ".join(names)] if names else []
    else:
        parts = [_describe_interval(declared, low, high) for low, high in intervals]
    return f"{column} is " + " or ".join([*parts, *(["missing"] if missing else [])])


def _describe_interval(declared: Sequence[Any], low: int | None, high: int | None) -> str:
    kind, step, lower, upper = Kind(declared[0]), Fraction(declared[1]), declared[2], declared[3]

    def format_point(point: int) -> str:
        value = format_value(step * point, kind)
        return value if isinstance(value, str) else str(text(value))

    if low == high and low is not None:
        return format_point(low)
    if low is None or low == lower:
        return f"at most {format_point(high)}" if high is not None else "known"
    if high is None or high == upper:
        return f"at least {format_point(low)}"
    return f"from {format_point(low)} to {format_point(high)}"

"""What a stored question selected, in words, read back from its normal form.

A selection is a decision diagram: each node asks one column and leads, by interval of its grid or for a missing value,
to another node, to true or to false.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from idios.core.exact import text

MOST_NODES = 12
LONGEST = 240
LONGER = "under a longer condition"

Node = tuple[str, Sequence[tuple[int | None, int | None, Any]], Any]


def selected(question: str) -> str:
    """The conditions of a question, empty if it was about all records.

    >>> selected('{"columns": {"age": ["integer", "1", 0, 120, false]}, "groups": [], "statistics": [["count", null, '
    ... 'null, 0, "1", "0"]], "selections": [[["age", [[0, 29, false], [30, 40, true], [41, 120, false]], null]]]}')
    'where age is from 30 to 40'
    """
    form = json.loads(question)
    implied = {one[2] for one in form["statistics"]} | {group[0] for group in form["groups"]}
    found = []
    for diagram in form["selections"]:
        if isinstance(diagram, bool):
            continue
        if len(diagram) > MOST_NODES:
            return LONGER
        said = _said(diagram, 0, form["columns"], implied)
        if said:
            found.append(said)
    shown = "where " + "; or for some statistics ".join(dict.fromkeys(found)) if found else ""
    return shown if len(shown) <= LONGEST else LONGER


def _said(diagram: Sequence[Node], at: int, columns: dict[str, Any], implied: set[str]) -> str:
    """What leads from one node to true; empty if everything does."""
    column, intervals, missing = diagram[at]
    ways: dict[Any, list[tuple[int | None, int | None]]] = {}
    for low, high, target in intervals:
        # True is equal to 1 in Python, and 1 is a node.
        ways.setdefault(json.dumps(target), []).append((low, high))
    absent = json.dumps(missing)
    alternatives = []
    for target in dict.fromkeys([*ways, *([absent] if missing is not None else [])]):
        if target == "false":
            continue
        everything = len(ways.get(target, ())) == len(intervals)
        own = _phrase(column, columns[column], ways.get(target, []), absent == target, everything, column in implied)
        rest = "" if target == "true" else _said(diagram, int(target), columns, implied)
        alternatives.append(" and ".join(part for part in (own, rest) if part))
    if len(alternatives) == 1:
        return alternatives[0]
    return "(" + " or ".join(one or "anything" for one in alternatives) + ")"


def _phrase(
    column: str,
    declared: Sequence[Any],
    intervals: Sequence[tuple[int | None, int | None]],
    missing: bool,
    everything: bool,
    implied: bool,
) -> str:
    if everything:
        return "" if missing or implied else f"{column} is known"
    if declared[0] == "category":
        names = [declared[1][point] for low, high in intervals for point in range(low or 0, (high or 0) + 1)]
        parts = [" or ".join(names)] if names else []
    else:
        parts = [_interval(declared, low, high) for low, high in intervals]
    return f"{column} is " + " or ".join([*parts, *(["missing"] if missing else [])])


def _interval(declared: Sequence[Any], low: int | None, high: int | None) -> str:
    kind, step, lower, upper = declared[:4]

    def shown(point: int) -> str:
        value = Fraction(step) * point
        if kind == "date":
            return (date(1970, 1, 1) + timedelta(days=int(value))).isoformat()
        if kind == "timestamp":
            return (datetime(1970, 1, 1) + timedelta(microseconds=int(value))).isoformat(" ")
        return str(text(value))

    if low == high and low is not None:
        return shown(low)
    if low is None or low == lower:
        return f"at most {shown(high)}" if high is not None else "known"
    if high is None or high == upper:
        return f"at least {shown(low)}"
    return f"from {shown(low)} to {shown(high)}"

"""The normal form of a plan: one text for all questions that would be the same draw of the same noise.

It holds what is released and nothing of how it was asked: no labels, no order of items or keys, no spelling of a
statistic, of a condition or of a bin. It holds the declarations it rests on too, so that a changed grid or level is
another question. The version of the data and the total ε are not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from idios.core.domain import Categories
from idios.core.exact import text
from idios.core.statistics import Statistic
from idios.query.canonical import Diagram
from idios.query.cells import Cell, parts
from idios.query.plan import Aggregate, Group
from idios.query.schema import Column, Dataset


def identity(statistic: Statistic, column: str | None, selection: Diagram) -> tuple[str, str]:
    """One statistic of one selection as text; a count is of the selection, whichever column it was written with.

    The order of these pairs is the order in which statistics are released, so it must never change.
    """
    return _written(_described(statistic, column)), selection.quoted_text


def normal_form(
    dataset: Dataset,
    selection: Diagram,
    groups: Sequence[Group],
    cells: Sequence[Cell],
    statistics: Iterable[tuple[Diagram, Aggregate]],
) -> str:
    """The text that is equal for questions that mean the same and are answered with the same ε."""
    released = list(statistics)
    selections = sorted({own.text for own, _ in released})
    places = {selected: i for i, selected in enumerate(selections)}
    # a key with one possible group divides nothing: what it says is in the selection
    kept = [i for i, group in enumerate(groups) if len(group.values) > 1]
    columns = {name for own, _ in released for name in own.columns}
    columns |= {
        aggregate.column
        for _, aggregate in released
        if aggregate.column is not None and not aggregate.statistic.counts_records
    }
    columns |= {groups[i].column for i in kept}
    protection = dataset.protection
    return _written(
        {
            "dataset": dataset.name,
            "neighbours": dataset.neighbours,
            "protection": [
                protection.level,
                protection.group,
                text(protection.floor),
                protection.fineness,
                protection.width,
            ],
            "columns": {name: _declared(dataset.columns[name]) for name in sorted(columns)},
            "groups": [[groups[i].column, parts(groups[i], selection)] for i in kept],
            "cells": _listed(groups, cells, kept),
            "selections": [json.loads(selected) for selected in selections],
            "statistics": [
                [
                    *_described(aggregate.statistic, aggregate.column),
                    places[own.text],
                    text(aggregate.epsilon),
                    text(aggregate.delta),
                ]
                for own, aggregate in released
            ],
        }
    )


def _described(statistic: Statistic, column: str | None) -> list[object]:
    """Name, parameter, column."""
    return [statistic.name, text(statistic.argument), None if statistic.counts_records else column]


def _declared(column: Column) -> list[object]:
    if isinstance(column.domain, Categories):
        return [column.kind, column.domain.values, column.nullable]
    domain = column.domain
    return [column.kind, text(domain.step), domain.lower, domain.upper, column.nullable]


def _listed(groups: Sequence[Group], cells: Sequence[Cell], kept: Sequence[int]) -> object:
    """The cells, unless they are simply all combinations."""
    every = 1
    for group in groups:
        every *= len(group.values)
    return "all" if len(cells) == every else [[cell[i] for i in kept] for cell in cells]


def _written(form: object) -> str:
    return json.dumps(form, sort_keys=True, separators=(",", ":"))

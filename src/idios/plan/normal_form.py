"""The normal form of a plan: one text for all questions that would be the same draw of the same noise.

It holds what is released and nothing of how it was asked: no labels, no order of items or keys, no spelling of a
statistic, of a condition or of a bin. It holds the declarations it rests on too, so that a changed grid or level is
another question. The version of the data and the total ε are not in it. ``FORM`` is: it grows when other
mechanisms answer the same declarations, so that what earlier ones drew is an answer to another question.

Its layout is known to this module, and to ``question_words``, which reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from idios.codec import canonical
from idios.core.domain import Categories, Kind
from idios.core.exact import text
from idios.core.multiples import Multiples, linear_multiples
from idios.core.statistics import Statistic
from idios.declare.schema import Column, Dataset
from idios.expressions.diagram import Diagram
from idios.expressions.language import Case, Expression, Literal, Reference, list_references
from idios.expressions.work import RUN, Work
from idios.plan.cells import Cell, partition_selection
from idios.plan.joins import Join, find_table, name_column
from idios.plan.question import Aggregate, Group

FORM = 2


def statistic_key(statistic: Statistic, column: str | None, selection: Diagram) -> tuple[str, str]:
    """One statistic of one selection as text; a count is of the selection, whichever column it was written with.

    The order of these pairs is the order in which statistics are released, so it must never change.
    """
    return canonical(_statistic_form(statistic, column)), selection.quoted_text


def make_form(
    dataset: Dataset,
    selection: Diagram,
    groups: Sequence[Group],
    cells: Sequence[Cell],
    released: Sequence[tuple[Statistic, str | None, Diagram]],
    work: Work,
) -> dict[str, Any]:
    """What is equal for questions that mean the same, but for the ε of each statistic (``list_statistics``)."""
    # a key with one possible group divides nothing: what it says is in the selection
    kept = [i for i, group in enumerate(groups) if len(group.values) > 1]
    columns = {name for _, _, own in released for name in own.columns}
    columns |= {column for statistic, column, _ in released if column is not None and not statistic.counts_records}
    columns |= {groups[i].column for i in kept}
    columns |= {
        str(name)
        for each in columns
        if (derived := dataset.columns[each].expression)
        for name in list_references(derived)
    }
    protection = dataset.protection
    declared = [dataset.columns[name] for name in sorted(columns)]
    return _reduction_form(dataset, columns, work) | {
        "form": FORM,
        "dataset": dataset.name,
        "neighbours": dataset.neighbours,
        "protection": [
            protection.level,
            _group_form(protection.multiples),
            text(protection.floor),
            protection.fineness,
        ],
        "columns": {column.name: _column_form(column, work) for column in declared},
        "groups": [[groups[i].column, partition_selection(groups[i], selection)] for i in kept],
        "cells": _cells_form(groups, cells, kept),
        "selections": [json.loads(diagram) for diagram in sorted({own.text for _, _, own in released})],
    }


def list_statistics(aggregates: Sequence[Aggregate], selections: Sequence[int]) -> list[list[object]]:
    """Each statistic, which of the form's selections it is of, and its ε."""
    return [
        [
            *_statistic_form(aggregate.statistic, aggregate.column),
            selection,
            text(aggregate.epsilon),
            *(["gaussian"] if aggregate.choice.rho is not None else []),
            *(["check", text(aggregate.check.epsilon)] if aggregate.check else []),
        ]
        for aggregate, selection in zip(aggregates, selections, strict=True)
    ]


def write_form(written: str, statistics: Sequence[object]) -> str:
    """The normal form: what ``make_form`` makes, as canonical JSON, with the statistics, whose key is the last.

    >>> write_form('{"columns":{},"selections":[true]}', [["count", None, None, 0, "1"]])
    '{"columns":{},"selections":[true],"statistics":[["count",null,null,0,"1"]]}'
    """
    return f'{written[:-1]},"statistics":{canonical(statistics)}}}'


def shorten_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """What words say of a form: without the many groups of categories, which their column names."""
    columns, groups = form["columns"], form["groups"]
    short = [[name, [] if columns[name][0] == Kind.CATEGORY else divided] for name, divided in groups]
    return {**form, "groups": short, "cells": None}


def _reduction_form(dataset: Dataset, columns: Iterable[str], work: Work) -> dict[str, object]:
    """For questions about people: which rows are read, and how each column is reduced."""
    reduction = dataset.reduction
    if reduction is None or reduction.base is None:
        return {}
    values = {name: reduction.find(name) for name in sorted(columns)}
    ordered = dataset.order if any(value.function == "LAST" for value in values.values()) else None
    read = {name for name in (ordered, *(value.column for value in values.values()), *reduction.named) if name}
    read |= {
        str(name) for each in read if (derived := reduction.base[each].expression) for name in list_references(derived)
    }
    read |= set(reduction.keys)
    joined = {} if reduction.join is None else {"join": _join_form(dataset, reduction.join, read, work)}
    several = {"by": reduction.keys, "groups": reduction.groups} if reduction.keys else {}
    several |= {"kept": reduction.rows} if reduction.rows is not None else {}
    return {
        "people": joined
        | several
        | {
            "unit": dataset.unit if reduction.join is None else None,  # which is that of any of the tables
            "word": dataset.unit_word,
            "order": ordered,
            "rows": json.loads(reduction.form),
            "columns": {name: _column_form(reduction.base[name], work) for name in sorted(read)},
            "values": {name: value.form for name, value in values.items()},
        }
    }


def _join_form(dataset: Dataset, join: Join, read: Iterable[str], work: Work) -> dict[str, object]:
    """The tables, what ties them, and of each what is declared of the columns that are read, and its version."""
    names, tables = set(read), {}
    for table in (find_table(dataset, joined.name) for joined in join.tables):
        own = [column for column in table.columns.values() if name_column(table.name, column.name) in names]
        sources = {str(name) for column in own if column.expression for name in list_references(column.expression)}
        columns = {column.name: column for column in own} | {name: table.columns[name] for name in sources}
        forms = {name: _column_form(column, work) for name, column in sorted(columns.items())}
        tables[table.name] = [None if table.name == dataset.name else table.version, table.unit, forms]
    return {"tables": dict(sorted(tables.items())), "links": join.form}  # as they are read back


def make_check_form(
    form: Mapping[str, object], epsilon: Fraction, aggregates: Iterable[Aggregate]
) -> dict[str, object]:
    """The form of a check of the answer that has this form and this ε."""
    checks = [text(aggregate.check.epsilon) if aggregate.check else None for aggregate in aggregates]
    return {**form, "answered with": text(epsilon), "checks": checks}


def _group_form(multiples: Multiples) -> object:
    """The size of the group, which says everything where its multiples of ε are 1, 2, 3, …, or all of them."""
    size = len(multiples)
    return size if multiples == linear_multiples(size) else [text(multiple) for multiple in multiples]


def _statistic_form(statistic: Statistic, column: str | None) -> list[object]:
    """Name, parameter, column."""
    return [statistic.name, text(statistic.argument), None if statistic.counts_records else column]


def _column_form(column: Column, work: Work) -> list[object]:
    more = []
    if column.expression is not None:
        work.spend(RUN * column.expression.written_out)
        more.append(_expression_form(column.expression))
    if column.missing:
        more.append(["missing", *sorted(value if isinstance(value, str) else str(value) for value in column.missing)])
    if column.format:
        more.append(["format", column.format])
    if isinstance(column.domain, Categories):
        return [column.kind, column.domain.values, column.nullable, *more]
    domain = column.domain
    return [column.kind, text(domain.step), domain.lower, domain.upper, domain.centre, column.nullable, *more]


def _expression_form(expression: Expression) -> list[object]:
    if isinstance(expression, Literal):
        value = expression.value
        return ["number", text(value)] if isinstance(value, Fraction) else ["literal", value]
    if isinstance(expression, Reference):
        return ["column", expression.name]
    parts = [_expression_form(part) for part in expression.parts]
    return ["case" if isinstance(expression, Case) else expression.function, *parts]


def _cells_form(groups: Sequence[Group], cells: Sequence[Cell], kept: Sequence[int]) -> object:
    """The cells, unless they are simply all combinations."""
    every = 1
    for group in groups:
        every *= len(group.values)
    return "all" if len(cells) == every else [[cell[i] for i in kept] for cell in cells]

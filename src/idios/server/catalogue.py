"""What can be asked of each column: found by planning one question of every kind, which touches no data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from idios.core.domain import Categories, Domain, Kind
from idios.core.exact import text
from idios.datasets import DatasetConfig
from idios.errors import IdiosError, Unanswerable
from idios.party import TrustedParty
from idios.query.lexer import RESERVED
from idios.query.schema import Column, Dataset
from idios.query.sql_functions import find_function, list_functions


def described(party: TrustedParty, declared: DatasetConfig) -> dict[str, Any]:
    """Everything public about a data set, for JSON."""
    dataset = party.datasets[declared.dataset.name].dataset
    protection = dataset.protection
    return {
        "name": dataset.name,
        "version": dataset.version,
        "neighbours": str(dataset.neighbours.value),
        "level": str(protection.level),
        "group": protection.group,
        "delta": text(protection.delta),
        "analysts_trusted": declared.analysts_trusted,
        "min_epsilon": text(dataset.min_epsilon),
        "max_groups": dataset.max_groups,
        "release_seconds": text(declared.release_seconds),
        "parameters": {
            "quantile": text(dataset.parameters.quantile),
            "k": None if dataset.parameters.k is None else sorted(dataset.parameters.k),
            "trim": text(dataset.parameters.trim),
        },
        "columns": [_column(party, dataset, column) for column in dataset.columns.values()],
    }


def _column(party: TrustedParty, dataset: Dataset, column: Column) -> dict[str, Any]:
    domain = column.domain
    shown: dict[str, Any] = {"step": None, "bounds": None, "values": None}
    if isinstance(domain, Categories):
        shown["values"] = list(domain.values)
    else:
        shown["step"] = text(domain.step)
        if domain.lower is not None or domain.upper is not None:
            shown["bounds"] = [_end(domain, domain.lower), _end(domain, domain.upper)]
    return {
        "name": column.name,
        "type": str(column.kind),
        "nullable": column.nullable,
        "groups": column.kind is Kind.CATEGORY or (isinstance(domain, Domain) and domain.bounded),
        **shown,
        "functions": list(_functions(party, dataset, column)),
    }


def _end(domain: Domain, point: int | None) -> str | None:
    return None if point is None else text(domain.step * point)


def _functions(party: TrustedParty, dataset: Dataset, column: Column) -> Iterator[dict[str, Any]]:
    quoted = identifier(column.name)
    calls = {
        function.name: function.write_example(quoted, dataset.parameters)
        for function in list_functions()
        if column.kind in function.statistic.kinds and not function.spelling.synonym
    }
    epsilon = max(Fraction(1), dataset.min_epsilon)
    for name, call in calls.items():
        why = None
        try:
            party.plan(f"SELECT {call} FROM {identifier(dataset.name)}", epsilon)
        except Unanswerable as error:
            why = str(error)
        except IdiosError:
            continue
        yield {"name": name, "call": call, "answerable": why is None, "why": why}


def identifier(name: str) -> str:
    """A name as SQL text.

    >>> identifier("income"), identifier("odd name"), identifier("limit")
    ('income', '"odd name"', '"limit"')
    """
    plain = (
        name.isascii() and name.isidentifier() and find_function(name.upper()) is None and name.upper() not in RESERVED
    )
    return name if plain else '"' + name.replace('"', '""') + '"'

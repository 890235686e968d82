"""What can be asked of each column: found by planning one question of every kind, which touches no data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from idios.core.domain import Categories, Domain, Kind
from idios.core.exact import text
from idios.datasets import DatasetConfig
from idios.errors import IdiosError, Unanswerable
from idios.model import ColumnFacts, DatasetFacts, FunctionFacts
from idios.party import TrustedParty
from idios.query.lexer import RESERVED
from idios.query.schema import Column, Dataset
from idios.query.sql_functions import find_function, list_functions


def describe_dataset(party: TrustedParty, declared: DatasetConfig) -> DatasetFacts:
    """Everything public about a data set."""
    dataset = party.datasets[declared.dataset.name].dataset
    protection, parameters = dataset.protection, dataset.parameters
    return DatasetFacts(
        name=dataset.name,
        version=dataset.version,
        neighbours=dataset.neighbours.value,
        level=protection.level.value,
        group=protection.group,
        delta=protection.delta,
        analysts_trusted=declared.analysts_trusted,
        min_epsilon=dataset.min_epsilon,
        max_groups=dataset.max_groups,
        release_seconds=declared.release_seconds,
        parameters={
            "quantile": text(parameters.quantile),
            "k": None if parameters.k is None else sorted(parameters.k),
            "trim": text(parameters.trim),
        },
        columns=tuple(_describe_column(party, dataset, column) for column in dataset.columns.values()),
    )


def _describe_column(party: TrustedParty, dataset: Dataset, column: Column) -> ColumnFacts:
    domain = column.domain
    numeric = None if isinstance(domain, Categories) else domain
    bounds = None if numeric is None else (_end(numeric, numeric.lower), _end(numeric, numeric.upper))
    return ColumnFacts(
        name=column.name,
        type=column.kind.value,
        nullable=column.nullable,
        groups=column.kind is Kind.CATEGORY or (numeric is not None and numeric.bounded),
        step=None if numeric is None else numeric.step,
        bounds=None if bounds == (None, None) else bounds,
        values=tuple(domain.values) if isinstance(domain, Categories) else None,
        functions=tuple(_offered_functions(party, dataset, column)),
    )


def _end(domain: Domain, point: int | None) -> str | None:
    return None if point is None else text(domain.step * point)


def _offered_functions(party: TrustedParty, dataset: Dataset, column: Column) -> Iterator[FunctionFacts]:
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
        yield FunctionFacts(name, call, why is None, why)


def identifier(name: str) -> str:
    """A name as SQL text.

    >>> identifier("income"), identifier("odd name"), identifier("limit")
    ('income', '"odd name"', '"limit"')
    """
    plain = (
        name.isascii() and name.isidentifier() and find_function(name.upper()) is None and name.upper() not in RESERVED
    )
    return name if plain else '"' + name.replace('"', '""') + '"'

"""The data sets as declared: what a server refuses to serve, what is risky, and what can be asked of each column.

All of this comes from public facts. What can be asked is found by planning one question of every kind, which touches
no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from idios.core.calibration import Level
from idios.core.domain import Categories, Domain, Kind
from idios.core.exact import text
from idios.core.multiples import linear_multiples
from idios.datasets import DatasetConfig
from idios.declare.schema import Column, Dataset
from idios.errors import ConfigurationError, IdiosError, Unanswerable
from idios.model import Accounting, ColumnFacts, DatasetFacts, FunctionFacts, TableFacts
from idios.party import TrustedParty
from idios.sql.names import quote
from idios.sql.sql_functions import list_functions

LEAST_EPSILON = 0.01
"""The smallest ``min_epsilon`` that is declared without a warning."""
ATTACK = (
    "At this level the noise is fitted to the actual data, and how much of it there is (or whether an answer is exact) "
    "tells an analyst about single records: one MEDIAN of a column of 0s and 1000s shows on which side of a threshold "
    "the data lies, whatever ε."
)
REMEDY = (
    'Declare protection = "differential", which holds against any attacker and answers nearly everything without '
    "bounds. Or, if every analyst would be trusted with the data itself, declare "
    'analysts = "trusted".'
)


def check_levels(datasets: Iterable[DatasetConfig]) -> None:
    """Refuse the levels that published attacks break, unless the controller says that analysts are trusted."""
    for declared in datasets:
        level = declared.dataset.protection.level
        if level is not Level.DIFFERENTIAL and not declared.analysts_trusted:
            raise ConfigurationError(
                f'[datasets.{declared.dataset.name}] is declared with protection = "{level}", which is not served to '
                f"analysts who are not trusted. {ATTACK} {REMEDY}"
            )


def list_dataset_risks(declared: DatasetConfig) -> list[str]:
    """List what is risky in a declaration, for the controller to read."""
    dataset = declared.dataset
    protection = dataset.protection
    risks = []
    private = protection.level is Level.DIFFERENTIAL
    if not private:
        risks.append(f'protection = "{protection.level}": {ATTACK}')
        if protection.floor == 0:
            risks.append(
                "floor = 0: answers can be exact, and whether one is shows on which side of a threshold it is."
            )
        unbounded = [
            name
            for name, column in dataset.columns.items()
            if not isinstance(column.domain, Categories) and not column.domain.bounded
        ]
        if unbounded:
            risks.append(
                f"extremes (MIN, MAX, KTH_LARGEST, KTH_SMALLEST) of {', '.join(unbounded)}: their noise follows the "
                "gap between the largest records, so that repeated questions show whether one record stands out."
            )
        if None in (dataset.parameters.quantile, dataset.parameters.k, dataset.parameters.trim):
            risks.append("parameters: a lifted restriction lets a rank be slid across the data one record at a time.")
    if dataset.min_epsilon < LEAST_EPSILON:
        risks.append(
            f"min_epsilon = {float(dataset.min_epsilon):g}: nearly free questions can be asked by the thousand; 0.05 "
            "is usual."
        )
    if private and declared.release_seconds == 0:
        risks.append("release_seconds = 0: how long an answer takes tells about the data.")
    return risks


def describe_dataset(party: TrustedParty, declared: DatasetConfig) -> DatasetFacts:
    """Everything public about a data set."""
    dataset = party.datasets[declared.dataset.name].dataset
    protection, parameters = dataset.protection, dataset.parameters
    multiples = protection.multiples
    return DatasetFacts(
        name=dataset.name,
        version=dataset.version,
        neighbours=dataset.neighbours.value,
        level=protection.level.value,
        group=protection.group,
        multiples=None if multiples == linear_multiples(len(multiples)) else multiples,
        size=dataset.size,
        analysts_trusted=declared.analysts_trusted,
        accounting=Accounting.CONCENTRATED if dataset.concentrated else Accounting.PURE,
        check=dataset.check,
        unit=dataset.unit,
        unit_word=dataset.unit_word,
        order=dataset.order,
        rows=dataset.rows,
        groups=dataset.groups,
        links=_list_links(dataset),
        tables=tuple(_describe_table(party, table, dataset) for table in dataset.tables.values()),
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


def _describe_table(party: TrustedParty, table: Dataset, owner: Dataset) -> TableFacts:
    # what can be asked of its columns depends on the people whose rows are joined to it, or are in it
    asked = replace(table, parameters=owner.parameters, unit=owner.unit, rows=owner.rows, groups=owner.groups)
    asked = replace(asked, unique=table.unique or (table.public and owner.unique))
    return TableFacts(
        name=table.name,
        public=table.public,
        unit=table.unit,
        order=table.order,
        links=_list_links(table),
        columns=tuple(_describe_column(party, asked, column) for column in table.columns.values()),
    )


def _list_links(table: Dataset) -> dict[str, str]:
    return dict(link.written for link in table.links)


def _describe_column(party: TrustedParty, dataset: Dataset, column: Column) -> ColumnFacts:
    domain = column.domain
    numeric = None if isinstance(domain, Categories) else domain
    bounds = None if numeric is None else (_end(numeric, numeric.lower), _end(numeric, numeric.upper))
    return ColumnFacts(
        name=column.name,
        type=column.kind.value,
        nullable=column.nullable,
        groups=_can_group(dataset, column),
        step=None if numeric is None else numeric.step,
        bounds=None if bounds == (None, None) else bounds,
        centre=None if numeric is None or not numeric.centre else _end(numeric, numeric.centre),
        expression=column.formula or None,
        values=tuple(domain.values) if isinstance(domain, Categories) else None,
        labels=domain.labels or None if isinstance(domain, Categories) else None,
        functions=tuple(_offered_functions(party, dataset, column)),
    )


def _can_group(dataset: Dataset, column: Column) -> bool:
    """Whether GROUP BY can be of a column; rows of one person may be in many groups."""
    if column.kind is Kind.CATEGORY:
        return not dataset.unit or bool(dataset.row_limit or dataset.groups)
    return (
        (not dataset.unit or bool(dataset.row_limit))
        and not isinstance(column.domain, Categories)
        and column.domain.bounded
    )


def _end(domain: Domain, point: int | None) -> str | None:
    return None if point is None else text(domain.step * point)


def _offered_functions(party: TrustedParty, dataset: Dataset, column: Column) -> Iterator[FunctionFacts]:
    quoted = quote(column.name)
    calls = {
        function.name: function.write_example(quoted, dataset.parameters)
        for function in list_functions()
        if column.kind in function.statistic.kinds and not function.spelling.synonym
    }
    epsilon = max(Fraction(1), dataset.min_epsilon)
    for name, call in calls.items():
        why = None
        try:
            party.make_plan(f"SELECT {call} FROM {quote(dataset.name)}", epsilon)
        except Unanswerable as error:
            why = str(error)
        except IdiosError:
            continue
        yield FunctionFacts(name, call, why is None, why)

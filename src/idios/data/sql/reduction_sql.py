"""The SQL that reduces the rows of each person to one record of grid points, in the engine.

    rows ─ on the grid ─▶ rows that have a unit and fulfil WHERE ─ GROUP BY unit ─▶ points of 64 bits

Rules:

1. A person's record is a function of the multiset of their own rows. Nothing depends on the order in which an engine
   reads them: ranks are taken among values, and where equal ones tie, it does not matter which is which.
2. A row whose unit has a NULL in it is nobody's, and is left out before anything else.
3. Sums, and what is divided, are in the engine's widest exact numbers: 10¹⁵ rows of 2⁶² fit, twice a thousand times.
   What lies beyond ±2⁶² reads as ±2⁶², the ends of every grid, or as the bound where the question caps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from idios.core.domain import LIMIT, Domain, Kind
from idios.data.sql.condition_sql import write_condition
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn, list_layers, nest_layers, with_sources
from idios.data.sql.join_sql import Rows, write_join
from idios.declare.schema import Column, Dataset
from idios.expressions.predicates import column_names
from idios.plan.reductions import KEY, MEAN_FINENESS, SPREAD, SPREAD_VALUES, ReducedValue, Reduction


@dataclass(frozen=True)
class ReducedTable:
    """What stands after FROM to read people, and how each column of the reduced data set is read from it."""

    source: str
    columns: Mapping[str, GridColumn]
    cut: bool = False
    """Whether rows that cannot matter are left out, of a table that is read as it is."""


def reduce_rows(dataset: Dataset, names: Sequence[str], rows: Rows, dialect: Dialect) -> ReducedTable:
    """Reduce rows to some columns of a reduced data set."""
    reduction = dataset.reduction
    if reduction is None:
        raise AssertionError(f"{dataset.name} is not reduced")
    writer = _Writer(dataset, reduction, rows, dialect)
    values = [reduction.find(name) for name in names]
    read = {name: _read_point(dataset.columns[name], dialect.identifier(f"r{i}")) for i, name in enumerate(names)}
    return ReducedTable(f"({writer.write(values)}) AS people", read)


def _read_point(column: Column, point: str) -> GridColumn:
    """A column whose points are there."""
    known = f"{point} IS NOT NULL"
    place = f"({point} + 1)" if column.kind is Kind.CATEGORY else None
    return GridColumn(column, point, known, point, known, place=place)


@dataclass(frozen=True)
class _Writer:
    dataset: Dataset
    reduction: Reduction
    rows: Rows
    dialect: Dialect

    def write(self, values: Sequence[ReducedValue]) -> str:
        """The records of each person, with the point of each value as r0, r1, …."""
        named = [value.column for value in values if value.column is not None] + list(self.reduction.keys)
        if self.dataset.order is not None and any(value.function == "LAST" for value in values):
            named.append(self.dataset.order)
        read = with_sources([*named, *sorted(column_names(self.reduction.filter))], self.reduction.base or {})
        points = {name: self.dialect.identifier(f"v{i}") for i, name in enumerate(read)}
        text = self._read_rows(read)
        text = f"SELECT * FROM ({text}) AS points WHERE {write_condition(self.reduction.filter, points)}"
        if self.reduction.rows is not None:
            read_here = dict.fromkeys(points[name] for name in named)
            return self._list(self._keep_rows(text, list(read_here)), [points[value.column or ""] for value in values])
        if self.reduction.spread:
            return self._spread(text, values, points)
        return self._reduce_groups(text, values, points)

    @property
    def units(self) -> list[str]:
        """The columns that tell people apart, in the rows that are read."""
        return [self.dialect.identifier(f"u{i}") for i in range(len(self.dataset.unit))]

    def _list(self, text: str, points: Sequence[str]) -> str:
        """Points as r0, r1, …."""
        listed = ", ".join(f"{point} AS {self.dialect.identifier(f'r{i}')}" for i, point in enumerate(points or ["1"]))
        return f"SELECT {listed} FROM ({text}) AS records{self.dialect.fence}"

    def _keep_rows(self, text: str, points: Sequence[str]) -> str:
        """At most so many rows of each person: those with the least hash of the person and of what is read of the row.

        Rows that are alike in all of that are told apart by a number, and it does not matter which has which.
        """
        alike, person = ", ".join([*self.units, *points]), ", ".join(self.units)
        text = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {alike} ORDER BY {person}) AS occurrence FROM ({text}) AS o"
        place = self._order_by_hash([*points, "occurrence"])
        text = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {person} ORDER BY {place}) AS place FROM ({text}) AS p"
        return f"SELECT * FROM ({text}) AS kept WHERE place <= {self.reduction.rows}"

    def _group(self, text: str, made: Sequence[str], points: Mapping[str, str]) -> str:
        """What is made of each person's rows, in at most so many groups: those with the least hash of both."""
        keys = [points[key] for key in self.reduction.keys]
        grouped, listed = ", ".join([*self.units, *keys]), ", ".join([*self.units, *keys, *made])
        text = f"SELECT {listed} FROM ({text}{self.dialect.fence}) AS rows_read GROUP BY {grouped}"
        if not self.reduction.crowded:
            return text
        order, person = self._order_by_hash(keys), ", ".join(self.units)
        text = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {person} ORDER BY {order}) AS number FROM ({text}) AS groups"
        return f"SELECT * FROM ({text}) AS kept WHERE number <= {self.reduction.groups}"

    def _order_by_hash(self, points: Sequence[str]) -> str:
        """An order of one person's rows or groups that nothing but themselves decides."""
        person = [self.dialect.text.format(x=unit) for unit in self.units]
        key, values = self.dialect.string(self.dataset.name), ", ".join([*person, *points])
        hashed = self.dialect.hash.format(key=key, values=values)
        return ", ".join([hashed, *points])

    def _spread(self, text: str, values: Sequence[ReducedValue], points: Mapping[str, str]) -> str:
        """The even quantiles of each person's values: SPREAD_VALUES records, whatever the number of their rows."""
        quoted, spread = self.dialect.identifier, [value for value in values if value.function == SPREAD]
        lists = [self.dialect.sorted_list.format(x=self._point_of(points, value)) for value in spread]
        listed = [f"{expression} AS {quoted(f'l{i}')}" for i, expression in enumerate(lists)]
        counted = [f"COUNT({self._point_of(points, value)}) AS {quoted(f's{i}')}" for i, value in enumerate(spread)]
        text = self._group(text, [*listed, *counted], points)
        places = ", ".join(f"({i})" for i in range(1, SPREAD_VALUES + 1))
        text = f"SELECT * FROM ({text}) AS people_read CROSS JOIN (VALUES {places}) AS places(place)"
        quotient = self.dialect.narrow_quotient or self.dialect.quotient
        items = {}
        for i, value in enumerate(spread):
            size = quoted(f"s{i}")
            rank = quotient.format(n=f"(2 * place - 1) * {size} + {2 * SPREAD_VALUES - 1}", d=f"{2 * SPREAD_VALUES}")
            item = self.dialect.element.format(array=quoted(f"l{i}"), i=rank)
            items[value] = f"CASE WHEN {size} > 0 THEN {item} END"
        return self._list(text, [items.get(value) or self._point_of(points, value) for value in values])

    def _reduce_groups(self, text: str, values: Sequence[ReducedValue], points: Mapping[str, str]) -> str:
        """One record for each person, and group of theirs."""
        quoted, fence = self.dialect.identifier, self.dialect.fence
        ranked = [value for value in values if value.function in _RANKED]
        partition = f"PARTITION BY {', '.join([*self.units, *(points[key] for key in self.reduction.keys)])}"
        ranks = [
            expression
            for i, value in enumerate(ranked)
            for expression in _RANKED[value.function](self._point_of(points, value), self._order(points), partition, i)
        ]
        if ranks:
            text = f"SELECT *, {', '.join(ranks)} FROM ({text}) AS chosen"
        reduced = [self._reduce(value, points, ranked) for value in values] or ["1"]
        made = [f"{expression} AS {quoted(f'w{i}')}" for i, expression in enumerate(reduced)]
        return self._list(
            f"{self._group(text, made, points)}{fence}",
            [_clamp(quoted(f"w{i}"), value.bounds, self.dialect) for i, value in enumerate(values)],
        )

    def _read_rows(self, names: Sequence[str]) -> str:
        """The rows that have a unit: points of columns as v0, v1, …, and the unit as u0, u1, …."""
        if self.reduction.join is not None:
            return write_join(self.dataset, self.reduction.join, names, self.rows, self.dialect)
        layers = list_layers({name: self.rows.columns[name] for name in names}, self.dialect)
        layers[0] += [f"{column} AS {self.dialect.identifier(f'u{i}')}" for i, column in enumerate(self.rows.unit)]
        owned = f"(SELECT * FROM {self.rows.table} WHERE {self.rows.owned}) AS owned"
        return nest_layers(layers, owned, self.dialect)

    def _order(self, points: Mapping[str, str]) -> str:
        return "" if self.dataset.order is None else points.get(self.dataset.order, "")

    def _point_of(self, points: Mapping[str, str], value: ReducedValue) -> str:
        if value.column is None:
            raise AssertionError(f"{value.name} is of no column")
        return points[value.column]

    def _reduce(self, value: ReducedValue, points: Mapping[str, str], ranked: Sequence[ReducedValue]) -> str:
        if value.column is None:
            return "COUNT(*)"
        v, wide = points[value.column], self.dialect.wide
        total = f"SUM(CAST({v} AS {self.dialect.sum_as}))" if self.dialect.sum_as else f"SUM({v})"
        if value.function == "AVG":
            size = f"CAST(NULLIF(COUNT({v}), 0) AS {wide})"
            twice = f"(CAST({total} AS {wide}) * {2 * MEAN_FINENESS} + {size})"
            return _floor_quotient(twice, f"(2 * {size})", self.dialect)
        if value.function in _RANKED:
            place = ranked.index(value)
            if value.function == "LAST":
                return f"MAX(CASE WHEN rank{place} = 1 THEN {v} END)"
            middle = f"2 * rank{place} BETWEEN size{place} AND size{place} + 2"
            return f"SUM(CASE WHEN {middle} THEN CAST({v} AS {wide}) * (1 + size{place} % 2) END)"
        if value.function == KEY:
            return v
        return total if value.function == "SUM" else f"{value.function}({v})"


def _rank_for_median(v: str, order: str, partition: str, i: int) -> list[str]:
    """The rank among the values, and how many there are: the middle ones have c ≤ 2·rank ≤ c + 2."""
    return [
        f"ROW_NUMBER() OVER ({partition} ORDER BY CASE WHEN {v} IS NULL THEN 1 ELSE 0 END, {v}) AS rank{i}",
        f"COUNT({v}) OVER ({partition}) AS size{i}",
    ]


def _rank_for_last(v: str, order: str, partition: str, i: int) -> list[str]:
    """The last row that has a value is the first; of those that tie, the one with the greatest value."""
    missing = f"CASE WHEN {v} IS NULL THEN 1 ELSE 0 END"
    unordered = f"CASE WHEN {order} IS NULL THEN 1 ELSE 0 END"
    return [f"ROW_NUMBER() OVER ({partition} ORDER BY {missing}, {unordered}, {order} DESC, {v} DESC) AS rank{i}"]


_RANKED: Mapping[str, Callable[[str, str, str, int], list[str]]] = {
    "MEDIAN": _rank_for_median,
    "LAST": _rank_for_last,
}


def _floor_quotient(n: str, d: str, dialect: Dialect) -> str:
    """⌊n/d⌋ of wide numbers, d ≥ 1 or NULL."""
    truncated = (dialect.wide_quotient or dialect.quotient).format(n=n, d=d)
    # the sign first: wide remainders are slow, and hardly any is needed
    return f"CAST({truncated} AS {dialect.wide}) - CASE WHEN {n} < 0 AND {n} % {d} < 0 THEN 1 ELSE 0 END"


def _clamp(point: str, bounds: Domain, dialect: Dialect) -> str:
    low = -LIMIT if bounds.lower is None else bounds.lower
    high = LIMIT if bounds.upper is None else bounds.upper
    above, below = f"{point} > {dialect.whole(high)}", f"{point} < {dialect.whole(low)}"
    return f"CASE WHEN {above} THEN {high} WHEN {below} THEN {low} ELSE CAST({point} AS BIGINT) END"

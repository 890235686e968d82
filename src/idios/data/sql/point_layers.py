"""The nested SELECTs that put records on the grid."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from idios.core.domain import Kind
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn
from idios.declare.schema import Column
from idios.expressions.language import list_references


def list_layers(
    columns: Mapping[str, GridColumn], dialect: Dialect, read: Collection[str] | None = None
) -> list[list[str]]:
    """What puts records on the grid: columns p0, p1, … of points, v0, … of those that count, has_v0, ….

    Derived columns are computed from the points that count, so that they come last. Of some columns, all others are
    left out.
    """
    quoted = dialect.identifier
    points, values = [] if (columns if read is None else read) else [f"1 AS {quoted('one')}"], []
    derived, derived_values = [], []
    names = {name: quoted(f"v{i}") for i, name in enumerate(columns)}
    for i, (name, column) in enumerate(columns.items()):
        if read is not None and name not in read:
            continue
        point, value, has = (quoted(f"{letter}{i}") for letter in ("p", "v", "has_v"))
        if column.derive is not None:
            derived.append(f"{column.derive(names)} AS {point}")
            derived_values += [f"{point} IS NOT NULL AS {has}", f"{column.value(point)} AS {value}"]
            continue
        points.append(f"{column.readable} AS {has}")
        if column.declared.kind is Kind.CATEGORY:
            points.append(f"{column.value(column.point)} AS {value}")
        else:
            points.append(f"{column.bounded or column.point} AS {point}")
            values.append(f"{column.settle(point)} AS {value}")
    return [points, values, derived, derived_values]


def nest_layers(layers: Sequence[Sequence[str]], source: str, dialect: Dialect) -> str:
    """Nested SELECTs over a source, of which each computes its expressions once, and the next one names them."""
    text = f"SELECT {', '.join(layers[0])} FROM {source}"
    for depth, layer in enumerate(layers[1:]):
        if layer:
            text = f"SELECT *, {', '.join(layer)} FROM ({text}{dialect.fence}) AS layer{depth}"
    return text + dialect.fence


def with_sources(names: Iterable[str], columns: Mapping[str, Column]) -> list[str]:
    """Some columns, and those that they are derived from, each once."""
    listed = list(names)
    derived = [expression for name in listed if (expression := columns[name].expression) is not None]
    return list(dict.fromkeys([*listed, *(str(name) for each in derived for name in list_references(each))]))

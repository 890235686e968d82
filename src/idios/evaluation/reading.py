"""One column of a file, brought into memory: only the controller compares, and only the controller may read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idios.backends.arrays import NumberColumn
from idios.backends.base import describe_source, open_source
from idios.backends.csv import propose_format
from idios.backends.sql_backend import SqlBackend
from idios.core.domain import LIMIT, Domain, Kind, default_step
from idios.errors import InvalidInput, SourceError
from idios.query.schema import Column, Dataset


def read_column(
    source: str, name: str, *, step: object = None, bounds: Sequence[object] | None = None, nullable: bool | None = None
) -> NumberColumn:
    """The grid points of a numeric column, read by the same rules as for a question.

    Unless declared, a column can miss values if some are missing: a fact of the data, good enough for its owner.
    """
    csv_format = propose_format(Path(source)) if source.lower().endswith(".csv") and Path(source).is_file() else None
    kinds = {column: (kind, decimals) for column, kind, decimals in describe_source(source, csv_format)}
    if name not in kinds:
        listed = ", ".join(repr(column) for column in kinds)
        raise InvalidInput(f"{source!r} has no column {name!r}; it has {listed}")
    kind, decimals = kinds[name]
    if kind is Kind.CATEGORY:
        raise InvalidInput(f"the column {name!r} is text; a comparison needs numbers")
    domain = Domain.declare(step=default_step(kind, decimals) if step is None else step, bounds=bounds)
    unbounded = Column(name, kind, Domain(domain.step))
    with open_source(source, Dataset("compared", {name: unbounded}), csv_format=csv_format) as backend:
        if not isinstance(backend, SqlBackend):
            raise SourceError(f"{source!r} lives where its values cannot be fetched")
        held = backend.points(name)
    points = held.drop_null().to_numpy()
    missing = held.null_count
    if len(points) and max(-int(points.min()), int(points.max())) >= LIMIT:
        raise InvalidInput(f"a value of {name!r} lies 2^62 steps from 0 or further: declare a larger step")
    if missing and nullable is False:
        raise InvalidInput(f"{name!r} has missing values, so it cannot be declared without")
    can_miss = missing > 0 if nullable is None else nullable
    return NumberColumn(points.astype(np.int64), domain, missing if can_miss else None, on_grid=True)

"""Statements in an engine's own SQL, and how they are made.

The numbers of a question stand in the text of a relation (selection.py), which is quickly written. What is asked about
a relation is an Ibis expression, which takes longer to compile than most engines take to answer. It depends only on
the shape of the question, so it is compiled once a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import ibis  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import pyarrow as pa

from idios.backends.dialect import Dialect

SELECTED = "idios_selected"
"""What a relation is called while an expression about it is compiled."""

SHAPES = 128
"""How many shapes are remembered."""

Inquiry: TypeAlias = Callable[..., ir.Table]
"""An expression about a relation: a function of it, of the dialect and of arguments, and of nothing else."""


@dataclass(frozen=True)
class Statement:
    """A statement, and the names and types of what it gives."""

    text: str
    schema: pa.Schema

    @classmethod
    def of_integers(cls, text: str, *names: str) -> Statement:
        """A statement that gives whole numbers."""
        return cls(text, pa.schema([(name, pa.int64()) for name in names]))


@dataclass(frozen=True)
class Relation:
    """Records in an engine: what selects them, and the names and types of their columns, as Ibis calls them."""

    text: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Shape:
    """A statement with a gap for the relation."""

    before: str
    after: str
    schema: pa.Schema


def statement(inquiry: Inquiry, relation: Relation, dialect: Dialect, *arguments: Hashable) -> Statement:
    """What asks about a relation in an engine."""
    shape = _compiled(inquiry, relation.columns, dialect, *arguments)
    return Statement(f"{shape.before}({relation.text}){shape.after}", shape.schema)


@lru_cache(SHAPES)
def _compiled(inquiry: Inquiry, columns: tuple[tuple[str, str], ...], dialect: Dialect, *arguments: Hashable) -> _Shape:
    expression = inquiry(ibis.table(dict(columns), name=SELECTED), dialect, *arguments)
    text = str(ibis.to_sql(expression, dialect=dialect.compiler, pretty=False))
    before, after = text.split(dialect.identifier(SELECTED))
    return _Shape(before, after, expression.schema().to_pyarrow())

"""Raw SQL for what every question runs, past SQLAlchemy's compiler.

SQLAlchemy's own work on a statement takes ten times as long as SQLite's, so what every question runs is text, written
once and for both engines: "?" stands for a parameter. The transaction around it is SQLAlchemy's, and so are the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def run(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
    """Run a statement and return its rows, if it has any."""
    cursor: Any = None
    driver, dialect = connection.connection, connection.dialect
    if dialect.paramstyle != "qmark":
        statement = _write_for_psycopg(statement)
    try:
        cursor = driver.cursor()
        cursor.execute(statement, parameters)
        return [] if cursor.description is None else cursor.fetchall()
    except dialect.loaded_dbapi.Error as error:
        lost = bool(dialect.is_disconnect(error, driver, cursor))
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            statement,
            None,
            error,
            dialect.loaded_dbapi.Error,
            hide_parameters=True,
            connection_invalidated=lost,
            dialect=dialect,
        ) from error


def write_marks(columns: int, rows: int = 1) -> str:
    """Write the place of that many rows of parameters.

    >>> write_marks(2, 3)
    '(?, ?), (?, ?), (?, ?)'
    """
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)


@cache
def _write_for_psycopg(statement: str) -> str:
    return statement.replace("?", "%s")

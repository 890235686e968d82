"""Statements that the driver gets as they are: the same on both engines, with SQLAlchemy's errors."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError

from idios.errors import LedgerTampered
from idios.ledger import Ledger
from idios.ledger.statements import run, write_marks
from tests.ledger.ledger_place import Place, ask


def test_parameters_and_rows(ledger: Ledger) -> None:
    with ledger._database.reading() as connection:
        assert [tuple(row) for row in run(connection, "SELECT 1 + ?, ?", (2, "it's 100 %"))] == [(3, "it's 100 %")]
        found = run(connection, f"SELECT analyst FROM idios_analysts WHERE analyst IN {write_marks(2)}", ("ada", "x"))
        assert [tuple(row) for row in found] == [("ada",)]
    with ledger._database.writing() as connection:
        assert run(connection, "DELETE FROM idios_running WHERE id = ?", ("none",)) == []


def test_errors_are_sqlalchemys_and_tell_no_parameter(ledger: Ledger) -> None:
    add, name = "INSERT INTO idios_analysts (analyst) VALUES (?)", ("ada",)
    with ledger._database.writer.begin() as connection:
        with pytest.raises(IntegrityError) as caught:
            run(connection, add, name)
        connection.rollback()
    assert "ada" not in str(caught.value).partition("DETAIL")[0]
    with (
        pytest.raises(LedgerTampered, match="tables disagree with its chain"),
        ledger._database.writing() as connection,
    ):
        run(connection, add, name)
    with ledger._database.reader.begin() as connection, pytest.raises(DBAPIError, match="nowhere"):
        run(connection, "SELECT * FROM nowhere")
    assert ledger.verify().ok


def test_a_row_that_is_there_twice_is_refused(place: Place, ledger: Ledger) -> None:
    place.execute("ALTER TABLE idios_datasets RENAME TO before")
    place.execute("CREATE TABLE idios_datasets AS SELECT * FROM before UNION ALL SELECT * FROM before")
    for question in (lambda: ledger.balance("people"), lambda: ledger.reserve(ask())):
        with pytest.raises(LedgerTampered, match="have a row twice; run `idios ledger verify`"):
            question()

"""The layout of a ledger: what a new one is made of, and which number it has."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from idios.ledger.tables import FORMAT
from tests.ledger.ledger_place import Place

LAYOUT = """
idios_analysts: analyst!
idios_chain: format#!
idios_datasets: dataset! version min_epsilon epsilon delta declared_epsilon declared_delta accounting unit neighbours
    protection tables public epsilon_spent delta_spent rho_spent impure# charges# granted# retired#?
idios_ended_sessions: id! expires | expires
idios_entries: sequence#! time kind payload mac
idios_failures: key! failed#!
idios_grants: analyst! dataset! epsilon? delta? epsilon_spent delta_spent rho_spent impure# withdrawn#?
idios_idempotency_keys: caller! idempotency_key! question_key time | time
idios_merkle: page#! content
idios_payments: key! analyst! | analyst
idios_questions: key! dataset rho impure# reserved# released#? | released
idios_running: id! caller dataset request started heartbeat step share state cancel | started
idios_tokens: token! digest holder role expires issued# revoked#?
"""
"""The tables of format 7 with their columns (# integer, ! in the primary key, ? may be NULL) and, after |, indexes."""


def describe(connection: Connection) -> dict[str, list[str]]:
    """The tables that a database has, in the words of LAYOUT."""
    seen, tables = inspect(connection), {}
    for table in seen.get_table_names():
        key = seen.get_pk_constraint(table)["constrained_columns"]
        words = [
            column["name"]
            + "#" * (str(column["type"]) in ("INTEGER", "BIGINT"))
            + ("!" if column["name"] in key else "?" * column["nullable"])
            for column in seen.get_columns(table)
        ]
        for index in seen.get_indexes(table):
            words += ["|", *filter(None, index["column_names"])]
        tables[table] = words
    return tables


def test_a_change_of_the_tables_is_another_format(place: Place) -> None:
    """Another layout under the same number would be opened, and fail at its first use: FORMAT changes with LAYOUT."""
    lines = LAYOUT.replace("\n    ", " ").strip().splitlines()
    with place.open() as ledger, ledger._database.reading() as connection:
        assert describe(connection) == {table: words.split() for table, words in (line.split(": ") for line in lines)}
    assert place.execute("SELECT format FROM idios_chain") == [(FORMAT,)] == [(7,)]

"""Finding entries of the chain, newest first, by what they say and whom they are about."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from idios.codec import canonical
from idios.errors import InvalidInput
from idios.ledger.chain import Entry
from idios.ledger.facts import KINDS
from idios.ledger.state import FailureRow, PaymentRow, QuestionRow, Role, TokenRow
from idios.ledger.tables import TABLES, entries
from idios.ledger.values import LONGEST_TEXT, check_name, check_number

LONGEST_PAGE = 1000
_ESCAPE = "!"


def check_conditions(
    *,
    text: str,
    kinds: tuple[str, ...],
    dataset: str | None,
    analyst: str | None,
    before: int | None,
    limit: int,
) -> None:
    """Refuse conditions that some database could not compare."""
    check_kinds(kinds)
    check_names(dataset, analyst)
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InvalidInput(f"the text to search for has at most {LONGEST_TEXT} characters")
    if before is not None:
        check_number("before", before)
    check_number("limit", limit, LONGEST_PAGE)


def check_kinds(kinds: tuple[str, ...]) -> None:
    """Refuse kinds that no entry has."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InvalidInput(f"entries are of the kinds {', '.join(KINDS)}; not {', '.join(unknown)}")


def check_names(dataset: str | None, analyst: str | None) -> None:
    """Refuse what cannot be the name of a data set or an analyst."""
    for what, name in (("data set", dataset), ("analyst", analyst)):
        if name is not None:
            check_name(what, name)


def find_entries(
    connection: Connection,
    *,
    text: str,
    kinds: tuple[str, ...],
    dataset: str | None,
    analyst: str | None,
    before: int | None,
    limit: int,
) -> list[Entry]:
    """Read the newest entries that meet every condition."""
    statement = select(entries).order_by(entries.c.sequence.desc()).limit(limit)
    if before is not None:
        statement = statement.where(entries.c.sequence < before)
    if kinds:
        statement = statement.where(entries.c.kind.in_(kinds))
    if text:
        statement = statement.where(_contains(text))
    if dataset is not None:
        statement = statement.where(_is_about_dataset(connection, dataset))
    if analyst is not None:
        statement = statement.where(_is_about_analyst(connection, analyst))
    return [Entry(*row) for row in connection.execute(statement)]


# An answer's or a failure's entry names the question's key alone: the derived rows say which entries are whose.


def _is_about_dataset(connection: Connection, dataset: str) -> ColumnElement[bool]:
    questions, failures = TABLES[QuestionRow], TABLES[FailureRow]
    of_dataset = questions.c.dataset == dataset
    released = select(questions.c.released).where(of_dataset, questions.c.released.is_not(None))
    failed = select(failures.c.failed).join(questions, questions.c.key == failures.c.key).where(of_dataset)
    return or_(
        _has_field(connection, "dataset", dataset), entries.c.sequence.in_(released), entries.c.sequence.in_(failed)
    )


def _is_about_analyst(connection: Connection, analyst: str) -> ColumnElement[bool]:
    questions, payments, tokens = TABLES[QuestionRow], TABLES[PaymentRow], TABLES[TokenRow]
    released = (
        select(questions.c.released)
        .join(payments, payments.c.key == questions.c.key)
        .where(payments.c.analyst == analyst, questions.c.released.is_not(None))
    )
    revoked = select(tokens.c.revoked).where(
        tokens.c.holder == analyst, tokens.c.role == Role.ANALYST.value, tokens.c.revoked.is_not(None)
    )
    return or_(
        _has_field(connection, "analyst", analyst), entries.c.sequence.in_(released), entries.c.sequence.in_(revoked)
    )


def _contains(text: str) -> ColumnElement[bool]:
    """Whether kind or payload contain the text, ignoring case.

    A payload is ASCII: "é" stands in it as "\\u00e9" and "É" as "\\u00c9". So letters beyond ASCII are searched for
    as given, in lower case and in upper case.
    """
    patterns = {_make_pattern(variant) for variant in (text, text.lower(), text.upper())}
    columns = (entries.c.kind, func.lower(entries.c.payload))
    return or_(*(column.like(pattern, escape=_ESCAPE) for column in columns for pattern in sorted(patterns)))


def _make_pattern(text: str) -> str:
    """Write the text as a payload does, in lower case, for LIKE.

    >>> print(_make_pattern("100% É"))
    %100!% \\u00c9%
    """
    written = canonical(text)[1:-1].lower()
    for special in (_ESCAPE, "%", "_"):
        written = written.replace(special, _ESCAPE + special)
    return f"%{written}%"


def _has_field(connection: Connection, field: str, name: str) -> ColumnElement[bool]:
    # A payload is written in one way only, and quotes inside its texts are escaped: this is the field itself.
    needle = f"{canonical(field)}:{canonical(name)}"
    # LIKE would not do: SQLite's ignores case.
    position: Any = func.instr if connection.dialect.name == "sqlite" else func.strpos
    contained: ColumnElement[bool] = position(entries.c.payload, needle) > 0
    return contained

"""Finding entries of the chain, newest first, by what they say and whom they are about."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from idios.codec import canonical
from idios.ledger.chain import Entry
from idios.ledger.facts import Failed, Released
from idios.ledger.identity import Role
from idios.ledger.rows import Payment, Question, Token
from idios.ledger.tables import TABLES, entries

_ESCAPE = "!"
_KEY = 64


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
    """The newest entries that meet every condition."""
    wanted = select(entries).order_by(entries.c.sequence.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(entries.c.sequence < before)
    if kinds:
        wanted = wanted.where(entries.c.kind.in_(kinds))
    if text:
        wanted = wanted.where(_contains(text))
    # The tables say whom an answer is about: its own entry names the question's key alone.
    if dataset is not None:
        questions = TABLES[Question]
        theirs = select(questions.c.key).where(questions.c.dataset == dataset)
        wanted = wanted.where(or_(_says(connection, "dataset", dataset), _answers(theirs, (Released, Failed))))
    if analyst is not None:
        payments, tokens = TABLES[Payment], TABLES[Token]
        paid = select(payments.c.key).where(payments.c.analyst == analyst)
        revoked = select(tokens.c.revoked).where(
            tokens.c.holder == analyst, tokens.c.role == Role.ANALYST.value, tokens.c.revoked.is_not(None)
        )
        about = (_says(connection, "analyst", analyst), _answers(paid, (Released,)), entries.c.sequence.in_(revoked))
        wanted = wanted.where(or_(*about))
    return [Entry(*row) for row in connection.execute(wanted)]


def _contains(text: str) -> ColumnElement[bool]:
    """Whether kind or payload contain the text, ignoring case.

    A payload is ASCII: "é" stands in it as "\\u00e9" and "É" as "\\u00c9". So letters beyond ASCII are searched for
    as given, in lower case and in upper case.
    """
    patterns = {_pattern(variant) for variant in (text, text.lower(), text.upper())}
    columns = (entries.c.kind, func.lower(entries.c.payload))
    return or_(*(column.like(pattern, escape=_ESCAPE) for column in columns for pattern in sorted(patterns)))


def _pattern(text: str) -> str:
    """The text as a payload writes it, in lower case, for LIKE.

    >>> print(_pattern("100% É"))
    %100!% \\u00c9%
    """
    written = canonical(text)[1:-1].lower()
    for special in (_ESCAPE, "%", "_"):
        written = written.replace(special, _ESCAPE + special)
    return f"%{written}%"


def _says(connection: Connection, field: str, name: str) -> ColumnElement[bool]:
    # A payload is written in one way only, and quotes inside its texts are escaped: this is the field itself.
    needle = f"{canonical(field)}:{canonical(name)}"
    # LIKE would not do: SQLite's ignores case.
    position: Any = func.instr if connection.dialect.name == "sqlite" else func.strpos
    found: ColumnElement[bool] = position(entries.c.payload, needle) > 0
    return found


def _answers(keys: Any, kinds: tuple[type[Released] | type[Failed], ...]) -> ColumnElement[bool]:
    # The key is the last field of both: {…,"key":"…"}
    key = func.substr(entries.c.payload, func.length(entries.c.payload) - _KEY - 1, _KEY)
    return and_(entries.c.kind.in_([kind.kind for kind in kinds]), key.in_(keys))

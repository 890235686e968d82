"""Stored answers, read from signed entries: the tables only say where to look."""

from __future__ import annotations

from sqlalchemy import Connection, select

from idios.errors import LedgerTampered
from idios.ledger.book import TableBook
from idios.ledger.chain import BEGINNING, Entry, fits
from idios.ledger.facts import Released, Reserved
from idios.ledger.request import StoredAnswer
from idios.ledger.rows import Payment, Question
from idios.ledger.tables import TABLES, VERIFY, numbered_entries, read_row


def released_questions(
    book: TableBook,
    *,
    dataset: str | None,
    analyst: str | None,
    after: int,
    before: int | None,
    limit: int | None,
    newest_first: bool,
) -> list[Question]:
    """The questions that were answered between the entries `after` and `before`, in the order of their answers."""
    questions, payments = TABLES[Question], TABLES[Payment]
    order = questions.c.released.desc() if newest_first else questions.c.released
    wanted = select(questions).where(questions.c.released > after).order_by(order).limit(limit)
    if before is not None:
        wanted = wanted.where(questions.c.released < before)
    if dataset is not None:
        wanted = wanted.where(questions.c.dataset == dataset)
    if analyst is not None:
        wanted = wanted.join(payments, payments.c.key == questions.c.key).where(payments.c.analyst == analyst)
    answered = [read_row(Question, row) for row in book.connection.execute(wanted).mappings()]
    if analyst is not None:
        for question in answered:
            book.proved(Payment, (question.key, analyst))
    return answered


def read_answers(connection: Connection, key: bytes, questions: list[Question]) -> list[StoredAnswer]:
    """The answers to these questions, each checked against its signature."""
    numbers = {number for question in questions for number in (question.reserved, question.released) if number}
    entries = numbered_entries(connection, numbers | {number - 1 for number in numbers})
    return [_read_answer(key, entries, question) for question in questions]


def _read_answer(key: bytes, entries: dict[int, Entry], question: Question) -> StoredAnswer:
    entry = checked_entry(key, entries, question.released)
    released, reserved = entry.fact, checked_entry(key, entries, question.reserved).fact
    if (
        not isinstance(released, Released)
        or not isinstance(reserved, Reserved)
        or (released.key, reserved.key) != (question.key, question.key)
    ):
        raise LedgerTampered(f"the ledger's tables take entry {question.released} for another question's; {VERIFY}")
    return StoredAnswer(
        key=question.key,
        dataset=reserved.dataset,
        version=reserved.version,
        question=reserved.question,
        epsilon=reserved.epsilon,
        delta=reserved.delta,
        text=released.answer,
        sequence=entry.sequence,
        time=entry.time,
    )


def checked_entry(key: bytes, entries: dict[int, Entry], number: int | None) -> Entry:
    """The entry of this number, refused unless it is as it was signed; `entries` holds it and the one before."""
    entry, previous = entries.get(number or 0), entries.get((number or 0) - 1)
    before = previous.mac if previous is not None else BEGINNING
    if entry is None or not fits(key, before, entry):
        raise LedgerTampered(f"entry {number} of the ledger is not what was signed; {VERIFY}")
    return entry

"""Stored answers, read from signed entries: the tables only say where to look."""

from __future__ import annotations

from sqlalchemy import Connection, select

from idios.errors import LedgerTampered
from idios.ledger.chain import BEGINNING, Entry, is_signed, read_numbered
from idios.ledger.facts import Released, Reserved
from idios.ledger.request import StoredAnswer
from idios.ledger.state import PaymentRow, QuestionRow
from idios.ledger.store import DatabaseRowStore
from idios.ledger.tables import TABLES, VERIFY, read_row


def released_questions(
    store: DatabaseRowStore,
    *,
    dataset: str | None,
    analyst: str | None,
    after: int,
    before: int | None,
    limit: int | None,
    newest_first: bool,
) -> list[QuestionRow]:
    """The questions that were answered between the entries `after` and `before`, in the order of their answers."""
    questions, payments = TABLES[QuestionRow], TABLES[PaymentRow]
    order = questions.c.released.desc() if newest_first else questions.c.released
    wanted = select(questions).where(questions.c.released > after).order_by(order).limit(limit)
    if before is not None:
        wanted = wanted.where(questions.c.released < before)
    if dataset is not None:
        wanted = wanted.where(questions.c.dataset == dataset)
    if analyst is not None:
        wanted = wanted.join(payments, payments.c.key == questions.c.key).where(payments.c.analyst == analyst)
    answered = [read_row(QuestionRow, row) for row in store.connection.execute(wanted).mappings()]
    if analyst is not None:
        for question in answered:
            store.prove(PaymentRow, (question.key, analyst))
    return answered


def read_answers(connection: Connection, key: bytes, questions: list[QuestionRow]) -> list[StoredAnswer]:
    """The answers to these questions, each checked against its signature."""
    numbers = {number for question in questions for number in (question.reserved, question.released) if number}
    entries = read_numbered(connection, numbers | {number - 1 for number in numbers})
    return [_read_answer(key, entries, question) for question in questions]


def _read_answer(key: bytes, entries: dict[int, Entry], question: QuestionRow) -> StoredAnswer:
    entry = check_entry(key, entries, question.released)
    released, reserved = entry.fact, check_entry(key, entries, question.reserved).fact
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


def check_entry(key: bytes, entries: dict[int, Entry], number: int | None) -> Entry:
    """The entry of this number, refused unless it is as it was signed; `entries` holds it and the one before."""
    entry, previous = entries.get(number or 0), entries.get((number or 0) - 1)
    before = previous.mac if previous is not None else BEGINNING
    if entry is None or not is_signed(key, before, entry):
        raise LedgerTampered(f"entry {number} of the ledger is not what was signed; {VERIFY}")
    return entry

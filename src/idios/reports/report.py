"""A report: several questions that are planned as one, shown with their price before anything is spent, then asked.

    questions, ε ─ divide ─▶ ε of each ─ quote ─▶ ReportPlan ─ ask ─▶ Report

Rules:

1. ε is the total for each data set that the questions are about, since each has a budget of its own.
2. The share of a question follows from the questions, ε and the split alone, never from what is stored or left. So the
   same plan made again, after a crash too, has the same questions: what was answered is returned, what was charged is
   completed, both free, and only the rest is paid.
3. What the questions take together must fit into every budget before the first of them is charged.
4. Each question is charged by itself, and two that mean the same, with the same ε, once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, TypeVar

from idios import display
from idios.codec import json_field, shorten, to_json
from idios.core.exact import Number, positive, text
from idios.display import format_amount, format_left
from idios.errors import AnswerFailed, BudgetExceeded, InvalidInput, QuestionRefused, Unanswerable
from idios.model import Answer, Quote
from idios.plan.budget import divide
from idios.reports.totals import Payer, Total, add_up, settle

T = TypeVar("T")
Progress = Callable[[str, float], None]
"""Is called with the name of each question before it is asked, and the share of the questions that lies behind."""

DOUBLINGS = 20
"""How often ε is doubled to find one that a question is planned with."""


@dataclass(frozen=True)
class Asker:
    """The calls through which a report reaches its party.

    ``query`` takes a question and its ε, and so does ``identify``, which is equal for questions that are one charge.
    The first payer is the asker. ``adds_squares`` says whether of this data set the squares of ε add up (concentrated
    accounting) rather than ε; it follows from the declaration, not from what is left.
    """

    query: Callable[[str, Fraction], Answer]
    identify: Callable[[str, Fraction], Hashable]
    payers: tuple[Payer, ...]
    adds_squares: Callable[[str, Fraction], bool] = lambda dataset, epsilon: False


@dataclass(frozen=True)
class PlannedQuestion:
    """One question of a report, its ε and its quote; ``same_as`` names an earlier one that means the same.

    ``quotes`` has one for each payer, the first of which is the asker's.
    """

    name: str
    sql: str
    epsilon: Fraction
    same_as: str | None
    quote: Quote = field(init=False)
    quotes: tuple[Quote, ...] = json_field(hidden=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quote", self.quotes[0])

    @property
    def share(self) -> Fraction:
        """The ε that it takes of the report's: nothing where the answer is public, whatever it is asked with."""
        return self.epsilon if self.quote.guarantee.epsilon else Fraction(0)

    @property
    def price(self) -> str:
        """What is still to be paid for it, in words."""
        if self.same_as is not None:
            return f"free: the same as {self.same_as}"
        if self.quote.cost or self.quote.rho:
            return self.quote.prices[0][1]
        if self.quote.stored:
            return "free: stored"
        return "free: paid before" if self.share else "free: public"

    @property
    def margins(self) -> str:
        """The 95 % margins that are public."""
        known = {column: margin for column, margin in self.quote.margins.items() if margin is not None}
        named = len(self.quote.margins) > 1 or bool(self.quote.computed)
        parts = [
            f"{column} ± {display.format_number(margin)}" if named else f"± {display.format_number(margin)}"
            for column, margin in known.items()
        ]
        expected = self.quote.computed_margins.items()
        parts += [f"{column} {margin}" for column, margin in expected if not margin.reason]
        return ", ".join(parts).replace(f" ({display.name_interval()})", "") or "not public"

    @property
    def risks(self) -> str:
        """Where NULL, or an answer that is far off, is to be expected."""
        return display.name_reasons(self.quote.null_risks)


@dataclass(frozen=True)
class ReportPlan:
    """Questions in their order, with what each will cost and how accurate it will be; nothing is spent yet."""

    questions: tuple[PlannedQuestion, ...]
    totals: tuple[Total, ...]
    asker: Asker

    @property
    def shortage(self) -> str | None:
        """The budgets that do not suffice for the questions together; None if all do."""
        short = [f"data set {total.dataset!r}: {total.shortage}" for total in self.totals if total.shortage]
        return "; ".join(short) or None

    @property
    def affordable(self) -> bool:
        """Whether every budget suffices for all questions together."""
        return self.shortage is None

    def quote_again(self) -> ReportPlan:
        """The same plan with what is stored, paid and left by now."""
        return quote_report(self.asker, {q.name: q.sql for q in self.questions}, [q.epsilon for q in self.questions])

    def ask(self, progress: Progress | None = None) -> Report:
        """Ask one question after the other; nothing is charged unless all of them can be paid.

        A question that fails is kept as failed and the rest is asked. After a failure or a crash, asking again asks
        what is missing: what was answered or charged before costs nothing more.
        """
        plan = self.quote_again()
        if plan.shortage:
            raise BudgetExceeded(
                f"the report as a whole is not affordable, and nothing was charged: {plan.shortage}. Plan it with less "
                "ε or fewer questions, or have the controller allow more"
            )
        answers: dict[str, Answer] = {}
        failures: dict[str, str] = {}
        paid: list[PlannedQuestion] = []
        for i, question in enumerate(plan.questions):
            if progress is not None:
                progress(question.name, i / len(plan.questions))
            try:
                answers[question.name] = self.asker.query(question.sql, question.epsilon)
            except BudgetExceeded as error:  # others have spent since
                failures[question.name] = str(error)
                continue
            except AnswerFailed as error:
                failures[question.name] = str(error)
            if question.same_as is None:
                paid.append(question)
        names = tuple(question.name for question in plan.questions)
        quotes = [question.quote for question in paid]
        totals = tuple(settle(total, quotes, self.asker.payers[0]) for total in plan.totals)
        return Report(names, answers, failures, totals)

    def to_dict(self) -> dict[str, Any]:
        """The plan for JSON; exact numbers are text."""
        questions, totals = to_json(self.questions), to_json(self.totals)
        return {"questions": questions, "totals": totals, "affordable": self.affordable, "shortage": self.shortage}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of a table with a line for each question."""
        rows = [[q.name, q.quote.dataset, format_amount(q.share), q.price, q.margins, q.risks] for q in self.questions]
        return ["question", "data set", "ε", "to pay", f"margin ({display.name_interval()})", "risk"], rows

    def __str__(self) -> str:
        totals = (f"{total.dataset}: {total}" for total in self.totals)
        return "\n".join([display.table_text(*self.table()), *totals])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        totals = [(total.dataset, str(total)) for total in self.totals]
        return display.table_html(*self.table()) + display.pairs_html(totals)


@dataclass(frozen=True)
class Report(Mapping[str, Answer]):
    """The answers to the questions of a plan by name, in its order, and why others have none; a mapping of answers.

    ``totals`` has, for each data set, what this run took from the asker and what is left to them.
    """

    names: tuple[str, ...]
    answers: Mapping[str, Answer]
    failures: Mapping[str, str]
    totals: tuple[Total, ...]

    @property
    def charged(self) -> dict[str, Fraction]:
        """By data set, the ε that was charged; with concentrated accounting ``totals`` has ρ."""
        return {total.dataset: total.cost for total in self.totals}

    @property
    def complete(self) -> bool:
        """Whether every question is answered."""
        return not self.failures

    def __getitem__(self, name: str) -> Answer:
        return self.answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(name for name in self.names if name in self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """The report for JSON; exact numbers are text."""
        return {
            "answers": {name: answer.to_dict() for name, answer in self.answers.items()},
            "failures": dict(self.failures),
            "complete": self.complete,
            "totals": to_json(self.totals),
        }

    def accounts(self) -> list[tuple[str, str]]:
        """By data set, what was charged and what is left, in words."""
        return [
            (
                total.dataset,
                f"charged {total.price}; {format_left(total.remaining_after, total.remaining_rho_after)} left",
            )
            for total in self.totals
        ]

    def __str__(self) -> str:
        parts = [f"{name}\n{self.answers.get(name) or 'not answered: ' + self.failures[name]}" for name in self.names]
        return "\n\n".join([*parts, display.pairs_text(self.accounts())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        for name in self.names:
            parts.append(display.paragraph_html(name))
            answer = self.answers.get(name)
            failed = f"not answered: {self.failures.get(name)}"
            parts.append(display.paragraph_html(failed) if answer is None else answer._repr_html_())
        return "".join([*parts, display.pairs_html(self.accounts())])


def plan_report(
    asker: Asker, questions: Mapping[str, str], epsilon: Number, split: Mapping[str, Number] | None = None
) -> ReportPlan:
    """Divide ε among the questions about each data set, evenly or as ``split`` says by name, and quote them.

    A question that ``split`` does not name counts 1. One whose answer is public takes nothing.
    """
    total = positive(epsilon, "epsilon")
    proportions = _read_split(check_questions(questions), split)
    whole = []
    for name, sql in questions.items():
        with name_question(name):
            whole.append(try_doubling(partial(asker.payers[0].quote, sql), total))
    paying = [bool(quote.guarantee.epsilon) for quote in whole]
    shares = [total] * len(whole)  # what is public is asked with any ε
    for dataset in {quote.dataset for quote in whole}:
        takers = [pays and quote.dataset == dataset for pays, quote in zip(paying, whole, strict=True)]
        divided = divide(total, proportions, takers, asker.adds_squares(dataset, total)) if any(takers) else shares
        shares = [new if takes else old for new, old, takes in zip(divided, shares, takers, strict=True)]
    least = [quote.least_epsilon if pays else Fraction(0) for quote, pays in zip(whole, paying, strict=True)]
    _refuse_too_little(list(questions), shares, least, total)
    return quote_report(asker, questions, shares)


def plan_within(asker: Asker, questions: Mapping[str, str], find_epsilon: Callable[[str], Fraction]) -> ReportPlan:
    """Plan a report in which each question has the ε that is found for it."""
    found = []
    for name, sql in check_questions(questions).items():
        with name_question(name):
            found.append(find_epsilon(sql))
    return quote_report(asker, questions, found)


def quote_report(asker: Asker, questions: Mapping[str, str], epsilons: Sequence[Fraction]) -> ReportPlan:
    """Quote every question with its own ε."""
    first: dict[Hashable, str] = {}
    planned = []
    for (name, sql), epsilon in zip(check_questions(questions).items(), epsilons, strict=True):
        with name_question(name, epsilon):
            quotes = tuple(payer.quote(sql, epsilon) for payer in asker.payers)
            known = first.setdefault(asker.identify(sql, epsilon), name)
        planned.append(PlannedQuestion(name, sql, epsilon, None if known == name else known, quotes))
    charges = {question.name: question.quotes for question in planned if question.same_as is None}
    return ReportPlan(tuple(planned), add_up(charges, asker.payers), asker)


def try_doubling(call: Callable[[Fraction], T], epsilon: Fraction) -> T:
    """Call with ε, or with the first 2ε, 4ε, … that is not refused as too little; the first refusal if all are."""
    try:
        return call(epsilon)
    except InvalidInput as refusal:
        for doubling in range(1, DOUBLINGS + 1):
            try:
                return call(epsilon * 2**doubling)
            except InvalidInput:
                continue
        raise refusal


@contextmanager
def name_question(name: str, epsilon: Fraction | None = None) -> Iterator[None]:
    """Say in a refusal which question it is about, and with which ε it is asked."""
    whose = f"question {name!r}" + ("" if epsilon is None else f", with ε = {text(epsilon)}")
    try:
        yield
    except QuestionRefused as error:
        raise QuestionRefused(f"{whose}: {error.message}", error.source, error.offset) from None
    except Unanswerable as error:
        raise Unanswerable(f"{whose}: {error}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{whose}: {error}") from None


def check_questions(questions: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse what is no report: questions by name."""
    if not isinstance(questions, Mapping) or not questions:
        raise InvalidInput(f'a report is questions by name, such as {{"count": "SELECT …"}}, got {shorten(questions)}')
    for name in questions:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInput(f"the name of a question is a printable text, got {shorten(name)}")
    return questions


def _read_split(questions: Mapping[str, str], split: Mapping[str, Number] | None) -> list[Fraction]:
    given = {} if split is None else split
    if not isinstance(given, Mapping):
        raise InvalidInput(f"split gives proportions by the names of questions, got {shorten(split)}")
    if unknown := [name for name in given if name not in questions]:
        raise InvalidInput(f"split names {unknown[0]!r}, which is no question here: {', '.join(questions)}")
    return [positive(given.get(name, 1), f"the part of {name!r} in split") for name in questions]


def _refuse_too_little(
    names: Sequence[str], shares: Sequence[Fraction], least: Sequence[Fraction], total: Fraction
) -> None:
    """Refuse an ε of which some question gets too little, with the one that would do for all."""
    worst = max(range(len(names)), key=lambda i: least[i] / shares[i])
    enough = total * least[worst] / shares[worst]
    if enough > total:
        raise InvalidInput(
            f"question {names[worst]!r} gets ε = {text(shares[worst])} of {text(total)}, and needs at least "
            f"{text(least[worst])}: plan the report with epsilon = {text(_round_up(enough))} or more, with fewer "
            "questions, or with a split that gives this one a larger part"
        )


def _round_up(epsilon: Fraction) -> Fraction:
    """ε with four digits after the point, a little more where it has more: roots are rounded down to six.

    >>> str(_round_up(Fraction("0.2"))), str(_round_up(Fraction("0.0866025")))
    ('1/5', '867/10000')
    """
    short = epsilon.limit_denominator(10**4)
    return epsilon if short == epsilon else Fraction(ceil(epsilon * 10**4), 10**4)

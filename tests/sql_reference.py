"""docs/sql.md: what can be asked in SQL, from the registry of statistics, the lexer's tables and questions.

    python -m tests.sql_reference

writes it anew, from tests/sql_page.md. What a statistic needs and tells is found by planning it, its typical error is
an exact expectation on a made-up table, what a condition selects is described by the code, and the reasons of refusals
are the messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist, fmean, median, pstdev
from string import Template

from idios import TrustedParty
from idios.answer.intervals import public_margin
from idios.core.calibration import Method
from idios.core.domain import Categories
from idios.core.exact import text
from idios.core.statistics import FINE, STATISTICS, Parameters, Statistic
from idios.datasets import read_columns
from idios.declare.dates import format_value
from idios.declare.schema import Column
from idios.errors import InvalidInput, QuestionRefused, Unanswerable
from idios.expressions.language import DATE_PARTS, FUNCTIONS, TIME_PARTS
from idios.plan.budget import can_check
from idios.plan.postprocessing import FOLDS
from idios.plan.question_words import describe_selection
from idios.sql import lexer
from idios.sql.expression_reader import list_value_functions
from idios.sql.join_reader import MAX_TABLES
from idios.sql.parser import MAX_SETS
from idios.sql.reader import MAX_SELECTS
from idios.sql.select_reader import MAX_ITEMS, MAX_KEYS
from idios.sql.sql_functions import SqlFunction, list_functions
from tests import sql_examples, sql_people

DOCUMENT = Path(__file__).parents[1] / "docs" / "sql.md"
PAGE = Path(__file__).parent / "sql_page.md"
RECORDS = 10_000
GROUP = 5
LEVELS = {"individual": {}, "group": {"group": GROUP}, "differential": {}}
COLUMNS = {
    "income": {"type": "integer", "nullable": False},
    "bounded": {"type": "integer", "bounds": [0, 1_000_000], "nullable": False},
    "region": {"type": "category", "values": ["north", "east", "south", "west"], "nullable": False},
    "married": {"type": "boolean"},
    "day": {"type": "date", "bounds": ["2020-01-01", "2026-12-31"]},
}
OPERATORS = ("+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=", "and", "or", "not")
TESTS = ("is null", "is distinct", "like", "ilike")


def make_survey() -> dict[str, list[object]]:
    """Incomes at the quantiles (i + ½)/n of a lognormal shape with median 22,026: nothing about it is random."""
    shape = NormalDist(10, 1)
    incomes = [round(math.exp(shape.inv_cdf((i + 0.5) / RECORDS))) for i in range(RECORDS)]
    regions = [["north", "east", "south", "west"][i % 7 % 4] for i in range(RECORDS)]
    return {
        "income": [*incomes],
        "bounded": [*incomes],
        "region": [*regions],
        "married": [i % 2 for i in range(RECORDS)],
        "day": [date(2024, 2, 29)] * RECORDS,
    }


class Survey:
    """The made-up table at every level."""

    def __init__(self) -> None:
        data = make_survey()
        self.parties = {
            level: TrustedParty.open(
                data,
                name="survey",
                columns=COLUMNS,
                budget=10**6,
                protection=level,
                parameters=FINE,
                check=0,
                **settings,  # type: ignore[arg-type]
            )
            for level, settings in LEVELS.items()
        }

    def close(self) -> None:
        for party in self.parties.values():
            party.close()

    def is_answered(self, level: str, call: str) -> bool:
        try:
            self.parties[level].make_plan(f"SELECT {call} FROM survey", 1)
        except Unanswerable:
            return False
        return True

    def find_accuracy(self, level: str, call: str) -> str:
        """What is told of how far off an answer is."""
        if not self.is_answered(level, call):
            return ""
        plan = self.parties[level].make_plan(f"SELECT {call} FROM survey", 1)
        aggregate = plan.aggregates[0]
        if aggregate.choice.method is Method.EXACT:
            return "exact"
        if public_margin(plan, 0) is not None:
            return "margin"
        if aggregate.choice.method in (Method.MOMENTS, Method.CLIPPED):
            return "interval"
        return "check" if can_check(aggregate) else ""

    def find_errors(self, call: str) -> list[str]:
        """E|answer − truth| at ε = 1; of what is publicly known of the whole table, that of a selection."""
        party = self.parties["differential"]
        for where in ("", " WHERE region = 'north'"):
            if not self.is_answered("differential", call):
                return ["refused", "refused"]
            first, _, last = party.costs(f"SELECT {call} FROM survey{where}", 1).rows
            if first.note != "publicly known":
                break
        return ["" if e is None else write_number(e) for e in (first.expected_error, last.expected_error)]


def write_number(number: float) -> str:
    """A number to two digits."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def make_call(function: SqlFunction, column: str, argument: Fraction | int | None = None) -> str:
    """A call of a function on a column, with a usual argument."""
    parameter = function.statistic.parameter
    if parameter is None:
        return function.spelling.write(column)
    usual = 20 if parameter.name == "k" else parameter.propose(FINE)
    return function.spelling.write(column, usual if argument is None else argument)


def make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(written: str) -> str:
    """Text as code; a bar would end the cell of a table."""
    return f"`{written}`".replace("|", "\\|")


def list_preferred() -> list[SqlFunction]:
    """One function for each statistic."""
    return [next(f for f in list_functions() if f.statistic is s and not f.spelling.synonym) for s in STATISTICS]


def describe_parameters() -> str:
    """What may be named at each level unless the controller declares otherwise."""
    usual = Parameters()
    orders = ", ".join(map(str, usual.orders))
    return (
        "Unless the controller declares other [`parameters`](configuration.md), at `differential` q and p are "
        f"multiples of {text(FINE.quantile)} and k is any whole number; at `individual` and `group` they are "
        f"multiples of {text(usual.quantile)} and k is one of {orders}, since a rank that can be slid across the data "
        "one record at a time tells about single records there. A k greater than the public number of "
        "records is refused before it is charged."
    )


def write_forms() -> str:
    """Every function of statistics, how it is written, of what."""
    rows = []
    for function in list_preferred():
        statistic = function.statistic
        others = [s.name for s in statistic.spellings if s.name != function.spelling.name]
        kinds = "any" if len(statistic.kinds) > 5 else ", ".join(sorted(statistic.kinds))
        counted = " or COUNT(*)" if statistic.counts_records else ""
        rows.append([code(function.signature + counted), ", ".join(map(code, others)), kinds, summarise(statistic)])
    return make_table(["written", "also", "columns of type", "what it is"], rows)


def summarise(statistic: type[Statistic]) -> str:
    """The first sentence of its documentation, without what follows a colon or semicolon."""
    first = " ".join((statistic.__doc__ or "").split("\n\n")[0].split()).replace("|", "\\|")
    return first.split(": ")[0].split("; ")[0].rstrip(".")


def write_levels(survey: Survey) -> str:
    """Where each statistic needs bounds, and what is told of how far off it is."""
    rows = []
    for function in list_preferred():
        cells = [code(function.name)]
        cells += [find_need(survey, level, function) for level in LEVELS]
        for levels in (("individual", "group"), ("differential",)):
            found = [
                list(dict.fromkeys(survey.find_accuracy(level, make_call(function, column)) for level in levels))
                for column in list_columns(function)
            ]
            cells.append(join_accuracies([" or ".join(filter(None, each)) for each in found]))
        rows.append(cells)
    told = ["told below `differential`", "told at `differential`"]
    return make_table(["", "`individual`", f"`group` of {GROUP}", "`differential`", *told], rows)


def list_columns(function: SqlFunction) -> list[str]:
    """Without bounds, and with; a statistic of categories has its own column."""
    return ["income", "bounded"] if "integer" in function.statistic.kinds else ["region"]


def find_need(survey: Survey, level: str, function: SqlFunction) -> str:
    """Whether a level answers without bounds."""
    if list_columns(function) == ["region"]:
        return "answered" if survey.is_answered(level, make_call(function, "region")) else "refused"
    parameter = function.statistic.parameter
    if parameter is not None and parameter.name == "k":
        least = next(k for k in range(1, 100) if survey.is_answered(level, make_call(function, "income", k)))
        return f"bounds, or k ≥ {least}"
    if survey.is_answered(level, make_call(function, "income")):
        return "no bounds"
    return "bounds" if survey.is_answered(level, make_call(function, "bounded")) else "refused"


def join_accuracies(found: Sequence[str]) -> str:
    """What is told without bounds, and with them where that is something else."""
    without, with_bounds = found[0], found[-1]
    if without == with_bounds or not without:
        return with_bounds or "nothing"
    return f"{without}; with bounds {with_bounds or 'nothing'}"


def write_errors(survey: Survey) -> str:
    """The expected error of each statistic on the made-up table."""
    rows = []
    for function in list_preferred():
        columns = list_columns(function)
        errors = [
            error for column in (columns[0], columns[-1]) for error in survey.find_errors(make_call(function, column))
        ]
        rows.append([code(make_call(function, columns[0])), *errors])
    heads = ["`individual`", "`differential`", "`individual`, bounds", "`differential`, bounds"]
    return make_table(["", *heads], rows)


def write_functions() -> str:
    """What is computed from released values; KeyError for a function that nobody has described."""
    named = {call.split("(")[0].lower(): call for call in list_value_functions().values()}
    extracted = {f"extract {part}" for part in (*DATE_PARTS, *TIME_PARTS)}
    rows = []
    for name in FUNCTIONS:
        if name in (*OPERATORS, *TESTS) or name in extracted:
            continue
        rows.append([code(named[name]), sql_examples.MEANINGS[name]])
    listed = ", ".join(part.upper() for part in (*DATE_PARTS, *TIME_PARTS))
    rows.append([code("EXTRACT(part FROM moment)"), f"{listed}; {sql_examples.MEANINGS['extract']}"])
    rows.append([code("CASE WHEN … THEN … ELSE … END"), sql_examples.MEANINGS["case"]])
    rows.append([" ".join(code(name.upper()) for name in OPERATORS), sql_examples.MEANINGS["operators"]])
    rows.append([", ".join(map(code, sql_examples.TESTS)), sql_examples.MEANINGS["tests"]])
    return make_table(["written", "what it is"], rows)


def write_conditions(survey: Survey) -> str:
    """Conditions, and what the code says that they select."""
    rows = []
    for condition in sql_examples.CONDITIONS:
        plan = survey.parties["differential"].make_plan(f"SELECT COUNT(*) FROM survey WHERE {condition}", 1)
        described = describe_selection(plan.normal_form).removeprefix("where ") or "every record"
        rows.append([code(condition), described])
    return make_table(["condition", "selects the records where"], rows)


def write_derived() -> str:
    """Derived columns as they are declared, and what follows, or why there is none."""
    rows = []
    for expression in sql_examples.EXPRESSIONS:
        try:
            column = read_columns({**sql_examples.SOURCE, "derived": {"expression": expression}})["derived"]
        except InvalidInput as error:
            rows.append([code(expression), "refused: " + str(error).split(": ", 1)[1].split("\n")[0]])
            continue
        rows.append([code(expression), describe_column(column)])
    return make_table(["expression", "what follows"], rows)


def describe_column(column: Column) -> str:
    """The type of a column, its step, bounds and values, and whether it can be missing."""
    domain, missing = column.domain, "can be missing" if column.nullable else "never missing"
    if isinstance(domain, Categories):
        return f"{column.kind}: {', '.join(domain.values)}; {missing}"
    low, high = (
        None if point is None else format_value(domain.step * point, column.kind)
        for point in (domain.lower, domain.upper)
    )
    ends = [f"from {low}"] * (low is not None) + [f"to {high}"] * (high is not None)
    return f"{column.kind} in steps of {text(domain.step)}, {' '.join(ends) or 'no bounds'}; {missing}"


def list_words(table: dict[str, str]) -> Iterator[list[str]]:
    """The signs or words of a table of the lexer with one reason each."""
    reasons: dict[str, list[str]] = {}
    for word, reason in table.items():
        reasons.setdefault(reason, []).append(word)
    for reason, words in reasons.items():
        yield [" ".join("`` ` ``" if word == "`" else code(word) for word in words), reason.replace("|", "\\|")]


def write_words() -> str:
    """What the lexer refuses by its sign or word alone, and names of other dialects."""
    advised = {name: advice for statistic in STATISTICS for name, advice in statistic.advice.items()}
    rows = [*list_words(lexer._SIGNS), *list_words(lexer._CLAUSES), *list_words(advised)]
    return make_table(["sign, word or function", "what is said"], rows)


def write_refusals(survey: Survey) -> str:
    """Questions that are refused, and the reason that is given."""
    rows = []
    for sql in sql_examples.REFUSED:
        try:
            survey.parties["differential"].make_plan(f"SELECT {sql}", 1)
        except (QuestionRefused, Unanswerable) as error:
            reason = str(error).split("\n")[0].split(" (line ")[0]
            rows.append([code(sql), reason.split(". A question reads")[0].replace("|", "\\|")])
        else:
            raise AssertionError(f"{sql} is answered")
    return make_table(["`SELECT …`", "what is said"], rows)


def write_reductions() -> str:
    """What the rows of a person can be reduced to."""
    rows = [
        [code(written), f"the {words}", describe_column(column)]
        for written, words, column in sql_people.list_reductions()
    ]
    return make_table(["a value of a person", "what it is", "what follows"], rows)


def write_questions(party: TrustedParty, questions: Sequence[str]) -> str:
    """Questions about people, and what each asks."""
    rows = [[code(sql), asked.replace("|", "\\|")] for sql, asked in sql_people.describe_questions(party, questions)]
    return make_table(["`SELECT …`", "what is asked"], rows)


def count_selected() -> int:
    """The records of one region, of which what is publicly known of all is measured."""
    return sum(region == "north" for region in make_survey()["region"])


def write_reference() -> str:
    """The whole page."""
    survey, shop = Survey(), sql_people.open_shop()
    source = read_columns(sql_examples.SOURCE)
    incomes = [float(str(income)) for income in make_survey()["income"]]
    try:
        return Template(PAGE.read_text(encoding="utf-8")).substitute(
            parameters=describe_parameters(),
            forms=write_forms(),
            levels=write_levels(survey),
            errors=write_errors(survey),
            functions=write_functions(),
            folds=", ".join(FOLDS),
            conditions=write_conditions(survey),
            derived=write_derived(),
            source=", ".join(code(f"{name} {describe_column(column)}") for name, column in source.items()),
            reductions=write_reductions(),
            reduced=write_questions(shop, sql_people.REDUCED),
            joined=write_questions(shop, sql_people.JOINED),
            tables=MAX_TABLES,
            words=write_words(),
            refusals=write_refusals(survey),
            length=f"{lexer.MAX_LENGTH:,}",
            items=MAX_ITEMS,
            keys=MAX_KEYS,
            selects=MAX_SELECTS,
            sets=MAX_SETS,
            nesting=lexer.MAX_NESTING,
            records=f"{RECORDS:,}",
            selected=f"{count_selected():,}",
            median=f"{median(incomes):,.0f}",
            mean=f"{fmean(incomes):,.0f}",
            deviation=f"{pstdev(incomes):,.0f}",
            greatest=f"{max(incomes):,.0f}",
        )
    finally:
        survey.close()
        shop.close()


if __name__ == "__main__":
    DOCUMENT.write_text(write_reference(), encoding="utf-8")

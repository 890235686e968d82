"""From a question to a plan: what is released, with which ε, by which mechanism. Public facts only.

    filter ─▶ diagram ─▶ groups and cells ─▶ different statistics ─▶ shares of ε ─▶ mechanisms ─▶ Plan

ε is divided among the different statistics (``split``), and each share once more between the cells (``budget``). Noise
that is fitted to the data takes these shares as weights, and is calibrated for the whole question (``core.joint``). A
statistic that is publicly known (COUNT(*) of a whole table whose size is public) takes nothing. Groups of records can
touch several cells at once, so with several cells each promises groups what ``part_multiples`` says. Every released
cell then has at least the data set's least ε, and the question pays this much for each value whose noise is fitted to
the data (``Plan.least_epsilon``).

Under replace a record that moves from one cell to another is a removal and an addition, and one that changes within a
cell is both. So a mechanism that is ε/2-DP under add-remove keeps ε under replace, either way; with several cells all
that are not fitted to the data are calibrated to add-remove (``Aggregate.neighbours``), but for those whose envelope
takes long then. Two additions or removals move a median as far as one replacement does, so that this halves its error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import Any

from idios.codec import canonical
from idios.core.calibration import Choice, Method
from idios.core.domain import LIMIT, Categories, Domain
from idios.core.exact import positive, text
from idios.core.question_memory import one_question
from idios.declare.schema import Dataset
from idios.errors import InvalidInput, QuestionRefused
from idios.expressions.diagram import Diagram, DiagramManager
from idios.expressions.predicates import ALWAYS, EVERYTHING, Among, And, Predicate, list_leaves, simplify
from idios.expressions.work import GROUP, MAX_WORK, Work
from idios.plan.budget import (
    Chooser,
    Target,
    can_check,
    divide,
    explain_unchecked,
    find_price,
    make_guarantee,
    needs_check,
    read_check,
    shares_rho,
)
from idios.plan.cells import Cell, make_cells, make_groups
from idios.plan.derived_values import find_possible
from idios.plan.normal_form import (
    list_statistics,
    make_check_form,
    make_form,
    shorten_form,
    statistic_key,
    write_form,
)
from idios.plan.postprocessing import count_rows, count_work
from idios.plan.question import Group, Measure, Plan, Question, Split, read_split
from idios.plan.reductions import reduce as reduce_to_people
from idios.sql.literals import quote_string
from idios.sql.suggestions import list_some

_NO_CHECK = "how far off it is could be told in records here, of which a {word} has several: ask without check"


@dataclass(frozen=True)
class Prepared:
    """What is decided about a question whatever its ε.

    ``dataset`` has one record for each person, ``targets`` are the different statistics in the order of release, and
    ``same`` says which of them each of the question's own is. ``form`` is the normal form but for the statistics, whose
    shares of ε are in it, ``text`` the same in JSON, and ``selections`` which of its selections each statistic is of.
    ``work`` is what it took.
    """

    dataset: Dataset
    filter: Predicate
    groups: tuple[Group, ...]
    cells: tuple[Cell, ...]
    targets: tuple[Target, ...]
    same: tuple[int, ...]
    form: Mapping[str, Any]
    text: str
    selections: tuple[int, ...]
    work: int


@one_question()
def make_plan(
    question: Question,
    dataset: Dataset,
    epsilon: object,
    split: Split = None,
    check: object = None,
    *,
    preparing: Callable[[Question, Dataset], Prepared] | None = None,
) -> Plan:
    """Decide everything about a question that can be decided without data.

    ``check`` is the share of ε that tells how far off each answer is; None is what the data set declares, as far as it
    leaves the least ε to both. ``preparing`` does what ``prepare`` does, or knows what it made of the question before.

    >>> from idios.core.domain import Kind
    >>> from idios.sql.reader import read
    >>> from idios.declare.schema import Column
    >>> people = Dataset("people", {"age": Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)})
    >>> question = read("SELECT COUNT(*), MEDIAN(age), AVG(age) FROM people WHERE age < 18", {"people": people})
    >>> [(a.label, str(a.epsilon), a.domain.upper) for a in make_plan(question, people, "0.6").aggregates]
    [('COUNT(*)', '1/5', None), ('AVG(age)', '1/5', 17), ('MEDIAN(age)', '1/5', 17)]
    """
    total = positive(epsilon, "epsilon")
    if question.dataset != dataset.name:
        raise InvalidInput(f"the question is about {question.dataset!r}, the data set given is {dataset.name!r}")
    known = (preparing or prepare)(question, dataset)
    dataset, groups, cells = known.dataset, known.groups, known.cells
    part = None if check is None else read_check(check)
    if part and dataset.reduction is not None and dataset.records > 1:
        raise InvalidInput(_NO_CHECK.format(word=dataset.unit_word))
    proportions = None if split is None else read_split(question.measures, known.same, split)
    apart = 1 if dataset.reduction is None else dataset.reduction.count_apart(group.column for group in groups)
    chooser = Chooser(dataset, len(cells), shares_rho(dataset, total), part, apart)
    aggregates = chooser.answer_all(known.targets, proportions, total)
    price = find_price(aggregates, dataset, len(cells), apart)
    statistics = list_statistics(aggregates, known.selections)
    made = Plan(
        dataset,
        known.filter,
        groups,
        cells,
        aggregates,
        total,
        price,
        make_guarantee(aggregates, dataset, len(cells), price),
        write_form(known.text, statistics),
        tuple([group.column for group in groups].index(key.column) for key in question.keys),
        tuple(zip((measure.label for measure in question.measures), known.same, strict=True)),
        question.shown,
        question.source,
        form={**shorten_form(known.form), "statistics": statistics},
    )
    _refuse_too_little(made, total)
    return made


def prepare(question: Question, dataset: Dataset) -> Prepared:
    """Decide what does not depend on ε: most of the work, where there are many groups or conditions."""
    work = Work(MAX_WORK + GROUP * dataset.max_groups)
    if question.reduction is not None:
        dataset = reduce_to_people(dataset, question.reduction, work)
    elif dataset.unit:
        raise AssertionError("rows of a data set with a unit are asked about by person only")
    selection = _selection(question, dataset, work)
    own = [_own_selection(question, measure, selection) for measure in question.measures]
    answered = reduce(or_, own)
    groups = make_groups(question, dataset, answered)
    cells = make_cells(groups, answered)
    selection.manager.work.spend(len(cells) * count_work(question.shown, len(question.keys) + len(question.measures)))
    _refuse_too_many_rows(question, dataset, groups, len(cells))
    listed = [
        _target(question, measure, dataset, values, values == selection, len(cells))
        for measure, values in zip(question.measures, own, strict=True)
    ]
    names = [statistic_key(target.statistic, target.column, target.selection) for target in listed]
    first = dict(zip(reversed(names), reversed(listed), strict=True))
    order = sorted(first)
    targets = tuple(first[name] for name in order)
    places = {name: i for i, name in enumerate(order)}
    texts = [target.selection.text for target in targets]
    released = [(target.statistic, target.column, target.selection) for target in targets]
    form = make_form(dataset, answered, groups, cells, released, work)
    return Prepared(
        dataset,
        _executed(question, dataset, groups, selection),
        groups,
        cells,
        targets,
        tuple(places[name] for name in names),
        form,
        canonical(form),
        tuple(map(sorted(set(texts)).index, texts)),
        work.spent,
    )


@one_question()
def plan_check(answered: Plan, cells: Sequence[Sequence[str | None]], epsilon: object) -> Plan:
    """Plan what tells how far off the cells of an earlier answer are; what has no distance to tell is left as it is.

    Nothing is drawn of the statistics again, so that they cost nothing.
    """
    total, dataset = positive(epsilon, "epsilon"), answered.dataset
    if dataset.records > 1:
        raise InvalidInput(_NO_CHECK.format(word=dataset.unit_word))
    concentrated = shares_rho(dataset, total)
    chooser = Chooser(dataset, len(answered.cells), concentrated)
    taken = [can_check(aggregate) for aggregate in answered.aggregates]
    if not any(taken):
        secret = (explain_unchecked(a.label, dataset.unit_word) for a in answered.aggregates if needs_check(a))
        raise InvalidInput(next(secret, "no answer of this question has a distance that could be told"))
    shares = divide(total, [Fraction(1)] * len(taken), taken, concentrated)
    nothing = Choice(Method.EXACT, 0, Fraction(0))
    checks = [
        chooser.make_check(aggregate, share) if share else None
        for aggregate, share in zip(answered.aggregates, shares, strict=True)
    ]
    aggregates = tuple(
        replace(aggregate, epsilon=Fraction(0), choice=nothing, check=check, demanded=check.epsilon if check else None)
        for aggregate, check in zip(answered.aggregates, checks, strict=True)
    )
    price = find_price(aggregates, dataset, len(answered.cells))
    made = replace(
        answered,
        aggregates=aggregates,
        asked=total,
        rho=price,
        guarantee=make_guarantee(aggregates, dataset, len(answered.cells), price),
        normal_form=canonical(make_check_form(json.loads(answered.normal_form), answered.epsilon, aggregates)),
        form=make_check_form(answered.form, answered.epsilon, aggregates),
        checked=tuple(map(tuple, cells)),
    )
    _refuse_too_little(made, total)
    return made


def _refuse_too_many_rows(question: Question, dataset: Dataset, groups: Sequence[Group], cells: int) -> None:
    """Totals are rows like groups, and count like them."""
    sizes = {group.column: len(group.values) for group in groups}
    rows = count_rows(question.shown, cells, [sizes[key.column] for key in question.keys])
    if rows > max(cells, dataset.max_groups):
        raise QuestionRefused(
            f"GROUP BY makes {rows:,} rows with totals, at most {dataset.max_groups:,} are allowed: ask for fewer sets"
        )


def _name_values(question: Question, dataset: Dataset) -> str:
    """The values of a category of which a condition selects none, as LIKE may."""
    parts = question.filter.parts if isinstance(question.filter, And) else (question.filter,)
    for part in parts:
        if isinstance(part, Among) and not part.intervals and not part.nulls:
            domain = dataset.columns[part.column].domain
            if isinstance(domain, Categories):
                values = list_some([quote_string(value) for value in domain.labels or domain.values])
                return f". It selects no value of {part.column}, which has {values}"
    return ""


def _selection(question: Question, dataset: Dataset, work: Work) -> Diagram:
    """The records that fulfil WHERE and are in a group: those without NULL in a key."""
    selection = DiagramManager(dataset.columns, work).build(question.filter)
    if selection.never:
        told = _name_values(question, dataset)
        raise QuestionRefused(
            f"no record can ever fulfil WHERE, given the declared columns: there is nothing to ask{told}"
        )
    for key in question.keys:
        selection &= selection.manager.build(_present(key.column))
    if selection.never or not all(find_possible(selection, key.column)[0] for key in question.keys):
        raise QuestionRefused("no record that fulfils WHERE can be in any group: there is nothing to ask")
    return selection


def _own_selection(question: Question, measure: Measure, selection: Diagram) -> Diagram:
    """The selected records that have a value of the measure's column: the others do not matter to it."""
    if measure.column is None:
        return selection
    own = selection & selection.manager.build(_present(measure.column))
    if own.never or not find_possible(own, measure.column)[0]:
        raise QuestionRefused(
            f"{measure.label}: no record that fulfils WHERE can have a value of {measure.column}",
            question.source,
            measure.offset,
        )
    return own


def _executed(question: Question, dataset: Dataset, groups: Sequence[Group], selection: Diagram) -> Predicate:
    """The filter that an engine applies: WHERE, and each key in one of its groups."""
    if selection.always:
        return ALWAYS
    grouped = (Among(group.column, group.points) for group in groups)
    filtered = selection.manager.expand(question.filter)  # which is quicker than to compute a derived column
    if filtered is not question.filter and _reaches_beyond(filtered):
        filtered = question.filter
    return simplify(And((filtered, *grouped)), dataset.columns, selection.manager.work)


def _reaches_beyond(predicate: Predicate) -> bool:
    """Whether a column is compared with a number beyond ±2^62, which an engine takes for that."""
    intervals = (interval for among in list_leaves(predicate) for interval in among.intervals)
    return any(end is not None and abs(end) > LIMIT for interval in intervals for end in interval)


def _target(
    question: Question, measure: Measure, dataset: Dataset, selection: Diagram, every_record: bool, cells: int
) -> Target:
    statistic = measure.statistic.normalise()
    if problem := statistic.find_objection(dataset.parameters):
        raise QuestionRefused(f"{measure.label}: {problem}", question.source, measure.offset)
    everyone = selection.always and dataset.has_everyone
    whole = everyone and cells == 1
    if measure.column is None or (statistic.counts_records and every_record):
        return Target(measure, statistic, None, selection, Domain(), whole)
    column = dataset.columns[measure.column]
    if statistic.selects:
        return Target(measure, statistic, column.name, selection, column.domain, whole)
    points, _ = find_possible(selection, column.name)
    low, high = points[0][0], points[-1][1]
    # what lies beyond the ends of the grid reads as the ends, also where a filter selects it
    low, high = low if low is None else min(low, LIMIT), high if high is None else max(high, -LIMIT)
    narrowed = column.grid.narrowed(low, high)
    if narrowed is None:
        raise AssertionError("a selection that is not empty leaves points of its columns")
    return Target(measure, statistic, column.name, selection, narrowed, whole, everyone)


def _refuse_too_little(made: Plan, total: Fraction) -> None:
    enough, smallest = made.least_epsilon, made.smallest_share
    if total >= enough or not made.epsilon:
        return
    least, one = made.dataset.min_epsilon, made.dataset.protection.multiples[0]
    if total < made.least_fitted and one * smallest >= least:
        raise InvalidInput(
            f"epsilon = {text(total)} is too small: {made.fitted:,} values whose noise is fitted to the data need at "
            f"least {text(least)} each, groups included. Ask with epsilon = "
            f"{text(enough)} or more, or for fewer groups or statistics. The controller could declare protection = "
            '"differential", which has no such price'
        )
    where = f" in each of {len(made.cells):,} groups" if len(made.cells) > 1 else ""
    worst = next(aggregate for aggregate in made.aggregates if aggregate.least_part == smallest)
    label = worst.label if smallest == worst.epsilon or not worst.check else f"the check of {worst.label}"
    raise InvalidInput(
        f"epsilon = {text(total)} leaves {text(one * smallest)} for {label}{where}; this data set answers with at "
        f"least {text(least)} for every released value: ask with epsilon = {text(enough)} or more"
    )


def _present(column: str) -> Among:
    """The column is not NULL."""
    return Among(column, EVERYTHING)

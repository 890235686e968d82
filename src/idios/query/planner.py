"""From a question to a plan: what is released, with which ε, by which mechanism. Public facts only.

    filter ─▶ diagram ─▶ groups and cells ─▶ different statistics ─▶ shares of ε ─▶ mechanisms ─▶ Plan

ε is divided among the different statistics (``split``), and each share once more between the cells (``shares``). Noise
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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from operator import or_

from idios.core.calibration import Choice, Method, Protection, choose
from idios.core.concentrated import pure_rho
from idios.core.domain import LIMIT, Categories, Domain
from idios.core.exact import positive, text
from idios.core.guarantee import split_between_parts
from idios.core.multiples import part_multiples
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Statistic
from idios.errors import InvalidInput, QuestionRefused, Unanswerable
from idios.query.cells import make_cells, make_groups
from idios.query.decision_diagram import Diagram, DiagramManager
from idios.query.normal_form import normal_form, statistic_key
from idios.query.plan import Aggregate, Group, Key, Measure, Output, Plan, Question, Split, read_split
from idios.query.predicates import ALWAYS, EVERYTHING, Among, And, Predicate, simplify, union
from idios.query.schema import Dataset
from idios.query.shares import (
    choose_for_cells,
    divide,
    find_price,
    find_relative_sensitivity,
    make_guarantee,
    shares_rho,
)
from idios.query.sql_functions import propose_alternatives


@dataclass(frozen=True)
class Target:
    """One statistic to release: of which column, of which selected records, whatever it was called."""

    measure: Measure
    statistic: Statistic
    column: str | None
    selection: Diagram
    domain: Domain | Categories
    whole: bool


def make_plan(question: Question, dataset: Dataset, epsilon: object, split: Split = None) -> Plan:
    """Decide everything about a question that can be decided without data.

    >>> from idios.core.domain import Kind
    >>> from idios.query.reader import read
    >>> from idios.query.schema import Column
    >>> people = Dataset("people", {"age": Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)})
    >>> question = read("SELECT COUNT(*), MEDIAN(age), AVG(age) FROM people WHERE age < 18", {"people": people})
    >>> [(a.label, str(a.epsilon), a.domain.upper) for a in make_plan(question, people, "0.6").aggregates]
    [('COUNT(*)', '1/5', None), ('AVG(age)', '1/5', 17), ('MEDIAN(age)', '1/5', 17)]
    """
    total = positive(epsilon, "epsilon")
    if question.dataset != dataset.name:
        raise InvalidInput(f"the question is about {question.dataset!r}, the data set given is {dataset.name!r}")
    selection = _selection(question, dataset)
    own = [_own_selection(question, measure, selection) for measure in question.measures]
    answered = reduce(or_, own)
    groups = make_groups(question, dataset, answered)
    cells = make_cells(groups, answered)
    listed = [
        _target(question, measure, dataset, values, values == selection, len(cells))
        for measure, values in zip(question.measures, own, strict=True)
    ]
    names = [statistic_key(target.statistic, target.column, target.selection) for target in listed]
    first = dict(zip(reversed(names), reversed(listed), strict=True))
    order = sorted(first)
    targets = [first[name] for name in order]
    places = {name: i for i, name in enumerate(order)}
    same = [places[name] for name in names]
    proportions = None if split is None else read_split(question.measures, same, split)
    concentrated = shares_rho(dataset, total)
    aggregates = _aggregates(targets, proportions, dataset, total, len(cells), concentrated)
    price = find_price(aggregates, dataset, len(cells))
    guarantee = make_guarantee(aggregates, dataset, len(cells), price)
    released = [(target.selection, aggregate) for target, aggregate in zip(targets, aggregates, strict=True)]
    made = Plan(
        dataset,
        _executed(question, dataset, groups, selection),
        groups,
        cells,
        aggregates,
        total,
        price,
        guarantee,
        normal_form(dataset, answered, groups, cells, released),
        _outputs(question, groups, same),
    )
    _refuse_too_little(made, total)
    return made


def _selection(question: Question, dataset: Dataset) -> Diagram:
    """The records that fulfil WHERE and are in a group: those without NULL in a key."""
    selection = DiagramManager(dataset.columns).build(question.filter)
    if selection.never:
        raise QuestionRefused("no record can ever fulfil WHERE, given the declared columns: there is nothing to ask")
    for key in question.keys:
        selection &= selection.manager.build(_present(key.column))
    if selection.never:
        raise QuestionRefused("no record that fulfils WHERE can be in any group: there is nothing to ask")
    return selection


def _own_selection(question: Question, measure: Measure, selection: Diagram) -> Diagram:
    """The selected records that have a value of the measure's column: the others do not matter to it."""
    if measure.column is None:
        return selection
    own = selection & selection.manager.build(_present(measure.column))
    if own.never:
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
    grouped = (Among(group.column, union(group.intervals)) for group in groups)
    return simplify(And((question.filter, *grouped)), dataset.columns, selection.manager.work)


def _target(
    question: Question, measure: Measure, dataset: Dataset, selection: Diagram, every_record: bool, cells: int
) -> Target:
    statistic = measure.statistic.normalise()
    if problem := statistic.find_objection(dataset.parameters):
        raise QuestionRefused(f"{measure.label}: {problem}", question.source, measure.offset)
    whole = selection.always and cells == 1
    if measure.column is None or (statistic.counts_records and every_record):
        return Target(measure, statistic, None, selection, Domain(), whole)
    column = dataset.columns[measure.column]
    if statistic.selects:
        return Target(measure, statistic, column.name, selection, column.domain, whole)
    points, _ = selection.possible(column.name)
    low, high = points[0][0], points[-1][1]
    # what lies beyond the ends of the grid reads as the ends, also where a filter selects it
    low, high = low if low is None else min(low, LIMIT), high if high is None else max(high, -LIMIT)
    narrowed = column.grid.narrowed(low, high)
    if narrowed is None:
        raise AssertionError("a selection that is not empty leaves points of its columns")
    return Target(measure, statistic, column.name, selection, narrowed, whole)


def _aggregates(
    targets: Sequence[Target],
    proportions: Sequence[Fraction] | None,
    dataset: Dataset,
    total: Fraction,
    cells: int,
    concentrated: bool,
) -> tuple[Aggregate, ...]:
    protection = dataset.protection
    if cells > 1:
        protection = replace(protection, multiples=part_multiples(protection.multiples))
    paying = [not _is_free(target, dataset.neighbours) for target in targets]
    if proportions is None:
        proportions = _balance(targets, paying, dataset, total, concentrated)
    answer = _answer_concentrated if concentrated else _answer_purely
    return tuple(
        answer(target, dataset, protection, share, cells) if share else _answer_freely(target, dataset)
        for target, share in zip(targets, divide(total, proportions, paying, concentrated), strict=True)
    )


def _answer_freely(target: Target, dataset: Dataset) -> Aggregate:
    """What is publicly known."""
    return _aggregate(target, Fraction(0), Choice(Method.EXACT, 0, Fraction(0)), dataset.neighbours)


def _answer_purely(target: Target, dataset: Dataset, protection: Protection, share: Fraction, cells: int) -> Aggregate:
    epsilon = split_between_parts(share, dataset.neighbours, cells)
    in_cells = cells > 1 and not target.statistic.tries_splits
    neighbours = Neighbours.ADD_REMOVE if in_cells else dataset.neighbours
    choice = _choice(target, dataset, protection, epsilon, neighbours, cells)
    return _aggregate(target, epsilon, choice, dataset.neighbours if choice.method is Method.LOCAL else neighbours)


def _answer_concentrated(
    target: Target, dataset: Dataset, protection: Protection, share: Fraction, cells: int
) -> Aggregate:
    """With Gaussian noise, where noise is added at all; otherwise with as much ε as has the ρ of one selection."""
    neighbours, parts = dataset.neighbours, 1
    if neighbours is Neighbours.REPLACE and cells > 1:
        parts = 2
    gaussian = _choice(target, dataset, protection, share, neighbours, cells, pure_rho(share), parts)
    if gaussian.rho is not None or parts == 1:
        return _aggregate(target, share, gaussian, neighbours)
    choose_share = partial(_choice, target, dataset, protection, cells=cells)
    choice, neighbours, epsilon = choose_for_cells(choose_share, target.statistic, share)
    return _aggregate(target, epsilon, choice, neighbours)


def _aggregate(target: Target, epsilon: Fraction, choice: Choice, neighbours: Neighbours) -> Aggregate:
    statistic, column, domain = target.statistic, target.column, target.domain
    return Aggregate(target.measure.label, statistic, column, domain, target.whole, epsilon, choice, neighbours)


def _balance(
    targets: Sequence[Target], paying: Sequence[bool], dataset: Dataset, total: Fraction, concentrated: bool
) -> list[Fraction]:
    """Shares for which relative errors are equal, where they are public and no share is too little; else equal ones."""
    even = [Fraction(1)] * len(targets)
    found = []
    for target, pays in zip(targets, paying, strict=True):
        moves = Moves(dataset.neighbours, 1, None if target.whole else 0)
        relative = find_relative_sensitivity(target.statistic, target.domain.grid, moves) if pays else Fraction(1)
        if relative is None:
            return even
        found.append(relative)
    shares = divide(total, found, paying, concentrated)
    least = 2 * dataset.min_epsilon  # as cells may get half
    return even if any(share < least for share, pays in zip(shares, paying, strict=True) if pays) else found


def _is_free(target: Target, neighbours: Neighbours) -> bool:
    """Whether a statistic is publicly known."""
    statistic, moves = target.statistic, Moves(neighbours, 1, None if target.whole else 0)
    return statistic.always_global and statistic.global_sensitivity(target.domain.grid, moves) == 0


def _choice(
    target: Target,
    dataset: Dataset,
    protection: Protection,
    epsilon: Fraction,
    neighbours: Neighbours,
    cells: int,
    rho: Fraction | None = None,
    parts: int = 1,
) -> Choice:
    """The mechanism of a statistic."""
    chosen = partial(
        choose,
        domain=target.domain.grid,
        neighbours=neighbours,
        whole=target.whole,
        protection=protection,
        epsilon=epsilon,
        cells=cells,
        size=dataset.size,
        rho=rho,
        parts=parts,
    )
    try:
        return chosen(target.statistic)
    except Unanswerable as error:
        instead = propose_alternatives(target.statistic, target.column or "", dataset.parameters, chosen)
        raise Unanswerable(f"{target.measure.label} cannot be answered: {error}. {instead}") from None


def _refuse_too_little(made: Plan, total: Fraction) -> None:
    enough = made.least_epsilon
    if total >= enough or not made.epsilon:
        return
    least, one = made.dataset.min_epsilon, made.dataset.protection.multiples[0]
    smallest = min((a for a in made.aggregates if a.epsilon), key=lambda aggregate: aggregate.epsilon)
    if total * least / (one * smallest.epsilon) < enough:
        raise InvalidInput(
            f"epsilon = {text(total)} is too little for {made.fitted:,} values whose noise is fitted to the data: this "
            f"data set takes at least {text(least)} for each of them, groups included. Ask with epsilon = "
            f"{text(enough)} or more, or for fewer groups or statistics. The controller could declare protection = "
            '"differential", which has no such price'
        )
    where = f" in each of {len(made.cells):,} groups" if len(made.cells) > 1 else ""
    raise InvalidInput(
        f"epsilon = {text(total)} leaves {text(one * smallest.epsilon)} for {smallest.label}{where}; this data set "
        f"answers with at least {text(least)} for every released value: ask with epsilon = {text(enough)} or more"
    )


def _outputs(question: Question, groups: Sequence[Group], same: Sequence[int]) -> tuple[Output, ...]:
    """The columns of the answer: keys that SELECT does not list, then the SELECT list."""
    place = {group.column: i for i, group in enumerate(groups)}
    listed = {item.meaning for item in question.items if isinstance(item, Key)}
    outputs = [Output(key.label, group=place[key.column]) for key in question.keys if key.meaning not in listed]
    statistics = iter(same)
    for item in question.items:
        if isinstance(item, Key):
            output = Output(item.label, group=place[item.column])
        else:
            output = Output(item.label, aggregate=next(statistics))
        if output in outputs:
            continue  # the same thing under the same name
        if any(output.label == other.label for other in outputs):
            raise QuestionRefused(
                f"two different results are called {output.label!r}: name one of them with AS",
                question.source,
                item.offset,
            )
        outputs.append(output)
    return tuple(outputs)


def _present(column: str) -> Among:
    """The column is not NULL."""
    return Among(column, EVERYTHING)

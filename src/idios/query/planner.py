"""From a question to a plan: what is released, with which ε, by which mechanism. Public facts only.

    filter ─▶ diagram ─▶ groups and cells ─▶ different statistics ─▶ shares of ε ─▶ mechanisms ─▶ Plan

ε is divided among the different statistics (``split``), and each share once more between the cells: a record is in
one cell, and under replace can leave it for another, so each of several cells gets half (``guarantee``). Noise that is
fitted to the data takes these shares as weights, and is calibrated for the whole question (``core.joint``). A statistic
that is publicly known (COUNT(*) of a whole table whose size is public) takes nothing. Groups of records can touch
several cells at once, so with several cells each promises groups what ``part_multiples`` says. Every released cell then
has at least the data set's least ε, and the question pays this much for each value whose noise is fitted to the data
(``Plan.least_epsilon``).

Under replace a record that moves from one cell to another is a removal and an addition, and one that changes within a
cell is both. So a mechanism that is ε/2-DP under add-remove keeps ε under replace, either way; with several cells all
that are not fitted to the data are calibrated to add-remove (``Aggregate.neighbours``). Two additions or removals move
a median as far as one replacement does, so that this halves its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from operator import or_

from idios.core.calibration import Choice, Level, Method, Protection, choose
from idios.core.domain import LIMIT, Categories, Domain
from idios.core.exact import positive, text
from idios.core.guarantee import Guarantee, compose_parallel, compose_sequential, round_up, split_between_parts
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
    aggregates = _aggregates(targets, read_split(question.measures, same, split), dataset, total, len(cells))
    guarantee = _guarantee(aggregates, dataset, len(cells))
    released = [(target.selection, aggregate) for target, aggregate in zip(targets, aggregates, strict=True)]
    made = Plan(
        dataset,
        _executed(question, dataset, groups, selection),
        groups,
        cells,
        aggregates,
        guarantee.epsilon,
        guarantee.delta,
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
    targets: Sequence[Target], proportions: Sequence[Fraction], dataset: Dataset, total: Fraction, cells: int
) -> tuple[Aggregate, ...]:
    protection = dataset.protection
    if cells > 1:
        protection = replace(protection, multiples=part_multiples(protection.multiples))
    neighbours = Neighbours.ADD_REMOVE if cells > 1 else dataset.neighbours
    free = [_is_free(target, neighbours) for target in targets]
    aggregates: list[Aggregate] = []
    for target, share in zip(targets, _divide(total, proportions, [not known for known in free]), strict=True):
        epsilon = split_between_parts(share, dataset.neighbours, cells)
        if epsilon:
            choice = _choice(target, dataset, protection, epsilon, neighbours, cells)
        else:
            choice = Choice(Method.EXACT, 0, epsilon)
        aggregates.append(
            Aggregate(
                target.measure.label,
                target.statistic,
                target.column,
                target.domain,
                target.whole,
                epsilon,
                choice,
                dataset.neighbours if choice.method is Method.LOCAL else neighbours,
            )
        )
    return tuple(aggregates)


def _divide(whole: Fraction, proportions: Sequence[Fraction], takers: Sequence[bool]) -> list[Fraction]:
    """The shares of the takers, in proportion; 0 for the others."""
    taken = sum(part for part, takes in zip(proportions, takers, strict=True) if takes)
    return [whole * part / taken if takes else Fraction(0) for part, takes in zip(proportions, takers, strict=True)]


def _is_free(target: Target, neighbours: Neighbours) -> bool:
    """Whether a statistic is publicly known."""
    statistic, moves = target.statistic, Moves(neighbours, 1, None if target.whole else 0)
    return statistic.always_global and statistic.global_sensitivity(target.domain.grid, moves) == 0


def _choice(
    target: Target, dataset: Dataset, protection: Protection, epsilon: Fraction, neighbours: Neighbours, cells: int
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


def _guarantee(aggregates: Sequence[Aggregate], dataset: Dataset, cells: int) -> Guarantee:
    """What the whole answer promises: sequential composition over the statistics of a cell, parallel over the cells."""
    # what adds up to one promise is added first: the promise to groups is a long vector
    fitted = [aggregate for aggregate in aggregates if aggregate.fitted]
    others = [aggregate for aggregate in aggregates if not aggregate.fitted]
    cell = compose_sequential(_promise(part, dataset) for part in (fitted, others) if part)
    together = cell if cells == 1 else compose_parallel([cell] * cells)
    return round_up(together, dataset.protection.multiples)


def _promise(aggregates: Sequence[Aggregate], dataset: Dataset) -> Guarantee:
    """What the aggregates of a cell promise that are all fitted, or all not.

    Noise at the local sensitivity promises what the level does; every other mechanism is differentially private.
    """
    level, neighbours = dataset.protection.level, dataset.neighbours
    epsilon = sum((aggregate.choice.epsilon for aggregate in aggregates), Fraction(0))
    first = aggregates[0]
    if first.fitted and level is Level.GROUP:
        return Guarantee.for_groups([multiple * epsilon for multiple in first.choice.multiples], neighbours)
    return Guarantee(level if first.fitted else Level.DIFFERENTIAL, epsilon, neighbours)


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

"""Which mechanism answers each statistic of a question, with how much of its ε, and what checks the answer.

Public facts only. First comes which share each statistic gets and what all of it costs, then by which mechanism it is
answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

from idios.core.accounting import compose_parallel, compose_sequential, round_up, split_between_parts
from idios.core.calibration import Choice, Level, Method, Protection, choose
from idios.core.concentrated import Rho, add_cells, find_rho, pure_rho
from idios.core.distance_check import DistanceCheck, find_reach
from idios.core.domain import Categories, Domain
from idios.core.exact import INFINITY, exact, round_root_down
from idios.core.guarantee import Guarantee
from idios.core.multiples import part_multiples
from idios.core.neighbours import Moves, Neighbours, to_plural
from idios.core.statistics import Statistic, Sum
from idios.declare.schema import Dataset
from idios.errors import InvalidInput, Unanswerable
from idios.expressions.diagram import Diagram
from idios.plan.question import Aggregate, Measure
from idios.sql.sql_functions import propose_alternatives

# How the statistics of a question share its ε, what each of its cells gets, and what the answer promises and costs.
#
# *Pure accounting.* The shares of ε add up to it. A record is in one cell, and under replace can leave it for another,
# so each of several cells gets half.
#
# *Concentrated accounting.* A question of ε may lose ρ = ε²/2, and ρ adds up: the squares of the shares add up to ε²,
# so that d statistics have ε/√d each, not ε/d. Two cells add up likewise: whatever mechanism answers in cells gets as
# much as keeps the ρ that it would have in one selection. What results is charged (``find_rho``), ε by pure accounting
# beside. A question whose ε²/2 exceeds the declared budget is planned as with pure accounting, for only that can pay
# for it.
#
# *Records of one person in cells apart.* Let a person have at most e records in each of at most c cells, and let
# everything that is drawn in a cell follow from its own records, with a ρ of one record: ρ_1, over the cells that it
# touches. Then a person loses at most c·e²·ρ_1, and not (c·e)²·ρ_1. Proof. Pair the cells that they were in with those
# that they are in: those that are the same first, the others as they come, or with none. These are at most c pairs, and
# no cell is in two of them. In the cells of one pair at most e records change, enter or leave, which loses at most
# e²·ρ_1. Draws in different cells are independent, so their ρ add up. ∎ So whatever is not fitted to the data may have
# c times the ρ that c·e records together would leave to it. Limits that all cells share do not follow from one cell's
# records: they lose (c·e)²·ρ, and their statistic is given no more.
#
# Where nothing is given (``split``) the shares are equal; but where all sensitivities and the size of the values are
# public, counts and sums, relative errors are: the share is proportional to sensitivity over the largest value.


def shares_rho(dataset: Dataset, epsilon: Fraction) -> bool:
    """Whether the statistics of a question of this ε share ρ; public facts alone."""
    budget = dataset.budget
    if budget is None or not budget.concentrated:
        return False
    return pure_rho(epsilon * dataset.protection.multiples[0]) <= budget.rho


def divide(epsilon: Fraction, proportions: Sequence[Fraction], takers: Sequence[bool], squares: bool) -> list[Fraction]:
    """The shares of the takers, in proportion; 0 for the others. They, or with ``squares`` their squares, add up.

    >>> both = [Fraction(1)] * 2, [True] * 2
    >>> [[float(share) for share in divide(Fraction(1), *both, squares)] for squares in (False, True)]
    [[0.5, 0.5], [0.707106, 0.707106]]
    """
    taken = [part for part, takes in zip(proportions, takers, strict=True) if takes]
    if squares:
        whole = sum((part**2 for part in taken), Fraction(0))
        return [
            round_root_down((epsilon * part) ** 2 / whole) if takes else Fraction(0)
            for part, takes in zip(proportions, takers, strict=True)
        ]
    unit = epsilon / sum(taken) if any(takers) else Fraction(0)
    return [part * unit if takes else Fraction(0) for part, takes in zip(proportions, takers, strict=True)]


def find_relative_sensitivity(statistic: Statistic, domain: Domain, moves: Moves) -> Fraction | None:
    """How far a record moves a count or a sum, in units of the largest value; None where that is not public."""
    known = statistic.global_sensitivity(domain, moves) if statistic.always_global else None
    if known is None:
        return None
    if statistic.degree == 0:
        return Fraction(known)
    if not isinstance(statistic, Sum) or domain.lower is None or domain.upper is None:
        return None
    largest = max(abs(domain.lower), abs(domain.upper))
    return Fraction(known) / largest if largest else Fraction(0)  # a sum of zeros is public


def choose_for_cells(
    alone: Choice, choose: Callable[[Fraction, Neighbours], Choice], statistic: Statistic, epsilon: Fraction
) -> tuple[Choice, Neighbours, Fraction]:
    """The mechanism in each of several cells under replace, with the greatest ε that keeps the ρ of one selection.

    ``alone`` is what answers with all of ε in one selection. Additions and removals are what the mechanism is
    calibrated to, but for those whose envelope takes long then.
    """
    most = find_rho(alone, statistic, Neighbours.REPLACE, False).worst(Neighbours.REPLACE)
    neighbours = Neighbours.REPLACE if statistic.tries_splits else Neighbours.ADD_REMOVE

    share, choice = epsilon, choose(epsilon, neighbours)
    while (cost := add_cells([find_rho(choice, statistic, neighbours, False)] * 2, Neighbours.REPLACE)) > most:
        share = max(round_root_down(share**2 * most / cost), share / 2)  # ρ is in proportion to ε², or nearly so
        choice = choose(share, neighbours)
    return choice, neighbours, share


def find_price(aggregates: Sequence[Aggregate], dataset: Dataset, cells: int, apart: int = 1) -> Fraction:
    """The ρ that one record is charged, such that i records lose at most (m_i/m_1)² as much.

    What is fitted to the data loses m_i²·ρ_F to i records, by its calibration, and everything else i²·ρ_O. ``apart`` is
    the number of cells that a person's records are spread over.
    """
    protection = dataset.protection
    touched = 2 if dataset.neighbours is Neighbours.REPLACE and cells > 1 else 1
    fitted, others, laplace = Fraction(0), Rho(Fraction(0), Fraction(0)), Fraction(0)
    for aggregate in aggregates:
        choice = aggregate.choice
        if aggregate.check is not None:
            others += aggregate.check.find_rho(aggregate.neighbours, aggregate.whole)
        if not aggregate.fitted:
            others += find_rho(choice, aggregate.statistic, aggregate.neighbours, aggregate.whole, apart=apart)
        elif choice.rho is not None:
            fitted += choice.rho
        else:
            laplace += touched * choice.epsilon
    fitted += pure_rho(laplace)
    one = add_cells([others] * min(cells, 2), dataset.neighbours)
    return protection.multiples[0] ** 2 * (fitted + one / (apart * protection.differential_share**2))


def make_guarantee(aggregates: Sequence[Aggregate], dataset: Dataset, cells: int, price: Fraction) -> Guarantee:
    """What the whole answer promises: sequential composition over the statistics of a cell, parallel over the cells.

    With Gaussian noise no ε is promised, but ρ, and what it stands for with the δ of the data set's budget.
    """
    return _find_promise(aggregates, dataset, cells, price).protect_unit(dataset.unit_word)


def _find_promise(aggregates: Sequence[Aggregate], dataset: Dataset, cells: int, price: Fraction) -> Guarantee:
    protection, budget = dataset.promised, dataset.budget
    if budget is not None and not all(aggregate.pure for aggregate in aggregates):
        fitted = any(aggregate.fitted for aggregate in aggregates)
        level = protection.level if fitted or protection.level is Level.GROUP else Level.DIFFERENTIAL
        return Guarantee.concentrated(level, price, dataset.neighbours, budget.delta, protection.multiples)
    cell = compose_sequential(_promise_cell(aggregates, dataset))
    together = cell if cells == 1 else compose_parallel([cell] * cells)
    people = together.protect_people(dataset.records, protection.level)
    guarantee = round_up(people, protection.multiples)
    return guarantee.attach_rho(price, protection.multiples) if dataset.concentrated else guarantee


def _promise_cell(aggregates: Sequence[Aggregate], dataset: Dataset) -> Iterator[Guarantee]:
    """What is promised in one cell, added up first where it is one promise: that to groups is a long vector.

    Noise at the local sensitivity promises what the level does; every other mechanism is differentially private.
    """
    level, neighbours = dataset.protection.level, dataset.neighbours
    fitted = [aggregate.choice for aggregate in aggregates if aggregate.fitted]
    epsilon = sum((choice.epsilon for choice in fitted), Fraction(0))
    if fitted and level is Level.GROUP:
        yield Guarantee.for_groups([multiple * epsilon for multiple in fitted[0].multiples], neighbours)
    elif fitted:
        yield Guarantee(level, epsilon, neighbours)
    others = [aggregate.choice.epsilon for aggregate in aggregates if not aggregate.fitted]
    others += [aggregate.check.epsilon for aggregate in aggregates if aggregate.check]
    if others:
        yield Guarantee(Level.DIFFERENTIAL, sum(others, Fraction(0)), neighbours)


CHECKED = (Method.LOCAL, Method.INVERSE, Method.ABOVE_THRESHOLD)
"""The mechanisms whose errors are secret, and can be told in records."""
SMALLEST_SHARE = Fraction(1, 10**6)
"""What a share of ρ is rounded to; less than this is nothing."""


@dataclass(frozen=True)
class Target:
    """One statistic to release: of which column, of which selected records, whatever it was called."""

    measure: Measure
    statistic: Statistic
    column: str | None
    selection: Diagram
    domain: Domain | Categories
    whole: bool
    everyone: bool = False
    """Whether all cells together have a value of every record by declaration."""


def read_check(check: object) -> Fraction:
    """The share of ε for checks: at least 0, which is none, and below 1."""
    share = exact(check, "check")
    if not 0 <= share < 1:
        raise InvalidInput(f"check must be a share of epsilon, at least 0 and below 1, got {check!r}")
    return share


def needs_check(aggregate: Aggregate) -> bool:
    """Whether nothing but a check can tell how far off an answer is: where its error is secret.

    That of counts and sums never is, even where a floor of 0 has their noise fitted to the data.
    """
    statistic, numeric = aggregate.statistic, not isinstance(aggregate.domain, Categories)
    return numeric and statistic.nested and not statistic.always_global and aggregate.choice.method in CHECKED


def can_check(aggregate: Aggregate) -> bool:
    """Whether a check can tell it truly: a safe bound of the envelope would tell a distance that is too small."""
    return needs_check(aggregate) and aggregate.statistic.exact_reach(aggregate.neighbours) == INFINITY


def explain_unchecked(label: str, word: str) -> str:
    """Why there is no check of a statistic whose error is secret; ``word`` is what a change is about."""
    return (
        f"how many {to_plural(word)} {label} is off cannot be told here: only a bound is known of it, which would be "
        "too small nearly always"
    )


@dataclass(frozen=True)
class Chooser:
    """What decides about all statistics of a question alike.

    ``check`` is the share of ε that was asked for checks; None is what the data set declares, where that is enough.
    ``apart`` is the number of cells that a person's records are spread over. ``statistics`` is how many
    are drawn from a base measure in every cell, as many as there may be until they are counted.
    """

    dataset: Dataset
    cells: int
    concentrated: bool
    check: Fraction | None = None
    apart: int = 1
    statistics: int = 1

    @cached_property
    def protection(self) -> Protection:
        """What each cell promises."""
        protection = self.dataset.protection
        if self.cells == 1:
            return protection
        return replace(protection, multiples=part_multiples(protection.multiples))

    @property
    def parts(self) -> int:
        """How many cells a record may touch."""
        return 2 if self.cells > 1 and self.dataset.neighbours is Neighbours.REPLACE else 1

    def answer_all(
        self, targets: Sequence[Target], proportions: Sequence[Fraction] | None, epsilon: Fraction
    ) -> tuple[Aggregate, ...]:
        """The mechanism of every statistic; ``proportions`` None divides ε by itself."""
        paying = [not self._is_free(target) for target in targets]
        if proportions is None:
            proportions = self._balance(targets, paying, epsilon)
        shares = divide(epsilon, proportions, paying, self.concentrated)
        chooser = replace(self, statistics=self._count_drawn(targets, shares))
        return tuple(
            chooser.answer(target, share)
            if share
            else _aggregate(target, share, Choice(Method.EXACT, 0, share), self.dataset.neighbours)
            for target, share in zip(targets, shares, strict=True)
        )

    def _count_drawn(self, targets: Sequence[Target], shares: Sequence[Fraction]) -> int:
        """How many statistics are drawn from a base measure, 1 at least: R is 1000 for each of their values.

        A greater R, or a part of ε for a check, leaves no more of them: fewer ranks are inner ones then.
        """
        if len(targets) == 1 or self.protection.level is not Level.DIFFERENTIAL:
            return 1
        return max(1, sum(self._is_drawn(*pair) for pair in zip(targets, shares, strict=True)))

    def _is_drawn(self, target: Target, share: Fraction) -> bool:
        try:
            return bool(share) and self._answer_alone(target, share).choice.method is Method.INVERSE
        except Unanswerable:  # as it will be with the R of the question, which the message then tells of
            return True

    def answer(self, target: Target, share: Fraction) -> Aggregate:
        """The mechanism of one statistic, which pays for its check too."""
        alone = self._answer_alone(target, share)
        part = self.dataset.check if self.check is None else self.check
        if not part or not needs_check(alone):
            return alone
        if not can_check(alone):
            if self.check is None:
                return alone
            why = explain_unchecked(alone.label, self.dataset.unit_word)
            raise InvalidInput(
                f"{why}. Ask for it without check, in a question of its own if the others shall have one"
            )
        rest, checking = divide(share, [1 - part, part], [True, True], self.concentrated)
        if self.check is None and (lacking := self._find_lacking(rest, checking)) > 1:
            return replace(alone, check_lacks=lacking)
        checked = self._answer_alone(target, rest)
        made = self.make_check(checked, checking)
        demanded = alone.epsilon
        if self.check is not None:  # groups included, as for the answer itself
            demanded = min(checked.epsilon, made.epsilon / self.protection.differential_share)
        return replace(checked, check=made, demanded=demanded)

    def _find_lacking(self, *shares: Fraction) -> Fraction:
        """By what these shares would have to be multiplied for each to have the least ε; 1 where it has."""
        least = self.dataset.min_epsilon / self.dataset.protection.multiples[0]
        smallest = split_between_parts(min(shares), self.dataset.neighbours, self.cells)
        return max(Fraction(1), least / max(smallest, SMALLEST_SHARE))

    def make_check(self, aggregate: Aggregate, share: Fraction) -> DistanceCheck:
        """The check of an answer, which has this share of ε."""
        share *= self.protection.differential_share
        reach = partial(find_reach, aggregate.statistic, distance=aggregate.choice.distance)
        if aggregate.choice.rho is None:
            epsilon = split_between_parts(share, self.dataset.neighbours, self.cells)
            return DistanceCheck(epsilon, reach(epsilon))
        return DistanceCheck(share, reach(share), pure_rho(share), 4 * self.parts)

    def _answer_alone(self, target: Target, share: Fraction) -> Aggregate:
        return self._answer_concentrated(target, share) if self.concentrated else self._answer_purely(target, share)

    def _answer_purely(self, target: Target, share: Fraction) -> Aggregate:
        notion = self.dataset.neighbours
        epsilon = split_between_parts(share, notion, self.cells)
        in_cells = self.cells > 1 and not target.statistic.tries_splits
        neighbours = Neighbours.ADD_REMOVE if in_cells else notion
        choice = self._choose(target, epsilon, neighbours)
        return _aggregate(target, epsilon, choice, notion if choice.method is Method.LOCAL else neighbours)

    def _answer_concentrated(self, target: Target, share: Fraction) -> Aggregate:
        """With Gaussian noise, where noise is added at all; otherwise with as much ε as has the ρ of one selection."""
        notion = self.dataset.neighbours
        gaussian = self._choose(target, share, notion, pure_rho(share))
        apart = gaussian.method is not Method.LOCAL and not (gaussian.clipping and gaussian.clipping.pooled)
        more = round_root_down(self.apart * share**2) if apart else share
        if more > share:
            gaussian = self._choose(target, more, notion, pure_rho(more))
        if gaussian.rho is not None or self.parts == 1:
            return _aggregate(target, share, gaussian, notion)
        alone = self._choose(target, more, notion, alone=True)
        choice, neighbours, epsilon = choose_for_cells(alone, partial(self._choose, target), target.statistic, more)
        return _aggregate(target, min(epsilon, share), choice, neighbours)

    def _choose(
        self,
        target: Target,
        epsilon: Fraction,
        neighbours: Neighbours,
        rho: Fraction | None = None,
        *,
        alone: bool = False,
    ) -> Choice:
        """The mechanism in each cell; or that of one selection ``alone``, which shares no limits with others."""
        chosen = partial(
            choose,
            domain=target.domain.grid,
            neighbours=neighbours,
            whole=target.whole,
            protection=self.protection,
            epsilon=epsilon,
            drawn=self.cells * self.statistics,
            size=self.dataset.size,
            rho=rho,
            parts=1 if alone else self.parts,
            pooled=self.cells > 1 and not alone,
            pool_size=self.dataset.size if target.everyone else None,
            counted=self.dataset.counted,
        )
        try:
            return chosen(target.statistic)
        except Unanswerable as error:
            parameters = self.dataset.parameters
            named = self.dataset.label_column(target.column or "")
            instead = propose_alternatives(target.statistic, named, parameters, chosen)
            raise Unanswerable(f"{target.measure.label} cannot be answered: {error}. {instead}") from None

    def _balance(self, targets: Sequence[Target], paying: Sequence[bool], epsilon: Fraction) -> list[Fraction]:
        """Proportions that make relative errors equal, where those are public and no share is too little; else 1."""
        even = [Fraction(1)] * len(targets)
        found = []
        for target, pays in zip(targets, paying, strict=True):
            relative = find_relative_sensitivity(target.statistic, target.domain.grid, self._any_size(target))
            if pays and relative is None:
                return even
            found.append(relative or Fraction(1))
        shares = divide(epsilon, found, paying, self.concentrated)
        least = 2 * self.dataset.min_epsilon  # as cells may get half
        return even if any(share < least for share, pays in zip(shares, paying, strict=True) if pays) else found

    def _is_free(self, target: Target) -> bool:
        """Whether a statistic is publicly known."""
        statistic, moves = target.statistic, self._any_size(target)
        return statistic.always_global and statistic.global_sensitivity(target.domain.grid, moves) == 0

    def _any_size(self, target: Target) -> Moves:
        """What a changed record can do, where the number of values does not matter."""
        return Moves(self.dataset.neighbours, 1, None if target.whole else 0)


def _aggregate(target: Target, epsilon: Fraction, choice: Choice, neighbours: Neighbours) -> Aggregate:
    statistic, column, domain = target.statistic, target.column, target.domain
    return Aggregate(target.measure.label, statistic, column, domain, target.whole, epsilon, choice, neighbours)

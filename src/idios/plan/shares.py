"""How the statistics of a question share its ε, what each of its cells gets, and what the answer promises and costs.

*Pure accounting.* The shares of ε add up to it. A record is in one cell, and under replace can leave it for another, so
each of several cells gets half.

*Concentrated accounting.* A question of ε may lose ρ = ε²/2, and ρ adds up: the squares of the shares add up to ε², so
that d statistics have ε/√d each, not ε/d. Two cells add up likewise: whatever mechanism answers in cells gets as much
as keeps the ρ that it would have in one selection. What results is charged (``find_rho``), ε by pure accounting beside.
A question whose ε²/2 exceeds the declared budget is planned as with pure accounting, for only that can pay for it.

*Records of one person in cells apart.* Let a person have at most e records in each of at most c cells, and let
everything that is drawn in a cell follow from its own records, with a ρ of one record: ρ_1, over the cells that it
touches. Then a person loses at most c·e²·ρ_1, and not (c·e)²·ρ_1.
Proof. Pair the cells that they were in with those that they are in: those that are the same first, the others as they
come, or with none. These are at most c pairs, and no cell is in two of them. In the cells of one pair at most e records
change, enter or leave, which loses at most e²·ρ_1. Draws in different cells are independent, so their ρ add up. ∎
So whatever is not fitted to the data may have c times the ρ that c·e records together would leave to it. Limits that
all cells share do not follow from one cell's records: they lose (c·e)²·ρ, and their statistic is given no more.

Where nothing is given (``split``) the shares are equal; but where all sensitivities and the size of the values are
public, counts and sums, relative errors are: the share is proportional to sensitivity over the largest value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from idios.core.accounting import compose_parallel, compose_sequential, round_up
from idios.core.calibration import Choice, Level
from idios.core.concentrated import Rho, add_cells, find_rho, pure_rho
from idios.core.domain import Domain
from idios.core.exact import round_root_down
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Statistic, Sum
from idios.declare.schema import Dataset
from idios.plan.question import Aggregate


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

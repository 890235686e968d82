"""Concentrated accounting: the ρ of every mechanism, and the (ε, δ) that a sum of ρ stands for.

A release is ρ-concentrated (Bun, Steinke 2016) if the Rényi divergence of every order α > 1 between its laws on two
neighbours is at most α·ρ, both ways. ρ is small where ε is: it adds up like a variance, not like a deviation.

1. ρ adds up, also where questions are chosen by earlier answers and a budget stops them (Feldman, Zrnic 2021;
   Whitehouse, Ramdas, Rogers, Wu 2023): each ρ follows from earlier answers only, and Σρ ≤ ρ_max is checked beforehand.
2. It says the same of the frozen calibration at the levels individual and group.
3. i records have i²·ρ where every neighbour's neighbour is protected too, so not with a frozen calibration: that
   protects i records with m_i·ε, so with (m_i·ε)²/2; or, with Gaussian noise, with m_i²·ρ.
4. ρ is an exact fraction. What it stands for is certified and rounded to the safe side.

Lemma (range). Let the log ratio L = ln P/P′ lie in an interval of length r. Then D_α(P ‖ P′) ≤ α·r²/8.
Proof. K(s) = ln E_P′ e^(sL) has K(0) = K(1) = 0, and K″(s) is the variance of L under a law on the same interval, at
most r²/4. So r²/8·s(s−1) − K(s) is convex, 0 at 0 and at 1, hence ≥ 0 at α > 1: (α−1)·D_α = K(α) ≤ r²/8·α(α−1). ∎

What follows for each mechanism that is called ε-private elsewhere:

- *anything ε-private*, discrete Laplace noise: L in [−ε, ε], ρ = ε²/2. Several numbers calibrated together likewise:
  the ε is then that of all of them, since one alone may lose it, and their ρ is not the sum of ε_j²/2.
- *counts* with noise: a record that changes within the selection moves COUNT not at all, so ρ = 0, and a count of some
  of the values, or of different ones, by 1 at most, as if it entered.
- *inverse sensitivity*: weights π·q^u, R·q^b, q = e^(−ε/2). L is a constant and (ε/2)·(u′ − u), |u′ − u| ≤ 1, refusal
  included: an interval of length ε, ρ = ε²/8 (Cesar, Rogers 2021).
- *exponential mechanism* of counts: entering moves one count by 1, a length of one rate, and changing two counts apart,
  two rates. The rate is ε/2 under replace, so ρ = ε²/32 and ε²/8; under add-remove it is ε: ε²/8, and ε²/2 to change.
- *AboveThreshold*: a change moves the deficits by s_i, −σ′ ≤ s_i ≤ σ, σ and σ′ ≥ 0, σ + σ′ ≤ 1. By the proof there, and
  with the tables exchanged, −(e₁+e₂)·σ′ − e₂·s_i ≤ L_i ≤ (e₁+e₂)·σ − e₂·s_i. So all L_i lie between
  −(e₁+e₂)·σ′ − e₂·σ and (e₁+e₂)·σ + e₂·σ′: a length of (e₁+2e₂)·(σ+σ′), ρ = (e₁+2e₂)²/8.
- *noisy sums and count*: independent Laplace noises, of which each loses e_j, ρ = Σe_j²/2, where different moves
  cost different parts. A mean: entering or leaving ε/2 + ε/2, ρ = ε²/4; changing ε + 0, ρ = ε²/2. A variance:
  entering ε/4 + ε/4 + ε/2, ρ = 3ε²/16; changing from y to y′ (in units of C; a = |y − y′|, b = |y + y′|, a + b ≤ 2)
  e_S = ε·a/4, e_Z = ε·2ab/4, ρ = ε²·a²(1 + 4b²)/32 ≤ ε²/6. For with b = 2 − a and a = 1 + t, |t| ≤ 1,
  a²(1 + 4b²) = 5 + 2t − 7t² + 4t⁴ ≤ 5 + 2t − 3t² ≤ 16/3. ∎
- *several rounds* (a drawn centre and a search from there, drawn limits and an answer within): the sum over them, as
  each has its ρ whatever the ones before gave. Limits that cells share are drawn once: a record that leaves one cell
  for another changes within all cells together, so that each of the two counts half.
- *discrete Gaussian*: Δ₂²/2σ², Δ₂ the Euclidean sensitivity of all numbers together. At the global sensitivity Δ₂² is
  at least 2e² where a record may leave one cell for another, and at least c² (``sensitivity``): ρ/2 to enter, and ρ to
  change. Fitted to the data and calibrated together (``joint``), a change in any cells loses Σ_j ρ_j in all. So each of
  the two cells that a record moves between counts with half, although one may lose more if the other loses less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from idios.core.calibration import Choice, Method
from idios.core.clipping import ClippingPlan
from idios.core.enclosures import logarithm
from idios.core.exact import exact, positive, round_up_digits, whole
from idios.core.neighbours import Neighbours
from idios.core.outer_ranks import RankPlan
from idios.core.question_memory import remembered
from idios.core.statistics.averages import Mean
from idios.core.statistics.base import Statistic
from idios.core.statistics.counts import Count, DistinctCount, RangeCount
from idios.core.statistics.spread import Variance
from idios.errors import InvalidInput

_BITS = 128  # of a logarithm
_DIGITS = 12  # of what is told: ε rounded up, ρ_max down
_ORDER_BITS = 30  # of α − 1


# ----------------------------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class Rho:
    """The ρ of one release, by what a record does: it enters or leaves the selection, or changes within it.

    ``changing`` is None where nothing is promised: with a frozen calibration under add-remove, where to change is to
    take two steps.

    The ρ of two statistics of one cell add up. A record that stays in the cell changes within the selection of one, and
    may enter that of the other, if its value there was missing before: so it counts with the greater of both in each.

    >>> count, median = Rho(Fraction(2), Fraction(0)), Rho(Fraction(1), Fraction(4))
    >>> (count + median).changing
    Fraction(6, 1)
    """

    entering: Fraction
    changing: Fraction | None

    def __add__(self, other: Rho) -> Rho:
        changing = Fraction(0)
        for part in (self, other):
            if part.changing is None:
                return Rho(self.entering + other.entering, None)
            changing += max(part.entering, part.changing)
        return Rho(self.entering + other.entering, changing)

    def of_group(self, records: int) -> Rho:
        """The ρ of so many records (rule 3; no frozen calibration)."""
        return Rho(records**2 * self.entering, None if self.changing is None else records**2 * self.changing)

    def worst(self, neighbours: Neighbours) -> Fraction:
        """What one record is protected with: what is charged."""
        return add_cells([self], neighbours)


def add_cells(cells: Sequence[Rho], neighbours: Neighbours) -> Fraction:
    """The ρ of a question of many cells, where each record is in one of them or in none.

    Under add-remove one cell changes. Under replace a record changes within its cell, or leaves one and enters another:
    the draws of two cells are independent, so their ρ add up.

    >>> mean = Rho(Fraction(1, 4), Fraction(1, 2))
    >>> str(add_cells([mean] * 10, Neighbours.REPLACE)), str(add_cells([mean] * 10, Neighbours.ADD_REMOVE))
    ('1/2', '1/4')
    """
    entering = sorted((cell.entering for cell in cells), reverse=True)
    if neighbours is Neighbours.ADD_REMOVE:
        return max(entering, default=Fraction(0))
    changing = Fraction(0)
    for cell in cells:
        if cell.changing is None:
            raise InvalidInput("a release calibrated for add-remove promises nothing where a record changes")
        changing = max(changing, cell.changing)
    return max(changing, sum(entering[:2], Fraction(0)))


def range_rho(length: Fraction) -> Fraction:
    """The ρ of a mechanism whose log ratio lies in an interval of this length.

    >>> range_rho(Fraction(1))
    Fraction(1, 8)
    """
    return length**2 / 8


def pure_rho(epsilon: Fraction) -> Fraction:
    """The ρ of anything that is ε-private, and exactly so of discrete Laplace noise, in the limit of small ε."""
    return range_rho(2 * epsilon)


def find_rho(
    choice: Choice,
    statistic: Statistic,
    neighbours: Neighbours,
    whole_table: bool,
    records: int = 1,
    *,
    apart: int = 1,
) -> Rho:
    """The ρ with which a choice protects so many records; everything it depends on is public.

    ``whole_table`` says that the selection is the whole table by declaration: under replace no record enters it.
    ``apart`` is the number of cells that a person's records are spread over: what is drawn from all cells together is
    not divided by it (``plan.budget``), and counts so many times. With Laplace noise fitted to the data it is the ρ of
    one statistic by itself, not of several calibrated together.

    >>> str(find_rho(Choice(Method.INVERSE, 9, Fraction(1, 20)), Mean(), Neighbours.REPLACE, True).changing)
    '1/3200'
    """
    records = whole(records, "records")
    fixed = neighbours is Neighbours.REPLACE and whole_table
    if choice.method is Method.LOCAL:
        if records > len(choice.multiples):
            raise InvalidInput(f"noise fitted to the data protects {len(choice.multiples)} records, not {records}")
        multiple = choice.multiples[records - 1]
        if choice.rho is None:
            rho = entering = pure_rho(multiple * choice.epsilon)
        else:
            rho = multiple**2 * choice.rho
            entering = _divide_cells(rho, neighbours, choice.parts)
        return Rho(Fraction(0) if fixed else entering, rho if neighbours is Neighbours.REPLACE else None)
    rounds = _list_rounds(choice, statistic, neighbours, fixed, apart)
    entering = sum((part.entering for part in rounds), Fraction(0))
    changing = sum((part.changing for part in rounds), Fraction(0))
    return Rho(Fraction(0) if fixed else entering, changing).of_group(records)


def _divide_cells(rho: Fraction, neighbours: Neighbours, parts: int) -> Fraction:
    """What each of the cells counts that a record moves between: under add-remove there is one."""
    return rho / parts if neighbours is Neighbours.REPLACE else rho


class _Round(NamedTuple):
    """The ρ of one of the releases that answer together, all about one selection."""

    entering: Fraction
    changing: Fraction


def _list_rounds(choice: Choice, statistic: Statistic, neighbours: Neighbours, fixed: bool, apart: int) -> list[_Round]:
    """The releases that answer, except with noise fitted to the data."""

    def alike(rho: Fraction) -> _Round:
        """Under add-remove a change is two steps."""
        return _Round(rho, 4 * rho if neighbours is Neighbours.ADD_REMOVE else rho)

    match choice.method:
        case Method.EXACT:
            return []
        case Method.GLOBAL:
            rho, parts = (pure_rho(choice.epsilon), 1) if choice.rho is None else (choice.rho, choice.parts)
            entering = _divide_cells(rho, neighbours, parts)
            if isinstance(statistic, Count):
                return [_Round(entering, Fraction(0))]
            counts = isinstance(statistic, DistinctCount | RangeCount)
            return [_Round(entering, entering if counts else alike(rho).changing)]
        case Method.INVERSE:
            return [alike(range_rho(choice.epsilon))]
        case Method.EXPONENTIAL:
            rate = statistic.rate(choice.epsilon, neighbours)
            return [_Round(range_rho(rate), range_rho(2 * rate))]
        case Method.MOMENTS:
            return [_add_moments(statistic, choice.epsilon)]
    plan = choice.reading
    if isinstance(plan, ClippingPlan):
        return [*_list_limits(plan, alike, apart), _add_noise(plan, statistic, fixed, alike)]
    if not isinstance(plan, RankPlan):
        raise AssertionError(f"{choice.method} has a plan")
    rounds = [alike(range_rho(plan.threshold_epsilon + 2 * plan.count_epsilon))]
    counted = plan.threshold_epsilon + plan.count_epsilon
    if plan.centre:
        rounds.append(alike(range_rho(plan.centre.epsilon)))
        counted += plan.centre.epsilon
    if counted != plan.epsilon:
        raise AssertionError("every round of a plan has its ρ: what is not counted would be given away")
    return rounds


def _list_limits(plan: ClippingPlan, alike: Callable[[Fraction], _Round], apart: int) -> list[_Round]:
    """The releases that limits and counts are, drawn once from all cells that a record may touch.

    Where that are two, each counts half of what leaving one for the other costs, which is what any change costs.
    """
    drawn = range_rho(plan.threshold_epsilon + 2 * plan.count_epsilon)
    drawn += sum(map(pure_rho, plan.counts_epsilon))
    if plan.centre:
        drawn += range_rho(plan.centre.epsilon)
    drawn *= apart if plan.pooled else 1
    return [alike(drawn) if plan.parts == 1 else _Round(drawn / plan.parts, drawn)]


def _add_noise(plan: ClippingPlan, statistic: Statistic, fixed: bool, alike: Callable[[Fraction], _Round]) -> _Round:
    """The noise of what is clipped."""
    sums = isinstance(statistic, Variance) or (isinstance(statistic, Mean) and not fixed)
    return _add_moments(statistic, plan.noise_epsilon) if sums else alike(pure_rho(plan.noise_epsilon))


def _add_moments(statistic: Statistic, epsilon: Fraction) -> _Round:
    """Noisy sums and a noisy count, under both notions."""
    if isinstance(statistic, Variance):
        return _Round(epsilon**2 * 3 / 16, epsilon**2 / 6)
    return _Round(epsilon**2 / 4, epsilon**2 / 2)


# ------------------------------------------------------------------------------------------------------- conversion
#
# ρ stands for (ε, δ) with ε = α·ρ + c(α), c(α) = ln(1/(αδ))/(α−1) + ln(1 − 1/α), for any α > 1 (Canonne, Kamath,
# Steinke 2020, proposition 12). Floats choose α, which every choice of is sound; the rest is certified.


@remembered(4096)
def convert_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """An ε such that ρ-concentrated is (ε, δ)-private: the least one, rounded up to 12 digits.

    >>> one = convert_to_epsilon(Fraction(1, 8), Fraction(1, 10**6))  # 100 questions of ε = 0.05, Laplace noise
    >>> print(f"{float(one):.4f}")
    2.4191
    """
    rho, delta = exact(rho, "rho"), _read_delta(delta)
    if rho < 0:
        raise InvalidInput(f"rho must be at least 0, got {rho}")
    if rho == 0:
        return Fraction(0)
    size, log_delta = _to_float(rho), _log_float(delta)

    def find_epsilon(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return order * size + _offset_float(log_order, log_delta)

    order = _minimise(find_epsilon, math.log(-log_delta / size) / 2)
    return max(round_up_digits(order * rho + _bound_offset(order, delta), _DIGITS), Fraction(0))


@lru_cache(maxsize=4096)  # for all callers, as it follows from budgets, and not from what is asked
def find_largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The greatest ρ that stands for (ε, δ), rounded down to 12 digits: ``convert_to_epsilon`` of it is at most ε.

    α·ρ + c(α) ≤ ε is ρ ≤ (ε − c(α))/α, so that one α suffices.

    >>> most = find_largest_rho(Fraction(5), Fraction(1, 10**6))
    >>> [most // rho(Fraction(1, 20)) for rho in (pure_rho, range_rho)]  # counts, medians
    [370, 1481]
    """
    epsilon, delta = positive(epsilon, "epsilon"), _read_delta(delta)
    size, log_delta = _to_float(epsilon), _log_float(delta)

    def find_rho_lost(log_order: float) -> float:
        return (_offset_float(log_order, log_delta) - size) / (1 + math.exp(log_order))

    root = size / (math.sqrt(size - log_delta) + math.sqrt(-log_delta))  # of ρ in ρ + 2·√(ρ·ln 1/δ) = ε
    order = _minimise(find_rho_lost, math.log(-log_delta) / 2 - math.log(root))
    rho, less = -round_up_digits((_bound_offset(order, delta) - epsilon) / order, _DIGITS), Fraction(1, 10**_DIGITS)
    while rho > 0 and convert_to_epsilon(rho, delta) > epsilon:
        less *= 2
        rho = -round_up_digits(-rho * (1 - less), _DIGITS)
    return max(rho, Fraction(0))


def _read_delta(delta: Fraction) -> Fraction:
    number = exact(delta, "delta")
    if not 0 < number < 1:
        raise InvalidInput(f"delta must lie strictly between 0 and 1, got {delta}")
    return number


def _bound_offset(order: Fraction, delta: Fraction) -> Fraction:
    """c(α), rounded up."""
    first, second = logarithm(1 / (order * delta), _BITS)[1], logarithm((order - 1) / order, _BITS)[1]
    return (first / (order - 1) + second) / (1 << _BITS)


def _offset_float(log_order: float, log_delta: float) -> float:
    """c(α) from ln(α − 1)."""
    above = math.exp(log_order)
    return (-log_delta - math.log1p(above)) / above - math.log1p(1 / above)


def _minimise(function: Callable[[float], float], start: float) -> Fraction:
    """An α for which a function of ln(α − 1) is about least: the best of a net, then by thirds."""
    first, last = min(start, 0) - 10, max(start, 0) + 10
    step = (last - first) / 160
    best = min((first + step * i for i in range(161)), key=function)
    low, high = best - step, best + step
    for _ in range(60):
        third = (high - low) / 3
        if function(low + third) <= function(high - third):
            high -= third
        else:
            low += third
    mantissa, exponent = math.frexp(math.exp((low + high) / 2))
    return 1 + Fraction(round(mantissa * 2**_ORDER_BITS)) * Fraction(2) ** (exponent - _ORDER_BITS)


def _to_float(number: Fraction) -> float:
    """Within what floats hold, for the choice of α alone."""
    return float(min(max(number, Fraction(1, 10**200)), Fraction(10**200)))


def _log_float(number: Fraction) -> float:
    """ln of a number below 1, at most −10^(−15): for the choice of α alone."""
    return min(math.log(number.numerator) - math.log(number.denominator), -1e-15)

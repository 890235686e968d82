"""How promises compose.

sequential   ε and δ add up, adaptively too; for groups, ε_i for every i by itself.
parallel     answers about parts of the table that no record is in two of. Adding or removing a record touches
             one part: the greatest ε counts. Replacing a record can take it out of one part and put it into
             another: the two greatest add up (so a partition answered with ε/2 each costs ε). Parts fixed by
             record position pay once. Groups: see below.
post-process what is computed from answers alone costs nothing.
choice       one of several mechanisms, picked at random without looking at the data, costs the greatest of them.
concentrated ρ composes in these ways like ε (``concentrated``), where every part has one. What has Gaussian noise
             promises ρ alone, and (ε, δ) only as what ρ stands for: so the ρ of a composition are added first and
             converted then, with any one δ, which is not added up. Beside a part without ρ, (ε, δ) add up.

Levels do not mix upwards: an individual guarantee beside a differential one leaves an individual one. Notions of
neighbour never mix: add-remove does not imply replace here, not even at twice the ε ({0,0,5,5,100,100} has median
sensitivity 0 one way and 47.5 the other).

Parallel composition of groups. Let part c promise e_c(t) to t records, and i records change. Let w be 2 under replace
and 1 under add-remove, or where a record's part is fixed by its position.

Proposition. They lose at most Σ_c e_c(i), and at most the w greatest of ê_c(i) = max_{t ≤ i} (i/t)·e_c(t) together.
Proof. Let t_c of the i records touch part c, so that t_c ≤ i and Σ_c t_c ≤ w·i. Each part sees a data set at distance
t_c from its own, and the noise of the parts is independent: the loss is Σ_c e_c(t_c) ≤ Σ_c e_c(i), as e_c does not
decrease. And e_c(t_c) ≤ (t_c/i)·ê_c(i), where the weights t_c/i are at most 1 each and w together: their sum is
greatest with weight 1 on the w greatest. ∎
Where e_c(t)/t never falls, as for (ε, 2ε, …, gε) and for differential privacy, ê_c = e_c, and i records that all leave
one part for another attain it. The same holds of ρ_c(t), since the ρ of independent draws add up; t²·ρ is such a
ρ_c. Flat parts, e_c(t) = ε, have ê_c(i) = i·ε: i records may be in as many parts. So w·i
flat parts or more promise (w·ε, 2w·ε, …) together, and no smaller vector; ``multiples.part_multiples`` says what to ask
of parts instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import TypeAlias

from idios.core.calibration import Level
from idios.core.guarantee import Guarantee
from idios.core.multiples import Multiples
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput

Protect: TypeAlias = Callable[[Guarantee, int], Fraction]
"""What a guarantee promises to a number of records: ε_i or ρ_i."""


def compose_sequential(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What several answers about the same data promise together: the sum.

    >>> half = Guarantee(Level.INDIVIDUAL, Fraction(1, 2), Neighbours.REPLACE)
    >>> compose_sequential([half, half, half]).notation
    '1.5-iDP'
    """
    parts = list(guarantees)
    if len(parts) == 1 and not parts[0].delta:
        return parts[0]
    return _combine(
        parts,
        lambda protect, size: sum((protect(part, size) for part in parts), Fraction(0)),
        sum((part.delta for part in parts), Fraction(0)),
    )


def _count_equal(guarantees: Iterable[Guarantee]) -> Counter[Guarantee]:
    """How often each occurs: the cells of a question are many, and promise the same; mostly it is one object."""
    listed = list(guarantees)
    objects = {id(guarantee): guarantee for guarantee in listed}
    counted: Counter[Guarantee] = Counter()
    for number, times in Counter(map(id, listed)).items():
        counted[objects[number]] += times
    return counted


def compose_parallel(guarantees: Iterable[Guarantee], *, fixed_parts: bool = False) -> Guarantee:
    """What answers about disjoint parts promise together.

    ``fixed_parts`` says that a record's part is fixed by its position, so that no change moves it to another.

    >>> quarter = Guarantee(Level.INDIVIDUAL, Fraction(1, 4), Neighbours.REPLACE)
    >>> compose_parallel([quarter] * 10).notation
    '0.5-iDP'
    >>> flat = Guarantee.for_groups([Fraction(1)] * 3, Neighbours.ADD_REMOVE)
    >>> [compose_parallel([flat] * parts).notation for parts in (10, 2)]
    ['(1, 2, 3)-gDP', '(1, 2, 2)-gDP']
    """
    counted = _count_equal(guarantees)
    touched = 1
    if not fixed_parts and any(part.neighbours is Neighbours.REPLACE for part in counted):
        touched = 2
    sizes = range(1, _common_group(counted) + 1)

    @cache
    def find_rates(protect: Protect, part: Guarantee) -> list[Fraction]:
        """max_{t ≤ i} e_c(t)/t for every i, which is ê_c(i)/i."""
        return list(accumulate((protect(part, size) / size for size in sizes), max))

    def greatest(costs: Mapping[Guarantee, Fraction]) -> Fraction:
        listed = [cost for part, cost in costs.items() for _ in range(min(touched, counted[part]))]
        return sum(sorted(listed, reverse=True)[:touched], Fraction(0))

    def lose(protect: Protect, size: int) -> Fraction:
        every = sum((count * protect(part, size) for part, count in counted.items()), Fraction(0))
        return min(every, greatest({part: size * find_rates(protect, part)[size - 1] for part in counted}))

    return _combine(list(counted), lose, greatest({part: part.delta for part in counted}))


def split_between_parts(epsilon: Fraction, neighbours: Neighbours, parts: int) -> Fraction:
    """The ε that each of several disjoint parts gets, so that all of them together cost ``epsilon``."""
    return epsilon / 2 if neighbours is Neighbours.REPLACE and parts > 1 else epsilon


def compose_choice(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What a mechanism picked at random promises: the weakest of what could have been picked."""
    parts = list(guarantees)
    return _combine(
        parts,
        lambda protect, size: max(protect(part, size) for part in parts),
        max((part.delta for part in parts), default=Fraction(0)),
    )


def round_up(guarantee: Guarantee, multiples: Multiples) -> Guarantee:
    """The least promise of the form (m_1·ε, …, m_g·ε), or (m_1²·ρ, …, m_g²·ρ), that is kept: the one to charge.

    A count with noise for groups of 5 promises one record less than it promises 5. Charged by the former, a budget of B
    would not keep groups of 5 to m_5·B. What is kept for any group is left as it is.

    >>> count = Guarantee(Level.DIFFERENTIAL, Fraction(1, 5), Neighbours.REPLACE)
    >>> round_up(count, (Fraction(1),) * 5).notation, round_up(count, (Fraction(1), Fraction(2))).notation
    ('(1, 1, …, 1)-gDP', '0.2-DP')
    """
    rho = None
    if guarantee.rho is not None:
        rho = max(guarantee.protect_rho(size) / multiple**2 for size, multiple in enumerate(multiples, start=1))
    if rho is not None and guarantee.is_concentrated:
        one = multiples[0] ** 2 * rho
        if guarantee.level is not Level.GROUP and guarantee.rho == one:
            return guarantee
        charged = Guarantee.concentrated(Level.GROUP, one, guarantee.neighbours, guarantee.delta, tuple(multiples))
        return charged.protect_unit(guarantee.unit)
    epsilon = max(guarantee.protect(size) / multiple for size, multiple in enumerate(multiples, start=1))
    if guarantee.level is not Level.GROUP and guarantee.epsilon == multiples[0] * epsilon:
        return guarantee
    rhos = None if rho is None else [multiple**2 * rho for multiple in multiples]
    charged = Guarantee.for_groups([multiple * epsilon for multiple in multiples], guarantee.neighbours, rhos)
    return charged.protect_unit(guarantee.unit)


def _combine(parts: Sequence[Guarantee], lose: Callable[[Protect, int], Fraction], delta: Fraction) -> Guarantee:
    """The promise of several answers that lose ``lose(…, i)`` to i records; ``delta`` is that of basic composition."""
    if not parts:
        raise InvalidInput("at least one guarantee is needed to compose")
    if len({part.unit for part in parts}) > 1:
        raise InvalidInput("a guarantee for records cannot be composed with one for people")
    return _combine_numbers(parts, lose, delta).protect_unit(parts[0].unit)


def _combine_numbers(
    parts: Sequence[Guarantee], lose: Callable[[Protect, int], Fraction], delta: Fraction
) -> Guarantee:
    if len({part.neighbours for part in parts}) > 1:
        raise InvalidInput("guarantees for different notions of neighbouring data sets cannot be composed")
    level, neighbours = _common_level(parts), parts[0].neighbours
    sizes = range(1, _common_group(parts) + 1)
    rhos = None
    if all(part.rho is not None for part in parts):
        grows = any(part.rhos for part in parts)  # otherwise with the square of i, all of them
        one = lose(Guarantee.protect_rho, 1)
        rhos = [lose(Guarantee.protect_rho, size) if grows else size**2 * one for size in sizes]
        if delta:
            return Guarantee._convert(level, rhos, neighbours, max(part.delta for part in parts))
    elif delta and level is Level.GROUP:
        raise InvalidInput("a group guarantee cannot be composed with one that has a delta")
    epsilon = lose(Guarantee.protect, 1)
    if level is not Level.GROUP:
        return Guarantee(level, epsilon, neighbours, delta, rho=None if rhos is None else rhos[0])
    grows = any(part.epsilons for part in parts)  # otherwise with i, all of them
    epsilons = [lose(Guarantee.protect, size) if grows else size * epsilon for size in sizes]
    return Guarantee.for_groups(epsilons, neighbours, rhos)


def _common_level(parts: Iterable[Guarantee]) -> Level:
    return min((part.level for part in parts), key=list(Level).index)


def _common_group(parts: Collection[Guarantee]) -> int:
    """The greatest group that all parts protect."""
    if not parts or _common_level(parts) is not Level.GROUP:
        return 1
    return min(part.group for part in parts if part.level is Level.GROUP)

"""Groups of records: the multiples m_1 ≤ … ≤ m_g of ε that they are protected with.

(ε_1, …, ε_g)-gDP protects i records with ε_i = m_i·ε. The paper leaves the vector free. m_i = i gives groups what
ε-differential privacy would give them; m_i = 1 protects a household of g like one person.

Two ways to keep such a promise need less than it at every distance:

differential   ε′-DP protects i records with i·ε′, so it keeps the promise if and only if i·ε′ ≤ m_i·ε for every i
               (``limit_epsilon``).
parts          i records can touch as many parts of the table at once, so parts that promise m_t·ε each do not promise
               m_i·ε together unless m_i/i never falls (``part_multiples``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from idios.core.exact import exact, text, whole
from idios.errors import InvalidInput

MAX_GROUP = 1000
"""How many records can be protected together: every envelope is computed as far out."""

Multiples: TypeAlias = tuple[Fraction, ...]
SINGLE: Multiples = (Fraction(1),)


def declare_multiples(group: object) -> Multiples:
    """Read a group: its size, the multiples of ε one by one, or a size with its growth.

    >>> [[str(m) for m in declare_multiples(g)] for g in (3, [1, 1.5], {"size": 2, "growth": "flat"})]
    [['1', '2', '3'], ['1', '3/2'], ['1', '1']]
    """
    if isinstance(group, Mapping):
        growth = group.get("growth", "linear")
        if set(group) - {"size", "growth"} or "size" not in group or growth not in ("linear", "flat"):
            raise InvalidInput(f'group must be {{ size = …, growth = "linear" or "flat" }}, got {dict(group)!r}')
        size = _read_size(group["size"], "size of group")
        return SINGLE * size if growth == "flat" else linear_multiples(size)
    if not isinstance(group, Sequence) or isinstance(group, str | bytes):
        return linear_multiples(_read_size(group, "group"))
    if len(group) > MAX_GROUP:
        raise InvalidInput(f"group must have at most {MAX_GROUP} multiples of ε, got {len(group)}")
    multiples = tuple(exact(multiple, "a multiple of ε in group") for multiple in group)
    check_multiples(multiples)
    return multiples


def linear_multiples(size: int) -> Multiples:
    """1, 2, …, size: what ε-differential privacy would give to groups."""
    return tuple(Fraction(i) for i in range(1, size + 1))


def check_multiples(multiples: Sequence[Fraction]) -> None:
    """Refuse multiples that are not positive, or that decrease: what protects i records protects fewer."""
    if not multiples or multiples[0] <= 0:
        raise InvalidInput(
            f"the multiples of ε in group must be greater than 0, got {list_multiples(multiples) or 'none'}"
        )
    for size, (smaller, greater) in enumerate(pairwise(multiples), start=1):
        if smaller > greater:
            raise InvalidInput(
                f"the multiples of ε in group must not decrease, as what protects {size + 1} records protects {size}: "
                f"got {list_multiples(multiples)}"
            )


def describe_multiples(multiples: Sequence[Fraction]) -> str:
    """The size of a group, and how its ε grow unless they are ε, 2ε, 3ε, …

    >>> [describe_multiples(declare_multiples(g)) for g in (5, [1, 1, 1], [1, 1.5])]
    ['5', '3, flat', '2, with ε × (1, 1.5)']
    """
    size = len(multiples)
    if tuple(multiples) == linear_multiples(size):
        return str(size)
    if set(multiples) == {Fraction(1)}:
        return f"{size}, flat"
    return f"{size}, with ε × ({list_multiples(multiples)})"


def limit_epsilon(epsilon: Fraction, multiples: Sequence[Fraction]) -> Fraction:
    """The greatest ε′ for which ε′-DP protects every group of i with m_i·ε: ε/max_i(i/m_i).

    >>> str(limit_epsilon(Fraction(1), declare_multiples({"size": 5, "growth": "flat"})))
    '1/5'
    """
    return epsilon / max(size / multiple for size, multiple in enumerate(multiples, start=1))


def part_multiples(multiples: Sequence[Fraction]) -> Multiples:
    """What each of several disjoint parts promises, so that together they promise ``multiples``.

    c_t = t·min_{i ≥ t} m_i/i to t records that touch the part, each with ε (add-remove) or ε/2 (replace).
    Proposition. Then i records lose at most m_i·ε in all parts together.
    Proof. Let t_c of the i records touch part c. Then t_c ≤ i, so c_{t_c} ≤ t_c·m_i/i, and all parts together lose at
    most (m_i/i)·Σ_c t_c times ε or ε/2. A record that is added or removed touches one part: Σ_c t_c ≤ i. A replaced one
    touches the part that it leaves and the one that it enters: Σ_c t_c ≤ 2i. ∎

    >>> [[str(c) for c in part_multiples(declare_multiples(g))] for g in (3, [1, 1, 1], [1, 1.5, 6])]
    [['1', '2', '3'], ['1/3', '2/3', '1'], ['3/4', '3/2', '6']]
    """
    least = multiples[-1] / len(multiples)
    shares = []
    for size in range(len(multiples), 0, -1):
        least = min(least, multiples[size - 1] / size)
        shares.append(size * least)
    return tuple(reversed(shares))


def repeat_multiples(multiples: Sequence[Fraction], each: int) -> Multiples:
    """What is promised to records, where people are promised ``multiples`` and have so many records each.

    >>> [str(m) for m in repeat_multiples(declare_multiples([1, 2]), 3)]
    ['1', '1', '1', '2', '2', '2']
    """
    if len(multiples) * each > MAX_GROUP:
        raise InvalidInput(
            f"at most {MAX_GROUP:,} records can be protected together, and {len(multiples)} × {each} would have to be"
        )
    return tuple(multiple for multiple in multiples for _ in range(each))


def list_multiples(multiples: Sequence[Fraction]) -> str:
    """The numbers, or of more than 4 the first two and the last."""
    listed = [str(text(multiple)) for multiple in multiples]
    return ", ".join(listed if len(listed) <= 4 else [*listed[:2], "…", listed[-1]])


def _read_size(value: object, name: str) -> int:
    size = whole(value, name)
    if size > MAX_GROUP:
        raise InvalidInput(f"{name} must be at most {MAX_GROUP} records")
    return size

"""The paper's propositions on functions with values in ℝᵏ and ℤᵏ, each over every neighbour of small tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from idios.core.calibration import Added
from idios.core.distributions import DiscreteLaplace
from idios.core.joint import Component, calibrate_cells
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import DiscreteQuantile, Histogram, KthLargest
from tests import oracle
from tests.records import Asked, Records, World

QUARTER = Fraction(1, 4)
VECTOR = [
    Asked(DiscreteQuantile(QUARTER), lambda v: oracle.discrete_quantile(v, QUARTER)),
    Asked(DiscreteQuantile(2 * QUARTER), lambda v: oracle.discrete_quantile(v, 2 * QUARTER)),
    Asked(KthLargest(2), lambda v: oracle.kth_largest(v, 2)),
]
WORLDS = [World(Neighbours.REPLACE, fineness=1), World(Neighbours.ADD_REMOVE, fineness=1)]
EPSILON = Fraction(3, 4)


def evaluate(world: World, records: Records) -> tuple[int, ...]:
    return tuple(int(world.answer(records, 0, part) or 0) for part in VECTOR)


def distance(left: Sequence[int], right: Sequence[int]) -> int:
    """‖left − right‖₁."""
    return sum(abs(a - b) for a, b in zip(left, right, strict=True))


def local_sensitivity(world: World, records: Records, reach: int = 1) -> int:
    """max ‖f(D) − f(D′)‖₁ over the D′ at distance ``reach``, by trying them all."""
    here = evaluate(world, records)
    return max(distance(here, evaluate(world, other)) for other in world.ball(records, reach)[reach - 1])


def tables(world: World, count: int) -> list[Records]:
    random = Random(8)
    drawn = (world.random_table(random, random.randint(4, 7)) for _ in range(count))
    return [records for records in drawn if local_sensitivity(world, records)]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.notion)
def test_proposition_laplace_noise_at_the_local_sensitivity_of_a_vector_gives_idp(world: World) -> None:
    """f: D → ℝᵏ with i.i.d. noise Laplace(0, LS_f(D)/ε): from the densities."""

    def log_density(point: Sequence[float], centre: Sequence[int], scale: float) -> float:
        return sum(-abs(s - z) / scale - math.log(2 * scale) for s, z in zip(point, centre, strict=True))

    for records in tables(world, 30):
        here, scale = evaluate(world, records), local_sensitivity(world, records) / float(EPSILON)
        worst = 0.0
        for other in world.ball(records, 1)[0]:
            there = evaluate(world, other)
            for point in (here, there, (-5.5, 0.25, 9.0)):
                ratio = log_density(point, here, scale) - log_density(point, there, scale)
                worst = max(worst, abs(ratio))
        assert worst == pytest.approx(float(EPSILON)), "no more, and attained"


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.notion)
def test_theorem_the_discrete_laplace_mechanism_on_vectors_gives_idp(world: World) -> None:
    """f: D → ℤᵏ with i.i.d. noise DL(exp(−ε/LS_f(D))): from the probabilities of every answer nearby."""
    for records in tables(world, 8):
        here, noise = evaluate(world, records), DiscreteLaplace(local_sensitivity(world, records) / EPSILON)

        def log_probability(point: Sequence[int], centre: Sequence[int], noise: DiscreteLaplace = noise) -> float:
            return sum(math.log(noise.pmf(s - z)) for s, z in zip(point, centre, strict=True))

        worst = 0.0
        for there in {evaluate(world, other) for other in world.ball(records, 1)[0]}:
            ratios = (
                log_probability(point, here) - log_probability(point, there)
                for point in product(range(-1, 5), repeat=len(VECTOR))
            )
            worst = max(worst, *(abs(ratio) for ratio in ratios))
        assert worst == pytest.approx(float(EPSILON)), "no more, and attained"


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.notion)
def test_theorem_the_discrete_laplace_mechanism_is_the_joint_calibration_with_equal_scales(world: World) -> None:
    """With shares in proportion to each sensitivity, every b_j is LS_f(D)/ε, found without trying neighbours."""
    compared = 0
    for records in tables(world, 90):
        parts = [(part, world.summary(records, 0, part, 1)) for part in VECTOR]
        alone = [int(part.statistic.envelope(summary, 1, 1).local_sensitivity) for part, summary in parts]
        if not all(alone):
            continue  # what never moves has no share
        components = [
            Component(part.statistic, summary, Fraction(own, sum(alone)), column="x", fineness=1)
            for (part, summary), own in zip(parts, alone, strict=True)
        ]
        [mechanisms] = calibrate_cells([components], EPSILON)
        scales = {part.noise.scale for part in mechanisms if isinstance(part, Added)}
        assert scales == {local_sensitivity(world, records) / EPSILON}, records
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.notion)
def test_definition_of_group_differential_privacy_on_vectors(world: World) -> None:
    """(ε₁, ε₂) = (ε, 2ε): one vector of scales serves the tables at distance 1 and at distance 2."""
    for records in tables(world, 25):
        components = [
            Component(part.statistic, world.summary(records, 0, part, 2), Fraction(1, 3), column="x", fineness=1)
            for part in VECTOR
        ]
        [mechanisms] = calibrate_cells([components], EPSILON, (Fraction(1), Fraction(2)))
        noises = [part.noise for part in mechanisms if isinstance(part, Added)]
        if len(noises) < len(VECTOR):
            continue
        here = evaluate(world, records)
        for i, level in enumerate(world.ball(records, 2), start=1):
            for other in level:
                if any(world.answer(other, 0, part) is None for part in VECTOR):
                    continue
                moved = zip(noises, here, evaluate(world, other), strict=True)
                assert sum(noise.log_ratio(a - b) for noise, a, b in moved if a != b) <= i * EPSILON


@pytest.mark.parametrize(("notion", "known"), [(Neighbours.REPLACE, 2), (Neighbours.ADD_REMOVE, 1)])
def test_proposition_laplace_noise_at_the_global_sensitivity_of_a_vector(notion: Neighbours, known: int) -> None:
    """A histogram is the vector whose local sensitivity is the global one: 2 under replace, 1 under add-remove."""
    world = World(notion, (0, 2))

    def count(records: Records) -> tuple[int, ...]:
        return tuple(world.values(records, 0, 0).count(point) for point in range(3))

    random = Random(3)
    for _ in range(20):
        records = world.random_table(random, random.randint(1, 6))
        assert max(distance(count(records), count(other)) for other in world.ball(records, 1)[0]) == known
    assert Histogram(3).global_sensitivity(Moves(notion, 6)) == known

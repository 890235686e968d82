"""The paper's first figure and its table: the noises themselves, at ε = 1 and sensitivities of 1."""

from __future__ import annotations

import numpy as np

from idios.evaluation.admissible import Admissible, paper_pair, tight_pair
from idios.evaluation.content import Figure, Panel, Section, Series, Table
from idios.evaluation.laplace import Laplace
from idios.evaluation.staircase import Staircase
from idios.evaluation.symmetric import Symmetric

EPSILON = 1.0
SHARE = 0.95
NOISES: tuple[tuple[str, str, Symmetric, float | None], ...] = (
    ("iDP, Laplace", "local", Laplace(1 / EPSILON), 3.0),
    ("DP smooth, γ = 2, the paper's pair", "smooth2", Admissible(2, 1 / paper_pair(2, EPSILON)[0]), 101.7),
    ("DP smooth, γ = 3, the paper's pair", "smooth", Admissible(3, 1 / paper_pair(3, EPSILON)[0]), 34.2),
    ("DP smooth, γ = 2, tight pair", "tight2", Admissible(2, 1 / tight_pair(2, EPSILON)[0]), None),
    ("DP smooth, γ = 3, tight pair", "tight", Admissible(3, 1 / tight_pair(3, EPSILON)[0]), None),
    ("staircase", "staircase", Staircase(1, EPSILON), None),
)
"""Name, style, noise and the half-width that the paper prints, if it does."""


def section() -> Section:
    """Densities and 95 % intervals, computed, beside what is printed."""
    x = np.linspace(-30, 30, 601)
    curves = tuple(
        Series(name, style, tuple(map(float, x)), tuple(map(float, noise.pdf(x))))
        for name, style, noise, _ in NOISES[:3]
    )
    halves = [(name, noise.central_interval(SHARE)[1], printed, noise) for name, _, noise, printed in NOISES]
    return Section(
        "noise",
        "The noise",
        "Every sensitivity is 1 and ε is 1, as in the paper. That the local and the smooth sensitivity are equal is "
        "the worst case for iDP; the noises differ all the same, because smooth sensitivity needs heavy tails.",
        (
            Figure(
                "densities",
                "Noise densities (ε = 1, sensitivities 1)",
                (
                    Panel(curves, "noise (in units of the sensitivity)", "density"),
                    Panel(
                        curves,
                        "noise (in units of the sensitivity)",
                        "density (log scale)",
                        log_y=True,
                        y_range=(1e-6, 1.0),
                    ),
                ),
                "The paper's first figure. On the left its linear scale; on the right the tails.",
                columns=2,
            ),
        ),
        (
            Table(
                "intervals",
                "95 % intervals",
                ("noise", "computed half-width", "printed", "E|noise|"),
                tuple(
                    (name, round(half, 2), printed, noise.expected_absolute) for name, half, printed, noise in halves
                ),
                "The paper prints the first three. The tight pairs are as private as the paper's and about four times "
                "narrower; a mean absolute error does not exist for γ = 2.",
            ),
        ),
        {
            name: {"half_width": half, "printed": printed, "expected_absolute": noise.expected_absolute}
            for name, half, printed, noise in halves
        },
    )

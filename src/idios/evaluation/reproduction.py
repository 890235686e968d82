"""The paper's evaluation, run from beginning to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from idios.evaluation import sections
from idios.evaluation.document import Section, make_jsonable
from idios.evaluation.errata import compute_errata
from idios.evaluation.extremes import run_sweeps
from idios.evaluation.medians import SIZES, measure_panel
from idios.evaluation.samples import SHAPES

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Effort:
    """How many data sets are drawn for every point."""

    median: int = 40_000
    extremes: int = 10_000


FULL = Effort()
QUICK = Effort(median=1_000, extremes=500)


def reproduce(effort: Effort = FULL, progress: Progress | None = None) -> tuple[Section, ...]:
    """Compute every section; ``progress`` is called with each step and the share of the work done before it."""
    tell = progress or (lambda step, share: None)
    tell("noise", 0.0)
    noise = sections.describe_noise()
    panels = []
    jobs = [(shape, n) for shape in SHAPES for n in SIZES]
    for i, (shape, n) in enumerate(jobs):
        tell(f"median of {shape.name}, n = {n:,}", 0.05 + 0.75 * i / len(jobs))
        panels.append(measure_panel(shape, n, effort.median))
    tell("maximum", 0.8)
    sweeps = run_sweeps(effort.extremes)
    tell("counts and errata", 0.95)
    computed = (
        noise,
        sections.describe_medians(panels),
        sections.describe_fair_fight(panels),
        sections.describe_extremes(sweeps),
        sections.describe_counts(),
        sections.describe_errata(compute_errata()),
    )
    tell("done", 1.0)
    return computed


def collect_numbers(sections: tuple[Section, ...]) -> dict[str, Any]:
    """Collect the numbers of all sections, fit for JSON."""
    return {section.name: make_jsonable(section.numbers) for section in sections}

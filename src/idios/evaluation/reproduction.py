"""The paper's evaluation, run from beginning to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from idios.evaluation import counts, errata, extremes, noise, sections
from idios.evaluation.content import Section, plain
from idios.evaluation.panels import SIZES, measure
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
    first = noise.section()
    measured = []
    jobs = [(shape, n) for shape in SHAPES for n in SIZES]
    for i, (shape, n) in enumerate(jobs):
        tell(f"median of {shape.name}, n = {n:,}", 0.05 + 0.75 * i / len(jobs))
        measured.append(measure(shape, n, effort.median))
    tell("maximum", 0.8)
    swept = extremes.sweeps(effort.extremes)
    tell("counts and errata", 0.95)
    found = (
        first,
        sections.panels(measured),
        sections.fair(measured),
        sections.maximum(swept),
        counts.section(),
        errata.section(),
    )
    tell("done", 1.0)
    return found


def numbers(found: tuple[Section, ...]) -> dict[str, Any]:
    """The numbers of all sections, fit for JSON."""
    return {section.name: plain(section.numbers) for section in found}

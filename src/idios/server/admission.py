"""What a server refuses to serve, and what it warns about: before the first request, by public facts alone."""

from __future__ import annotations

from collections.abc import Iterable

from idios.core.calibration import Level
from idios.core.domain import Categories
from idios.core.sampling import Source
from idios.datasets import DatasetConfig
from idios.errors import ConfigurationError

ATTACK = (
    "At this level the noise is fitted to the actual data, and how much of it there is (or whether an answer is exact) "
    "tells an analyst about single records: one MEDIAN of a column of 0s and 1000s shows on which side of a threshold "
    "the data lies, whatever ε."
)
REMEDY = (
    'Declare protection = "differential", which holds against any attacker: it answers everything whose columns have '
    "public bounds, and with a declared delta also medians and other robust statistics of columns without bounds. Or, "
    'if every analyst would be trusted with the data itself, declare analysts = "trusted".'
)


def check_levels(datasets: Iterable[DatasetConfig]) -> None:
    """Refuse the levels that published attacks break, unless the controller says that analysts are trusted."""
    for declared in datasets:
        level = declared.dataset.protection.level
        if level is not Level.DIFFERENTIAL and not declared.analysts_trusted:
            raise ConfigurationError(
                f'[datasets.{declared.dataset.name}] is declared with protection = "{level}", which is not served to '
                f"analysts who are not trusted. {ATTACK} {REMEDY}"
            )


def check_source(source: Source | None) -> None:
    """Refuse a seeded source of noise, which a caller could predict."""
    if source is not None and not source.secure:
        raise ConfigurationError("a seeded source of noise is for tests; a server draws from the operating system")


def warnings(declared: DatasetConfig) -> list[str]:
    """What is risky in a declaration, for the controller to read."""
    dataset = declared.dataset
    protection = dataset.protection
    found = []
    private = protection.level is Level.DIFFERENTIAL
    if not private:
        found.append(f'protection = "{protection.level}": {ATTACK}')
        if protection.floor == 0:
            found.append(
                "floor = 0: answers can be exact, and whether one is shows on which side of a threshold it is."
            )
        unbounded = [
            name
            for name, column in dataset.columns.items()
            if not isinstance(column.domain, Categories) and not column.domain.bounded
        ]
        if unbounded:
            found.append(
                f"extremes (MIN, MAX, KTH_LARGEST, KTH_SMALLEST) of {', '.join(unbounded)}: their noise follows the "
                "gap between the largest records, so that repeated questions show whether one record stands out."
            )
    if dataset.min_epsilon < LEAST_EPSILON:
        found.append(
            f"min_epsilon = {float(dataset.min_epsilon):g}: nearly free questions can be asked by the thousand; 0.05 "
            "is usual."
        )
    if dataset.parameters.quantile is None or dataset.parameters.k is None or dataset.parameters.trim is None:
        found.append("parameters: a lifted restriction lets a rank be slid across the data one record at a time.")
    if private and declared.release_seconds == 0:
        found.append("release_seconds = 0: how long an answer takes tells about the data.")
    return found


LEAST_EPSILON = 0.01

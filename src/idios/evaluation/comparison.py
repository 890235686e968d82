"""What each level of protection, and each DP baseline, would cost on a controller's own data.

Everything here is computed from the true data without any noise, so it is for the controller's eyes: neither the
values nor the errors may reach an analyst. Nothing is charged, because nothing is released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from idios.backends.arrays import NumberColumn, read_numbers, to_grid
from idios.core.calibration import Mechanism, Protection, Silent, calibrate, choose, expected_error
from idios.core.distributions import InverseSensitivity
from idios.core.domain import Domain
from idios.core.exact import Number, positive, text
from idios.core.neighbours import Neighbours
from idios.core.statistics import Statistic
from idios.errors import InvalidInput, Unanswerable
from idios.evaluation.baselines import list_baselines
from idios.evaluation.document import make_jsonable
from idios.evaluation.statistics import DEFAULT, named

DELTA = "1e-6"
GROUP = 5
LIKELY = 0.5
"""A mechanism that refuses more often than this has no error worth naming."""
RARE = 1e-6
"""A refusal less likely than this is not worth a word."""
EYES = "For the controller's eyes: computed from the true data, nothing here is protected and nothing was charged."


@dataclass(frozen=True)
class Row:
    """One statistic by one mechanism; ``error`` is E|answer − value|, None if there is no answer, or infinite."""

    statistic: str
    value: float | None
    mechanism: str
    promise: str
    error: float | None
    refusal: float = 0.0
    note: str = ""
    style: str = "local"

    @property
    def relative(self) -> float | None:
        """The error as a share of the value."""
        return None if self.error is None or not self.value else self.error / abs(self.value)


@dataclass(frozen=True)
class Comparison:
    """All rows, with what they were computed for."""

    rows: tuple[Row, ...]
    size: int
    missing: int
    epsilon: str
    bounds: tuple[str, str] | None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def frame(self) -> Any:
        """The rows as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise InvalidInput("a data frame needs pandas, which is not installed: use .rows") from error
        return pd.DataFrame([_told(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Everything, fit for JSON."""
        facts = {"size": self.size, "missing": self.missing, "epsilon": self.epsilon, "bounds": self.bounds}
        found: dict[str, Any] = make_jsonable({"note": EYES, **facts, "rows": [_told(row) for row in self.rows]})
        return found


def compare(
    values: Any,
    *,
    epsilon: Number = 1,
    statistics: Sequence[str] = DEFAULT,
    step: Number | None = None,
    bounds: Sequence[Number | None] | None = None,
    group: int = GROUP,
    delta: Number = DELTA,
    nullable: bool | None = None,
) -> Comparison:
    """Expected errors of chosen statistics of a column, at each level and of the DP baselines.

    >>> found = compare([20 + i % 50 for i in range(1001)], statistics=["median"], nullable=False)
    >>> print([row.mechanism for row in found if row.note == "needs bounds"][0])
    differential, with bounds
    >>> found.rows[0].mechanism, round(found.rows[0].error, 2)
    ('individual', 1.0)
    """
    return compare_column(
        read_numbers(values, step=step, bounds=bounds, nullable=nullable), statistics, epsilon, group, delta
    )


def compare_frame(values: Any, **options: Any) -> Any:
    """``compare`` as a pandas data frame."""
    return compare(values, **options).frame()


def compare_column(
    column: NumberColumn, statistics: Sequence[str], epsilon: Number, group: int = GROUP, delta: Number = DELTA
) -> Comparison:
    """``compare`` for a column that is read already."""
    spent = positive(epsilon, "epsilon")
    if not len(column.raw):
        raise InvalidInput("the column has no values to compare on")
    domain = column.domain
    levels = [
        ("individual", "ε-iDP", "local", domain, Protection.declare("individual")),
        (f"group of {group}", f"gDP, g = {group}", "group", domain, Protection.declare("group", group=group)),
        ("differential, with bounds", "ε-DP", "inverse", domain, Protection.declare("differential")),
        (
            "differential, without bounds",
            f"(ε, {delta})-DP",
            "bounds_free",
            Domain(domain.step),
            Protection.declare("differential", delta=delta),
        ),
    ]
    rows = []
    for written in statistics:
        statistic = named(written)
        label = " ".join(written.replace(":", " ").split())
        here = _placed(column, domain)
        value = _value(statistic, here)
        for name, promise, style, known, protection in levels:
            if name.endswith("with bounds") and not domain.bounded:
                rows.append(Row(label, value, name, promise, None, note="needs bounds", style=style))
                continue
            row = Row(label, value, name, promise, None, style=style)
            rows.append(replace(row, **_level(statistic, _placed(column, known), protection, spent)))
        rows += _baselines(statistic, label, value, here, float(spent))
    ends = (_written(domain.lower, domain), _written(domain.upper, domain)) if domain.bounded else None
    return Comparison(tuple(rows), len(column.raw), column.missing or 0, str(text(spent)), ends)


def _value(statistic: Statistic, column: NumberColumn) -> float | None:
    """The true value, None where it is undefined."""
    point = statistic.envelope(column.summarise(statistic, Neighbours.REPLACE, 0), 0).value
    return None if point is None else point * float(statistic.answer_step(column.domain))


def _level(statistic: Statistic, column: NumberColumn, protection: Protection, epsilon: Fraction) -> dict[str, Any]:
    """What one of Idios' own levels costs, exactly as it would answer."""
    notion = Neighbours.REPLACE
    try:
        choice = choose(statistic, column.domain, notion, column.moves(notion).whole, protection, epsilon)
    except Unanswerable as refusal:
        # the reason alone: "needs an upper bound", "cannot be answered at …"
        return {"note": str(refusal).partition(", and the column")[0].removeprefix(f"{statistic.name} ")}
    summary = column.summarise(statistic, notion, choice.distance)
    mechanism = calibrate(choice, statistic, summary, protection)
    value = statistic.envelope(summary, 0, protection.fineness).value
    if value is None:
        return {"refusal": 1.0, "note": "undefined on so few values"}
    return _cost(mechanism, value, statistic.answer_step(column.domain, protection.fineness))


def _cost(mechanism: Mechanism, value: int, step: Fraction) -> dict[str, Any]:
    """The expected error, the probability of a refusal, and what there is to say."""
    if isinstance(mechanism, Silent):
        return {"refusal": 1.0, "note": "no answer: too few values for a finite envelope"}
    refusal = mechanism.refusal_probability if isinstance(mechanism, InverseSensitivity) else 0.0
    if refusal > LIKELY:
        return {"refusal": refusal, "note": f"refuses with probability {refusal:.3g}: too few values"}
    note = f"refuses with probability {refusal:.1g}" if refusal > RARE else ""
    return {"error": expected_error(mechanism, value, step), "refusal": refusal, "note": note}


def _baselines(
    statistic: Statistic, label: str, value: float | None, column: NumberColumn, epsilon: float
) -> list[Row]:
    """The textbook mechanisms; all need bounds, and take the number of values for public."""
    rows = []
    values = np.asarray(column.raw, dtype=np.float64) * float(column.domain.step)
    low, high = (float(end * column.domain.step) for end in (column.domain.low, column.domain.high))
    for baseline in list_baselines(statistic):
        row = Row(label, value, baseline.name, "ε-DP", math.inf, note="infinite: needs bounds", style=baseline.style)
        if column.domain.bounded:
            row = replace(row, error=baseline.error(values, low, high, epsilon), note="")
        rows.append(row)
    return rows


def _placed(column: NumberColumn, domain: Domain) -> NumberColumn:
    """The column's grid points, held within a domain of the same step."""
    points = column.raw if column.on_grid else to_grid(column.raw, Domain(domain.step))
    if domain.lower is not None or domain.upper is not None:
        points = np.clip(points, domain.lower, domain.upper)
    return NumberColumn(points, domain, column.missing, on_grid=True)


def _written(bound: int | None, domain: Domain) -> str:
    return str(text((bound or 0) * domain.step))


def _told(row: Row) -> dict[str, Any]:
    told = asdict(row) | {"relative_error": row.relative}
    del told["style"]
    return told

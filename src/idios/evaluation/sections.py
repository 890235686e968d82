"""What was measured, as the sections of the report."""

from __future__ import annotations

from collections.abc import Sequence

from idios.evaluation import extremes
from idios.evaluation.content import Figure, Panel, Section, Series, Table
from idios.evaluation.extremes import Sweep
from idios.evaluation.panels import NAMES, Measured

ERROR_LABEL = "mean absolute error (data units)"
LIKELY = 0.5
"""A mechanism that refuses more often than this is not drawn as if it answered."""

CONVENTIONS = (
    "Bounds: 0 and 1 for U[0, 1]; each data set's own minimum and maximum for N(0, 1) and Exp(1), as in the paper. "
    "That is kind to every DP curve, and with bounds so chosen none of them is really DP (erratum 7). Smooth "
    "sensitivity: γ = 3 with (α, β) = (ε/12, ε/3), β being the noise's. Even n: the median is the mean of the middle "
    "two. Every point is the mean, over the same drawn data sets, of the exact expectation for each of them."
)


def panels(measured: Sequence[Measured]) -> Section:
    """The paper's nine panels, with a simulation beside the expectations."""
    found = tuple(
        Panel(
            tuple(
                series
                for key in ("smooth", "local")
                for series in (
                    Series(NAMES[key], key, one.epsilons, one.errors[key]),
                    Series(f"{NAMES[key]}: simulated", key, one.epsilons, one.simulated[key], dots=True),
                )
            ),
            "ε",
            ERROR_LABEL,
            f"{one.shape.name}, n = {one.n:,}",
            log_y=True,
        )
        for one in measured
    )
    rows = tuple(
        (
            one.shape.name,
            one.n,
            one.at("local", 1.0),
            one.simulated["local"][-1],
            one.at("smooth", 1.0),
            one.simulated["smooth"][-1],
            one.at("smooth", 1.0) / one.at("local", 1.0),
        )
        for one in measured
    )
    return Section(
        "panels",
        "The median, as in the paper",
        f"{CONVENTIONS} {measured[0].sets:,} data sets a point; markers are simulations with one draw of noise for "
        "each. The paper's axes are linear; here they are logarithmic, since a linear axis would show one curve only.",
        (
            Figure(
                "panels",
                "Mean absolute error of the median: iDP against DP with smooth sensitivity",
                found,
                "The paper's second figure. iDP falls like 1/ε; smooth sensitivity faster, since a larger ε also "
                "smooths less.",
                columns=3,
            ),
        ),
        (
            Table(
                "panels-at-1",
                "Mean absolute error at ε = 1",
                ("records from", "n", "iDP", "simulated", "smooth γ = 3", "simulated", "ratio"),
                rows,
            ),
        ),
        {
            "data_sets": measured[0].sets,
            "epsilons": list(measured[0].epsilons),
            "conventions": CONVENTIONS,
            "panels": [
                {
                    "distribution": one.shape.key,
                    "n": one.n,
                    "idp": one.errors["local"],
                    "smooth": one.errors["smooth"],
                    "standard_errors": {"idp": one.deviations["local"], "smooth": one.deviations["smooth"]},
                    "simulated": {"idp": one.simulated["local"], "smooth": one.simulated["smooth"]},
                }
                for one in measured
            ],
        },
    )


def fair(measured: Sequence[Measured]) -> Section:
    """The same panels against DP at its best, and what each level of protection costs."""
    rivals = _figure(
        "fair",
        "The fair fight: iDP against DP at its best",
        measured,
        ("smooth", "tight", "exponential", "inverse", "bounds_free", "local", "staircase"),
        "The same data sets. At ε = 1 the best DP medians are within a factor of 1.5 to 2.4 of iDP. The bounds-free "
        "one is drawn where it answers more often than not. Smooth sensitivity with γ = 2 has no mean error.",
    )
    levels = _figure(
        "levels",
        "What each level of protection costs",
        measured,
        ("inverse", "bounds_free", "group10", "group5", "group2", "local"),
        "From ε-iDP over groups of 2, 5 and 10 to differential privacy. A group larger than n/2 − 1 can move the "
        "median past the data, so without bounds its curve is infinite and missing at n = 10.",
    )
    keys = ("local", "staircase", "group2", "group5", "group10", "inverse", "exponential", "tight", "smooth", "tight2")
    rows = tuple((NAMES[key], *(one.at(key, 1.0) for one in measured)) for key in (*keys[:6], "bounds_free", *keys[6:]))
    refusals = ("probability that the bounds-free one refuses", *(one.at("refusal", 1.0) for one in measured))
    return Section(
        "fair",
        "The fair fight",
        "The paper's baseline is loose (its pair spends 0.73 of ε) and not the best one there is. Here is the same "
        "experiment with tight parameters, with mechanisms that have no heavy tails, with one that needs no bounds, "
        "with the least noise that ε allows, and with groups.",
        (rivals, levels),
        (
            Table(
                "fair-at-1",
                "Mean absolute error at ε = 1",
                ("mechanism", *(f"{one.shape.name}, n = {one.n:,}" for one in measured)),
                (*rows, refusals),
                "The error of the bounds-free mechanism is that of an answer, if there is one.",
            ),
        ),
        {
            "epsilons": list(measured[0].epsilons),
            "panels": [{"distribution": one.shape.key, "n": one.n, **one.errors} for one in measured],
        },
    )


def _figure(name: str, title: str, measured: Sequence[Measured], keys: Sequence[str], caption: str) -> Figure:
    found = []
    for one in measured:
        series = []
        for key in keys:
            y: tuple[float | None, ...] = one.errors[key]
            if key == "bounds_free":
                pairs = zip(one.errors[key], one.errors["refusal"], strict=True)
                y = tuple(error if refusal <= LIKELY else None for error, refusal in pairs)
            series.append(Series(NAMES[key], key, one.epsilons, y))
        heading = f"{one.shape.name}, n = {one.n:,}"
        found.append(Panel(tuple(series), "ε", ERROR_LABEL, heading, log_y=True))
    return Figure(name, title, tuple(found), caption, columns=3)


def maximum(sweeps: Sequence[Sweep]) -> Section:
    """Maximum against second maximum."""
    found = tuple(
        Panel(
            tuple(Series(extremes.NAMES[key], key, one.x, errors) for key, errors in one.errors.items()),
            one.label,
            ERROR_LABEL,
            log_x=one.log,
            log_y=True,
        )
        for one in sweeps
    )
    size = next(one for one in sweeps if one.name == "size")
    wanted = [size.x.index(float(n)) for n in (101, 1001, 10_001)]
    rows = tuple((extremes.NAMES[key], *(errors[i] for i in wanted)) for key, errors in size.errors.items())
    return Section(
        "maximum",
        "Maximum against second maximum",
        "Records from N(0, 1) with public bounds, ε = 1. The maximum can jump to the bound by one record at every data "
        "set, so even local sensitivity pays for the domain. The second largest cannot: its noise is that of the gaps "
        "beside it, and no bounds are needed. It is another question, though: the distance between the two values is "
        "drawn as well. And it is the outlier that pays: a person far above the rest widens the noise of the "
        "second largest, and only the third is free of them.",
        (
            Figure(
                "maximum",
                "Largest and second largest of N(0, 1): global, smooth and local calibration (ε = 1)",
                found,
                "Left: more records. Middle: a wider domain. Right: one outlier (n = 1001, bounds ±100).",
                columns=3,
            ),
        ),
        (
            Table(
                "maximum-at-1",
                "Mean absolute error at ε = 1, bounds ±100",
                ("calibration", *(f"n = {int(size.x[i]):,}" for i in wanted)),
                rows,
            ),
        ),
        {one.name: {"x": one.x, **one.errors} for one in sweeps},
    )

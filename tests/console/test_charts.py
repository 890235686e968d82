"""Charts are SVG that says what the numbers say, whatever the numbers are."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from idios.ledger import Spending, Step
from idios.ledger.history import STEPS
from idios.model import Accounting, Balance, Cost
from idios.server.console.charts import (
    MOST_BARS,
    Axis,
    Bar,
    LevelErrors,
    draw_bars,
    draw_budget,
    draw_levels,
    draw_meter,
    draw_timeline,
    error_axis,
    linear_axis,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def _read(drawing: Markup) -> ElementTree.Element:
    """The drawing as XML; it must be well formed, sized, told in words and without styles of its own."""
    root = ElementTree.fromstring(str(drawing))
    assert "style=" not in drawing
    assert root.get("viewBox")
    assert root.get("role") == "img"
    return root


def _of(root: ElementTree.Element, tag: str, style: str) -> list[ElementTree.Element]:
    return [one for one in root.iter(tag) if one.get("class") == style]


def _number(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name])


def test_bars_are_as_long_as_their_values_and_start_at_zero() -> None:
    values = [40.0, -10.0, 0.0, None, 20.0]
    root = _read(draw_bars("t", [Bar(f"g{i}", value, str(value)) for i, value in enumerate(values)]))
    drawn = _of(root, "rect", "series-1")
    assert len(drawn) == 4
    zero = _number(_of(root, "line", "axis")[0], "x1")
    widths = [_number(one, "width") for one in drawn]
    assert widths[0] == pytest.approx(4 * widths[1], rel=0.01) == pytest.approx(2 * widths[3], rel=0.01)
    assert _number(drawn[0], "x") == zero
    assert _number(drawn[1], "x") + widths[1] == pytest.approx(zero)
    assert [one.text for one in _of(root, "text", "value")] == [str(value) for value in values]


def test_margins_are_whiskers_that_stay_inside() -> None:
    root = _read(draw_bars("t", [Bar("a", 10.0, "10", (6.0, 14.0)), Bar("b", 1.0, "1", (-3.0, 5.0))]))
    spans = [(_number(one, "x1"), _number(one, "x2")) for one in _of(root, "line", "whisker")]
    long = [(a, b) for a, b in spans if a != b]
    assert len(long) == 2
    assert long[0][1] - long[0][0] == pytest.approx(long[1][1] - long[1][0], abs=0.1)
    assert min(a for a, _ in spans) >= 0


@pytest.mark.parametrize("value", [0.0, None, 1e300, -1e-300, float(10**18)])
def test_no_value_breaks_a_chart(value: float | None) -> None:
    _read(draw_bars("t", [Bar('<&"', value, "x")]))  # does not raise: the picture is well-formed XML


def test_a_long_chart_says_what_it_leaves_out() -> None:
    root = _read(draw_bars("t", [Bar(str(i), float(i), str(i)) for i in range(100)]))
    assert len(_of(root, "text", "value")) == MOST_BARS
    assert f"The first {MOST_BARS} of 100." in "".join(root.itertext())


def test_errors_that_differ_much_are_on_powers_of_ten() -> None:
    rows = [
        LevelErrors("individual", (("", 2.0),)),
        LevelErrors("group of 5", (("", 2000.0),)),
        LevelErrors("differential", ()),
    ]
    root = _read(draw_levels("t", rows))
    assert "powers of ten" in "".join(root.itertext())
    ticks = [one.text for one in _of(root, "text", "tick")]
    assert ticks == ["1", "10", "100", "1,000", "10,000"]
    assert len(list(root.iter("circle"))) == 2
    assert "not answered" in "".join(root.itertext())
    near = _read(draw_levels("t", [LevelErrors("a", (("", 2.0), ("", 5.0)))]))
    assert "a linear scale from 0" in "".join(near.itertext())


def test_axes_hold_everything() -> None:
    assert linear_axis([], 0, 1) == Axis(0, 1, 0, 1)
    assert linear_axis([-3, 5], 0, 1) == Axis(-3, 5, 0, 1)
    assert not error_axis([0.0, 1e9], 0, 1).logarithmic, "0 has no place among powers of ten"
    for axis in (linear_axis([7.0], 10, 90), error_axis([0.003, 700.0], 10, 90)):
        assert all(10 <= axis.at(tick) <= 90 for tick in axis.ticks())
        assert len(axis.ticks()) >= 2


@pytest.mark.parametrize(("share", "style"), [(1.0, "good"), (0.2, "fair"), (0.05, "low"), (0.0, "low"), (7.0, "good")])
def test_a_meter_warns_before_the_end(share: float, style: str) -> None:
    root = ElementTree.fromstring(str(draw_meter('"<left>"', share)))
    bar = root.findall("rect")[1]
    assert bar.get("class") == style
    assert _number(bar, "width") == min(share, 1.0) * 100


def _spending(*charges: tuple[int, str | None, str]) -> Spending:
    """Charges as the hour, who asked, and ε."""
    epsilon: dict[str | None, Fraction] = {}
    for _, who, paid in charges:
        epsilon[who] = epsilon.get(who, Fraction(0)) + Fraction(paid)
    steps = tuple(Step(_hour(hour), {who: Fraction(paid)}) for hour, who, paid in charges)
    counts = {asked: sum(who == asked for _, who, _ in charges) for asked in epsilon}
    return Spending(_hour(charges[0][0]), steps, epsilon, counts)


def _balance(epsilon: int, delta: Fraction = Fraction(0)) -> Balance:
    accounting = Accounting.CONCENTRATED if delta else Accounting.PURE
    spent = Cost(Fraction(1, 2), Fraction(0), Fraction(1, 8), pure=not delta)
    return Balance.of_dataset("people", accounting, Fraction(epsilon), delta, spent)


def _hour(number: int) -> str:
    return (NOW - timedelta(hours=50 - number)).isoformat()


def test_spending_is_stacked_by_whoever_paid_for_the_data_set() -> None:
    found = draw_timeline(_balance(10), _spending((1, "ada", "1"), (2, None, "2"), (3, "ada", "4")), NOW)
    root = _read(found.drawing)
    assert [(spender.name, spender.amount, spender.charges) for spender in found.spenders] == [
        ("ada", 5, 2),
        ("controller", 2, 1),
    ]
    paths = [one.attrib["d"] for one in root.iter("path")]
    tops = [min(float(point.split()[1]) for point in path[1:-2].split(" L")) for path in paths]
    limit = _number(_of(root, "line", "limit")[0], "y1")
    bottom = max(float(point.split()[1]) for point in paths[0][1:-2].split(" L"))
    assert (bottom - tops[0]) / (bottom - limit) == pytest.approx(0.5, abs=0.01)
    assert (bottom - tops[1]) / (bottom - limit) == pytest.approx(0.7, abs=0.01)


def test_where_rho_adds_up_it_is_drawn() -> None:
    balance = _balance(5, Fraction(1, 10**6))
    spending = Spending(_hour(1), (Step(_hour(1), {"ada": Fraction(1, 2)}, {"ada": Fraction(1, 8)}),))
    spending = replace(spending, epsilon={"ada": Fraction(1, 2)}, charges={"ada": 1}, rho={"ada": Fraction(1, 8)})
    found = draw_timeline(balance, spending, NOW)
    assert (found.letter, found.spenders[0].amount) == ("ρ", Fraction(1, 8))
    assert "ρ = 0.125 of ≈\u202f0.4631 spent" in found.drawing
    meter = draw_budget(balance)
    assert (meter.left, meter.whole) == ("ρ ≈\u202f0.3381", "≈\u202f0.4631")
    assert meter.meaning == "which stands for ε = 4.19, δ = 1e-6"


def test_an_analyst_called_controller_is_not_the_controller() -> None:
    found = draw_timeline(_balance(10), _spending((1, "controller", "1"), (2, None, "2")), NOW)
    assert [spender.amount for spender in found.spenders] == [2, 1]


def test_no_spending_and_much_spending_are_drawn() -> None:
    assert draw_timeline(_balance(10), Spending(), NOW).spenders == ()
    _read(draw_timeline(_balance(10), Spending(), NOW).drawing)
    many = _spending(*((i * 49 // STEPS, f"a{i % 90}", "1/1000") for i in range(STEPS)))
    found = draw_timeline(_balance(1), many, NOW)
    paths = [one.attrib["class"] for one in _read(found.drawing).iter("path")]
    assert paths == [f"series-{number}" for number in range(1, 7)], "a layer for each colour"
    assert len(found.drawing) < 200_000
    assert len(found.spenders) == 90
    assert sum(spender.amount for spender in found.spenders) == Fraction(STEPS, 1000)


HUGE, TINY = 1.7976931348623157e308, 5e-324


@pytest.mark.parametrize("values", [[HUGE, -HUGE], [math.inf, 1.0], [TINY, 0.0], [TINY, HUGE], [-math.inf, math.inf]])
def test_drawings_of_the_ends_of_floats_are_whole(values: list[float]) -> None:
    bars = draw_bars("t", [Bar(str(i), value, "v", (value, value)) for i, value in enumerate(values)])
    levels = draw_levels("t", [LevelErrors("l", tuple(("g", abs(value)) for value in values))])
    for drawing in (bars, levels):
        for element in _read(drawing).iter():
            assert not {"nan", "inf", "-inf"} & set(element.attrib.values()), str(drawing)

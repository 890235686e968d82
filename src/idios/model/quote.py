"""What a question would cost and promise, before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from idios import display
from idios.codec import from_json, json_field, to_json
from idios.core.exact import round_up_digits, text
from idios.core.guarantee import Guarantee
from idios.core.neighbours import to_plural
from idios.display import format_cost, format_left, format_number, format_rho, format_short, format_value


@dataclass(frozen=True, kw_only=True)
class ExpectedMargin:
    """How far off a computed column will be with 95 %, as far as that is known before asking.

    That is ``margin``, and of a quotient by d, 1 or more, ``margin`` + (``over`` + ``most`` · e) / (d − e), where the
    ``divisor`` is off by e, its ``error``, and the released values ``provided`` are no larger than d. ``largest`` is
    the largest d that is possible, where that is known. ``reason`` says why nothing is known.
    """

    margin: Fraction = Fraction(0)
    over: Fraction = json_field(optional=True, default=Fraction(0))
    most: Fraction = json_field(optional=True, default=Fraction(0))
    divisor: str = json_field(optional=True, default="")
    error: Fraction = json_field(optional=True, default=Fraction(0))
    largest: int | None = json_field(optional=True, default=None)
    provided: tuple[str, ...] = json_field(optional=True, default=())
    reason: str = json_field(optional=True, default="")

    def at(self, divisor: Fraction | int = 0) -> Fraction | None:
        """How far off it will be, where what it is divided by is so much; None where there is no limit.

        >>> mean = ExpectedMargin(over=Fraction(30), most=Fraction(3), divisor="n", error=Fraction(10))
        >>> mean.at(10), mean.at(70), print(mean)
        ± 0.0607 where n is 1,000, ± 0.00601 where it is 10,000 (noise, 95 %)
        (None, Fraction(1, 1), None)
        """
        if self.reason or (self.divisor and divisor <= self.error):
            return None
        return self.margin + (self.over + self.most * self.error) / (divisor - self.error if self.divisor else 1)

    def __str__(self) -> str:
        if self.reason:
            return f"not public: {self.reason}"
        size = 10 ** len(str(ceil(10 * self.error)))  # from where it is some tenths of what it may be
        told, name = [], format_value(self.divisor)
        for each in dict.fromkeys(min(each, self.largest or each) for each in (size, 10 * size)):
            margin = self.at(each)
            told.append("no limit" if margin is None else f"± {format_number(round_up_digits(margin, 3))}")
            if not self.divisor:
                break
            told[-1] += f" where {name if len(told) == 1 else 'it'} is {each:,}"
        smaller = f", with {display.shorten_list(self.provided)} no larger" if self.provided else ""
        return f"{', '.join(told)}{smaller} ({display.name_interval()})"


@dataclass(frozen=True, kw_only=True)
class Quote:
    """What a question would cost and promise; no data was touched.

    ``split`` is the ε of each released cell by column: what the proportions result in that a question gives as
    ``split=``. ``fitted`` counts the released values whose noise is fitted to the data, and ``least_epsilon`` is the
    ε from which on the question is answered. ``remaining_after`` is what would be left. ``shortage`` says which budget
    does not suffice, None if all do; the question is then ``affordable``. ``null_risks`` says by column on how few
    values an answer is to be expected NULL or far off, where they may be so few. ``checks`` is by column the ε of the
    check that tells how far off its answer is; ``checked_from`` the ε from which on there is the declared one, where it
    was left out because it would have too little. ``computed`` are the columns that are computed from what is released,
    as they were written; they cost nothing, and ``computed_margins`` says how far off they will be, and how far the
    "totals of" a statistic. ``reduction`` says to what the rows of each person are reduced first, ``notes`` what else
    is known of an answer before asking.

    ``cost`` is the price with pure accounting and ``rho`` that with concentrated accounting; Gaussian noise, which is
    not ``pure``, has only the latter, and ``cost`` is then the ε that was asked with. ``more`` is about how many more
    questions like this one could be asked after it.
    """

    dataset: str
    columns: tuple[str, ...]
    cost: Fraction
    delta: Fraction
    rho: Fraction
    pure: bool
    split: Mapping[str, Fraction]
    cells: int
    fitted: int
    least_epsilon: Fraction
    guarantee: Guarantee
    remaining_before: Fraction | None
    remaining_after: Fraction | None
    remaining_rho_before: Fraction | None = json_field(optional=True, default=None)
    remaining_rho_after: Fraction | None = json_field(optional=True, default=None)
    more: int | None
    affordable: bool = field(init=False)
    shortage: str | None
    stored: bool
    margins: Mapping[str, Fraction | None] = json_field(key="margin")
    margin_reasons: Mapping[str, str] = json_field(key="margin_reason")
    null_risks: Mapping[str, str] = json_field(optional=True, default_factory=dict)
    checks: Mapping[str, Fraction] = json_field(optional=True, default_factory=dict)
    checked_from: Mapping[str, Fraction] = json_field(optional=True, default_factory=dict)
    computed: Mapping[str, str] = json_field(optional=True, default_factory=dict)
    computed_margins: Mapping[str, ExpectedMargin] = json_field(optional=True, default_factory=dict)
    reduction: str = json_field(optional=True, default="")
    notes: tuple[str, ...] = json_field(optional=True, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "affordable", self.shortage is None)

    @property
    def least(self) -> str:
        """The ε from which on the question is answered, and what makes it so."""
        values = "1 value has" if self.fitted == 1 else f"{self.fitted:,} values have"
        return f"{text(self.least_epsilon)}" + (f" ({values} noise fitted to the data)" if self.fitted else "")

    def __str__(self) -> str:
        """What it would cost and promise, in plain text."""
        return f"{display.pairs_text(self._pairs())}\n{self.guarantee}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return display.pairs_html(self._pairs()) + display.paragraph_html(str(self.guarantee))

    @property
    def before(self) -> str:
        """What is left before the question, in words."""
        return format_left(self.remaining_before, self.remaining_rho_before)

    @property
    def after(self) -> str:
        """What would be left after it, and for how many more, in words; or what is too little."""
        if not self.affordable:
            return f"not affordable: {self.shortage}"
        left = format_left(self.remaining_after, self.remaining_rho_after)
        return left if self.more is None else f"{left}: about {self.more:,} more like this one"

    @property
    def prices(self) -> list[tuple[str, str]]:
        """The price under both accountings, in words; first the one that is charged."""
        pure = format_cost(self.cost, self.delta) if self.pure else "none: Gaussian noise has no ε of its own"
        rho = f"ρ = {format_rho(self.rho)}"
        if self.remaining_rho_before is None:
            return [("cost", pure), ("with concentrated accounting", rho)]
        return [("cost", rho), ("with pure accounting", pure)]

    @property
    def drawn(self) -> dict[str, Fraction]:
        """``split`` without what is only checked, and not drawn again."""
        return {column: share for column, share in self.split.items() if share or column not in self.checks}

    @property
    def check_pairs(self) -> list[tuple[str, str]]:
        """Which answers are checked and with which ε, in words; and from which ε on those are that could be."""
        told = {
            column: f"ε = {format_short(share)}, tells how many {to_plural(self.guarantee.unit)} off it is"
            for column, share in self.checks.items()
        }
        told |= {column: f"none below ε = {format_short(least)}" for column, least in self.checked_from.items()}
        return [(f"check of {format_value(column)}", words) for column, words in told.items()]

    @property
    def margin_pairs(self) -> list[tuple[str, str]]:
        """How far off each column will be, in words."""
        plain = (
            (
                column,
                f"not public: {self.margin_reasons.get(column, '')}"
                if margin is None
                else f"± {format_number(margin)} ({display.name_interval()})",
            )
            for column, margin in self.margins.items()
        )
        told = [*plain, *((column, str(margin)) for column, margin in self.computed_margins.items())]
        return [(f"margin of {format_value(column)}", words) for column, words in told]

    def _pairs(self) -> list[tuple[str, str]]:
        drawn = self.drawn.items()
        pairs = [
            *self.prices,
            *([("stored", "yes, it would be returned")] if self.stored else []),
            *([("reduced", self.reduction)] if self.reduction else []),
            ("released cells", str(self.cells)),
            ("least ε", self.least),
            *([("each cell", ", ".join(f"{format_value(c)}: ε = {text(e)}" for c, e in drawn))] if drawn else []),
            *self.check_pairs,
            *[(f"computed: {format_value(column)}", written) for column, written in self.computed.items()],
            ("remaining before", self.before),
            ("remaining after", self.after),
        ]
        pairs += self.margin_pairs
        pairs += [(f"risk of {format_value(column)}", risk) for column, risk in self.null_risks.items()]
        pairs += [("note", note) for note in self.notes]
        return [*pairs, ("guarantee", self.guarantee.notation)]

    def to_dict(self) -> dict[str, Any]:
        """The quote for JSON; exact numbers are text."""
        plain: dict[str, Any] = to_json(self)
        return plain

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Quote:
        """The quote that ``to_dict`` wrote down."""
        return from_json(cls, content, "a quote")

"""What a question would cost and promise, before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from idios import display
from idios.codec import from_json, json_field, to_json
from idios.core.exact import text
from idios.core.guarantee import Guarantee
from idios.core.neighbours import to_plural
from idios.display import format_cost, format_left, format_rho, format_short, format_value


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
    as they were written; they cost nothing. ``reduction`` says to what the rows of each person are reduced first,
    ``notes`` what else is known of an answer before asking.

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
        for column, margin in self.margins.items():
            known = f"not public: {self.margin_reasons.get(column, '')}" if margin is None else f"± {text(margin)}"
            pairs.append((f"95 % margin of {format_value(column)}", known))
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

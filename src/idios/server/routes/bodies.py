"""The JSON that clients send, which pydantic checks and the OpenAPI document describes."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from idios.core.exact import exact
from idios.model import QuestionRequest
from idios.server.question_queue import check_affordable

SQL = "SELECT region, MEDIAN(income) FROM people GROUP BY region"

Exact = Annotated[
    str | int | float,
    Field(
        description="A number, best as text: a decimal such as 0.5 or a fraction such as 1/3, read exactly.",
        examples=["0.5"],
        union_mode="left_to_right",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """What a client sends; a field that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuestionBody(Body):
    """A question in SQL and what it may cost."""

    sql: str = Field(min_length=1, max_length=20_000, examples=[SQL])
    epsilon: Exact
    split: dict[str, Exact] | None = Field(
        default=None, max_length=200, description="Proportions of ε by column; evenly unless given.", examples=[None]
    )

    def question(self) -> QuestionRequest:
        """The question, its numbers as the text they were; refused if the server would work too long for it."""
        split = None if self.split is None else {label: str(share) for label, share in self.split.items()}
        return check_affordable(QuestionRequest(self.sql, str(self.epsilon), split))


class QueryBody(QuestionBody):
    """A question to be answered."""

    wait: float | None = Field(
        default=None, ge=0, le=60, description="Seconds after which the answer is fetched later.", examples=[30]
    )


class VerifyBody(Body):
    """What the chain is held against."""

    anchor: str | None = Field(
        default=None, max_length=100, description="A line that `idios ledger head` printed.", examples=[None]
    )


class AnalystBody(Body):
    """A new analyst."""

    name: Name = Field(examples=["ada"])


class AmountBody(Body):
    """Totals of ε and δ; what is left out stays as it is, or without a limit of its own."""

    epsilon: Exact | None = Field(default=None, examples=["2"])
    delta: Exact | None = Field(default=None, examples=[None])

    def amounts(self) -> dict[str, Fraction | None]:
        """The totals by name, exact."""
        given = (("epsilon", self.epsilon), ("delta", self.delta))
        return {name: None if amount is None else exact(str(amount), name) for name, amount in given}


class TokenBody(Body):
    """A new token."""

    name: Name = Field(examples=["ada"], description="Whose it is.")
    role: Literal["analyst", "controller"] = "analyst"
    days: int = Field(default=90, ge=1, le=3650)

"""The JSON that goes in and out, as the OpenAPI document describes it. Exact numbers are text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SQL = "SELECT region, MEDIAN(income) FROM people GROUP BY region"

Exact = Annotated[
    str | int | float,
    Field(
        description="A number, best as text: a decimal such as 0.5 or a fraction such as 1/3, read exactly.",
        examples=["0.5"],
        union_mode="left_to_right",
    ),
]
Text = Annotated[str, Field(description="An exact number as text: a decimal, or a fraction.")]
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


class TokenBody(Body):
    """A new token."""

    name: Name = Field(examples=["ada"], description="Whose it is.")
    role: Literal["analyst", "controller"] = "analyst"
    days: int = Field(default=90, ge=1, le=3650)


class Where(BaseModel):
    """The place in a request that is wrong."""

    in_: Literal["sql", "body", "query", "path", "header"] = Field(alias="in")
    name: str | None
    line: int | None
    column: int | None


class ErrorDetail(BaseModel):
    """What went wrong, where, and what to do."""

    code: str = Field(examples=["budget_exceeded"])
    message: str
    where: Where | None
    fix: str
    request: str = Field(description="The id of the request, which the server's log has too.")
    quantity: str | None = Field(default=None, description="epsilon or delta, where a budget was exceeded.")
    remaining: str | None = Field(default=None, description="What is left of the budget.")
    requested: str | None = None


class Error(BaseModel):
    """The one shape of every error."""

    error: ErrorDetail


class Me(BaseModel):
    """Who holds the token."""

    name: str
    role: Literal["analyst", "controller"]


class FunctionOffer(BaseModel):
    """A statistic of one column, and whether it can be answered as the data set is declared."""

    name: str
    call: str
    answerable: bool
    why: str | None


class ColumnShown(BaseModel):
    """A declared column and what can be asked of it."""

    name: str
    type: str
    nullable: bool
    groups: bool
    step: str | None
    bounds: list[str | None] | None
    values: list[str] | None
    functions: list[FunctionOffer]


class DatasetShown(BaseModel):
    """A data set as it is declared; nothing here comes from the data."""

    name: str
    version: str
    neighbours: str
    level: str
    group: int
    delta: str
    analysts_trusted: bool
    min_epsilon: str
    max_groups: int
    release_seconds: str
    parameters: dict[str, Any]
    columns: list[ColumnShown]


class Datasets(BaseModel):
    """The data sets that the caller may ask about."""

    datasets: list[DatasetShown]


class Promise(BaseModel):
    """What an answer guarantees."""

    model_config = ConfigDict(extra="allow")
    notation: str
    sentence: str


class QuoteShown(BaseModel):
    """What a question would cost and promise."""

    model_config = ConfigDict(extra="allow")
    dataset: str
    columns: list[str]
    cost: str
    delta: str
    split: dict[str, str]
    cells: int
    fitted: int
    least_epsilon: str
    guarantee: Promise
    remaining_before: str | None
    remaining_after: str | None
    affordable: bool
    shortage: str | None
    stored: bool
    margin: dict[str, str | None]
    margin_reason: dict[str, str]


class AnswerShown(BaseModel):
    """Released values, what they cost and what they promise."""

    model_config = ConfigDict(extra="allow")
    id: str
    dataset: str
    columns: list[str]
    rows: list[dict[str, str | None]]
    epsilon: str
    delta: str
    guarantee: Promise
    remaining: str | None
    margin: dict[str, str | None]
    margin_reason: dict[str, str]
    stored: bool


class SandboxAnswer(AnswerShown):
    """An answer about made-up data."""

    sandbox: bool = True


class ProgressShown(BaseModel):
    """A question that outlasted its request."""

    id: str
    state: Literal["running", "answered", "cancelled", "failed"]
    step: str | None
    share: float | None
    elapsed: float
    href: str
    answer: AnswerShown | None
    error: ErrorDetail | None


class AccountShown(BaseModel):
    """One quantity; a budget of null has no limit of its own, and what remains is the data set's."""

    budget: str | None
    spent: str
    remaining: str | None


class BudgetShown(BaseModel):
    """What may be spent on a data set, by the caller or over all analysts."""

    dataset: str
    analyst: str | None
    epsilon: AccountShown
    delta: AccountShown


class Budgets(BaseModel):
    """The caller's budgets."""

    budgets: list[BudgetShown]


class AnswerRecord(BaseModel):
    """A stored answer, cell by cell."""

    sequence: int
    id: str
    time: str
    dataset: str
    version: str
    epsilon: str
    delta: str
    guarantee: str
    statistics: list[str]
    groups: list[dict[str, str]]
    cells: list[list[str | None]]
    margins: list[str | None]


class Answers(BaseModel):
    """Stored answers, newest first; `next` is the `before` of the following page."""

    answers: list[AnswerRecord]
    next: int | None


class InspectionShown(BaseModel):
    """The truth behind a question, cell by cell."""

    cells: list[dict[str, Any]]


class CostsShown(BaseModel):
    """What each level of protection would cost for one question."""

    model_config = ConfigDict(extra="allow")
    rows: list[dict[str, Any]]


class EntryShown(BaseModel):
    """One entry of the chain."""

    sequence: int
    time: str
    kind: str
    content: dict[str, Any]


class Entries(BaseModel):
    """Entries of the chain, newest first, and where the chain ends."""

    entries: list[EntryShown]
    next: int | None
    head: str


class Verified(BaseModel):
    """Whether the chain and the tables are what was signed."""

    ok: bool
    entries: int
    head: str
    problem: str | None


class GrantShown(BudgetShown):
    """What an analyst may spend on a data set."""


class TokenShown(BaseModel):
    """A token by its public name."""

    token: str
    holder: str
    role: str
    expires: str
    revoked: bool


class Analysts(BaseModel):
    """Who may ask, about what, and with which tokens."""

    analysts: list[str]
    grants: list[GrantShown]
    tokens: list[TokenShown]


class TokenIssued(BaseModel):
    """A new token; the only time it can be seen."""

    token: str = Field(description="The secret: it cannot be shown again.")
    name: str
    holder: str
    role: str
    expires: str


class Done(BaseModel):
    """What was asked for is done, and is in the chain."""

    done: bool = True


class Health(BaseModel):
    """Whether the server can work."""

    status: str

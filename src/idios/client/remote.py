"""A trusted party on a server: the questions of ``TrustedParty``, over HTTP.

    POST /v1/query ─ 200 ─▶ Answer
                   ─ 202 ─▶ GET /v1/questions/ID, again and again ─▶ Answer

Every question carries an idempotency key, so that a retry after a lost connection is charged once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote as quoted

from idios.client.error_mapping import NOT_IDIOS, ServerError
from idios.codec import from_json, shorten
from idios.core.exact import Number, exact, positive, text
from idios.display import Listing, pairs_html
from idios.errors import AnswerFailed, InvalidInput
from idios.model import (
    Answer,
    AnswerPage,
    Balance,
    BalanceList,
    DatasetFacts,
    DatasetList,
    Holder,
    QuestionProgress,
    Quote,
    ReleasedAnswer,
)
from idios.reports.report import Asker, ReportPlan, plan_report
from idios.reports.totals import Payer

if TYPE_CHECKING:
    from idios.client.transport import HttpCall, Reply, Transport

Split = Mapping[str, Number] | None
Progress = Callable[[str | None, float | None], None]
"""Called with the name of the step that a question is at and the share of the work done; None where not known."""

PAGE = 100
LONGEST_WAIT = 60
FIRST_LOOK, LAST_LOOK, SHORTEST_LOOK = 0.5, 5.0, 0.1
"""Seconds between two polls of a running question: at first, at last, and at least, whatever the server asks for."""

T = TypeVar("T")


class RemoteParty:
    """A connection to an Idios server; ``idios.connect`` makes it.

    >>> party
    <RemoteParty http://127.0.0.1:8000 as ada (analyst)>
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.me: Holder = self._read(Holder, self._get("/v1/me"))

    def __repr__(self) -> str:
        return f"<RemoteParty {self._transport.address} as {self.me.name} ({self.me.role})>"

    def _repr_html_(self) -> str:
        """The same for a notebook; nothing is asked of the server."""
        pairs = [("server", self._transport.address), ("you are", f"{self.me.name} ({self.me.role})")]
        return pairs_html([*pairs, ("to see", "party.datasets(), party.budget()")])

    def __enter__(self) -> RemoteParty:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; ``with`` does so at its end.

        >>> party.close()
        """
        self._transport.close()

    def datasets(self) -> Listing[DatasetFacts]:
        """The data sets that may be asked about, with everything that is public of them.

        >>> print(party.datasets())
        data set  version  level         least ε  columns
        people    1        differential  0.05     age, income, region
        >>> print(party.datasets()[0].columns[0].domain)
        0 to 120
        """
        return self._read(DatasetList, self._get("/v1/datasets")).listing()

    def budget(self) -> Listing[Balance]:
        """What may be spent, is spent and is left, for each data set.

        >>> print(party.budget())
        data set  analyst  budget ε  spent ε  remaining ε  remaining δ  promise
        people    ada      4         0        4            0            differential, replace
        """
        return self._read(BalanceList, self._get("/v1/budget")).listing()

    def quote(
        self,
        sql: str,
        epsilon: Number,
        split: Split = None,
        *,
        check: Number | None = None,
        then_check: Number | None = None,
    ) -> Quote:
        """Say what a question, or ``check`` of its answer for ``then_check``, would cost and promise; free.

        >>> print(party.quote("SELECT MEDIAN(income) FROM people", epsilon=0.5).after)
        ε = 3.5: about 7 more like this one
        """
        call = self._call("/v1/quote", sql, epsilon, split, check=check, then_check=then_check)
        return self._read(Quote, self._transport.send(call).content)

    def query(
        self,
        sql: str,
        epsilon: Number,
        split: Split = None,
        wait: Number | None = None,
        progress: Progress | None = None,
        *,
        check: Number | None = None,
    ) -> Answer:
        """Answer a question for ``epsilon``; an interrupt from the keyboard stops it, and it stays charged.

        ``wait`` is how many seconds, up to 60, the server holds the request before the client polls instead. ``check``
        is the share of ε that tells how many records off an answer is, 0 for none; as declared unless given.

        >>> answer = party.query("SELECT region, COUNT(*) FROM people GROUP BY region", epsilon=0.5)
        >>> [row["region"] for row in answer.rows], answer.left
        (['north', 'south'], 'ε = 3.5')
        """
        call = self._call("/v1/query", sql, epsilon, split, wait, check=check)
        return self._ask(replace(call, key=secrets.token_hex(16)), progress)

    def check(
        self,
        sql: str,
        epsilon: Number,
        *,
        with_epsilon: Number,
        split: Split = None,
        wait: Number | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Tell, for ``with_epsilon`` more, how many records off the stored answer to a question without a check is.

        >>> answer = party.query("SELECT MEDIAN(income) FROM people", epsilon=2, check=0)
        >>> checked = party.check("SELECT MEDIAN(income) FROM people", epsilon=2, with_epsilon=0.5)
        >>> checked.value == answer.value
        True
        """
        call = self._call("/v1/query", sql, epsilon, split, wait, then_check=with_epsilon)
        return self._ask(replace(call, key=secrets.token_hex(16)), progress)

    def plan(self, questions: Mapping[str, str], epsilon: Number, split: Split = None) -> ReportPlan:
        """Plan questions by name as one report for ``epsilon`` of each data set, and quote it; nothing is charged.

        ``split`` gives proportions by the names of the questions. ``ask`` of the result spends, question by question.

        >>> plan = party.plan({"all": "SELECT COUNT(*) FROM people WHERE age > 40"}, epsilon=0.5)
        >>> plan.ask().complete
        True
        """
        own = Payer(lambda dataset: next(b for b in self.budget() if b.dataset == dataset), self.quote)
        asker = Asker(self.query, identify=lambda sql, share: (sql.strip(), share), payers=(own,))
        return plan_report(asker, questions, epsilon, split)

    def sandbox(self, sql: str, epsilon: Number, split: Split = None, *, check: Number | None = None) -> Answer:
        """Answer a question about invented data of the same form; free, to try things out.

        >>> party.sandbox("SELECT MEDIAN(income) FROM people", epsilon=0.5).cost
        'free, invented data'
        """
        answer = self._ask(self._call("/v1/sandbox", sql, epsilon, split, check=check), None)
        return replace(answer, sandbox=True)

    def answers(self, dataset: str | None = None) -> Iterator[ReleasedAnswer]:
        """The answers released to you so far, newest first; pages are fetched as they are needed.

        >>> _ = party.query("SELECT COUNT(*) FROM people WHERE age > 40", epsilon=0.5)
        >>> [str(answer.epsilon) for answer in party.answers("people")]
        ['1/2']
        """
        params = {"limit": str(PAGE)} if dataset is None else {"limit": str(PAGE), "dataset": dataset}
        before: int | None = None
        while True:
            content = self._get("/v1/answers", params if before is None else {**params, "before": str(before)})
            page = self._read(AnswerPage, content)
            yield from page.answers
            if page.next is None:
                return
            if before is not None and page.next >= before:
                raise ServerError(f"the server lists the same answers again and again; {NOT_IDIOS}")
            before = page.next

    # The way of a question.

    def _call(
        self,
        path: str,
        sql: str,
        epsilon: Number,
        split: Split,
        wait: Number | None = None,
        *,
        check: Number | None = None,
        then_check: Number | None = None,
    ) -> HttpCall:
        """A question as the server reads it; what can be refused here is not sent."""
        if not isinstance(sql, str):
            raise InvalidInput(f"the question must be a text, got {shorten(sql)}")
        if split is not None and not isinstance(split, Mapping):
            raise InvalidInput('split must name the statistics, for example {"MEDIAN(income)": 2, "COUNT(*)": 1}')
        amount = positive(epsilon, "epsilon")
        parts = (
            None if split is None else {name: text(positive(part, "a part of split")) for name, part in split.items()}
        )
        body: dict[str, Any] = {"sql": sql, "epsilon": text(amount), "split": parts}
        if check is not None:
            body["check"] = text(exact(check, "check"))
        if then_check is not None:
            body["then_check"] = text(positive(then_check, "with_epsilon"))
        if wait is not None:
            seconds = exact(wait, "wait")
            if not 0 <= seconds <= LONGEST_WAIT:
                raise InvalidInput(f"wait must be between 0 and {LONGEST_WAIT} seconds, got {wait}")
            body["wait"] = int(seconds) if seconds.denominator == 1 else float(seconds)
        return self._transport.prepare("POST", path, body=body, sql=sql, epsilon=amount)

    def _ask(self, call: HttpCall, progress: Progress | None) -> Answer:
        for attempt in (1, 2):
            reply = self._transport.send(call)
            if reply.status != 202:
                return self._read(Answer, reply.content)
            try:
                return self._follow(call, reply, progress)
            except ServerError as error:
                # The server lost the id, perhaps by a restart: the same question with the same key finds it.
                if error.status != 404 or attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def _follow(self, call: HttpCall, reply: Reply, progress: Progress | None) -> Answer:
        """The answer to a question that takes longer."""
        question = self._read(QuestionProgress, reply.content)
        path = f"/v1/questions/{quoted(question.id, safe='')}"
        look = replace(call, method="GET", path=path, body=None, key=None)
        pause = FIRST_LOOK
        try:
            while question.state == "running":
                if progress is not None:
                    progress(question.step, question.share)
                seconds = pause if reply.retry_after is None else max(SHORTEST_LOOK, reply.retry_after)
                if self._transport.clock() + seconds >= call.deadline:
                    raise ServerError(
                        "the question is still running and the time limit of this connection is over; ask the same "
                        "question again to get its answer: it costs nothing more. idios.connect takes a longer timeout"
                    )
                self._transport.sleep(seconds)
                pause = min(LAST_LOOK, 1.5 * pause)
                reply = self._transport.send(look)
                question = self._read(QuestionProgress, reply.content)
        except KeyboardInterrupt:
            self._transport.send_once(
                replace(look, method="DELETE", deadline=self._transport.clock() + FIRST_LOOK * 10)
            )
            raise
        if question.state == "answered":
            return question.answer or self._read(Answer, None)  # which refuses it
        if question.error is not None:
            raise self._transport.refused(200, _error_of(question.error), call)
        raise AnswerFailed

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        return self._transport.send(self._transport.prepare("GET", path, params=params)).content

    def _read(self, kind: type[T], content: Any) -> T:
        """What the server sent, read; a server that sends something else is not an Idios server."""
        try:
            return from_json(kind, content, "the reply")
        except InvalidInput as error:
            reason = self._transport.clean(str(error))
            raise ServerError(
                f"{self._transport.address} sent something else than was asked for ({reason}); {NOT_IDIOS}, and that "
                "it and this package are of the same version"
            ) from None


def _error_of(error: Mapping[str, Any]) -> Mapping[str, Any]:
    """An error object as a reply of its own would carry it."""
    return error if "error" in error else {"error": error}

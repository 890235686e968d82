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

from idios.answer import Answer, Quote
from idios.client.calls import Call, Reply
from idios.client.facts import (
    Account,
    DatasetFacts,
    Identity,
    Listing,
    ReleasedAnswer,
    accounts_listing,
    datasets_listing,
)
from idios.client.refusals import NOT_IDIOS, ServerError
from idios.core.exact import Number, exact, positive, text
from idios.errors import AnswerFailed, InvalidInput
from idios.exchange import Fields, shorten

if TYPE_CHECKING:
    from idios.client.wire import Wire

Split = Mapping[str, Number] | None
Progress = Callable[[str | None, float | None], None]
"""Called with the name of the step that a question is at and the share of the work done; None where not known."""

PAGE = 100
LONGEST_WAIT = 60
FIRST_LOOK, LAST_LOOK, SHORTEST_LOOK = 0.5, 5.0, 0.1
"""Seconds between two polls of a running question: at first, at last, and at least, whatever the server asks for."""

T = TypeVar("T")


class RemoteParty:
    """A connection to an Idios server; ``idios.connect`` makes it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.me: Identity = self._read(self._get("/v1/me"), Identity.read)

    def __repr__(self) -> str:
        return f"<RemoteParty {self._wire.address} as {self.me.name} ({self.me.role})>"

    def __enter__(self) -> RemoteParty:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def datasets(self) -> Listing[DatasetFacts]:
        """The data sets that may be asked about, with everything that is public of them."""
        return self._read(self._get("/v1/datasets"), datasets_listing)

    def budget(self) -> Listing[Account]:
        """What may be spent, is spent and is left, for each data set."""
        return self._read(self._get("/v1/budget"), accounts_listing)

    def quote(self, sql: str, epsilon: Number, split: Split = None) -> Quote:
        """Say what a question would cost and promise; nothing is charged."""
        reply = self._wire.send(self._call("/v1/quote", sql, epsilon, split))
        return self._read(reply.content, lambda given: Quote.from_dict(given.content))

    def query(
        self,
        sql: str,
        epsilon: Number,
        split: Split = None,
        wait: Number | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Answer a question for ``epsilon``; an interrupt from the keyboard stops it, and it stays charged.

        ``wait`` is how many seconds, up to 60, the server holds the request before the client polls instead.
        """
        call = self._call("/v1/query", sql, epsilon, split, wait)
        return self._answered(replace(call, key=secrets.token_hex(16)), progress)

    def sandbox(self, sql: str, epsilon: Number, split: Split = None) -> Answer:
        """Answer a question about invented data of the same form; free, to try things out."""
        answer = self._answered(self._call("/v1/sandbox", sql, epsilon, split), None)
        return replace(answer, sandbox=True)

    def answers(self, dataset: str | None = None) -> Iterator[ReleasedAnswer]:
        """The answers released to you so far, newest first; pages are fetched as they are needed."""
        params = {"limit": str(PAGE)} if dataset is None else {"limit": str(PAGE), "dataset": dataset}
        before: int | None = None
        while True:
            content = self._get("/v1/answers", params if before is None else {**params, "before": str(before)})
            page = self._read(content, lambda given: [ReleasedAnswer.read(one) for one in given.objects("answers")])
            yield from page
            following = self._read(content, lambda given: given.whole("next") if "next" in given else None)
            if following is None:
                return
            if before is not None and following >= before:
                raise ServerError(f"the server lists the same answers again and again; {NOT_IDIOS}")
            before = following

    # The way of a question.

    def _call(self, path: str, sql: str, epsilon: Number, split: Split, wait: Number | None = None) -> Call:
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
        if wait is not None:
            seconds = exact(wait, "wait")
            if not 0 <= seconds <= LONGEST_WAIT:
                raise InvalidInput(f"wait must be between 0 and {LONGEST_WAIT} seconds, got {wait}")
            body["wait"] = int(seconds) if seconds.denominator == 1 else float(seconds)
        return Call("POST", path, self._wire.deadline(), body=body, sql=sql, epsilon=amount)

    def _answered(self, call: Call, progress: Progress | None) -> Answer:
        content = None
        for attempt in (1, 2):
            reply = self._wire.send(call)
            if reply.status != 202:
                content = reply.content
                break
            try:
                content = self._followed(call, reply, progress)
                break
            except ServerError as error:
                # The server lost the id, perhaps by a restart: the same question with the same key finds it.
                if error.status != 404 or attempt == 2:
                    raise
        return self._read(content, lambda given: Answer.from_dict(given.content))

    def _followed(self, call: Call, reply: Reply, progress: Progress | None) -> Any:
        """The content of the answer to a question that takes longer."""
        name = self._read(reply.content, lambda given: given.text("id"))
        look = replace(call, method="GET", path=f"/v1/questions/{quoted(name, safe='')}", body=None, key=None)
        pause = FIRST_LOOK
        try:
            while True:
                content = reply.content
                state = self._read(content, lambda given: given.text("state"))
                if state != "running":
                    break
                if progress is not None:
                    progress(*self._read(content, _progress))
                seconds = pause if reply.retry_after is None else max(SHORTEST_LOOK, reply.retry_after)
                if self._wire.clock() + seconds >= call.deadline:
                    raise ServerError(
                        "the question is still running and the time limit of this connection is over; ask the same "
                        "question again to get its answer: it costs nothing more. idios.connect takes a longer timeout"
                    )
                self._wire.sleep(seconds)
                pause = min(LAST_LOOK, 1.5 * pause)
                reply = self._wire.send(look)
        except KeyboardInterrupt:
            self._wire.send_once(replace(look, method="DELETE", deadline=self._wire.clock() + FIRST_LOOK * 10))
            raise
        if state == "answered":
            return content.get("answer")
        if content.get("error") is not None:
            raise self._wire.refused(200, _error_of(content["error"]), call)
        raise AnswerFailed

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        return self._wire.send(Call("GET", path, self._wire.deadline(), params=params)).content

    def _read(self, content: Any, read: Callable[[Fields], T]) -> T:
        """What the server sent, read; a server that sends something else is not an Idios server."""
        try:
            return read(Fields(content, "the reply"))
        except InvalidInput as error:
            found = self._wire.clean(str(error))
            raise ServerError(
                f"{self._wire.address} sent something else than was asked for ({found}); {NOT_IDIOS}, and that it and "
                "this package are of the same version"
            ) from None


def _progress(given: Fields) -> tuple[str | None, float | None]:
    share = given.content.get("share")
    step = given.text("step") if "step" in given else None
    return step, float(share) if isinstance(share, int | float) else None


def _error_of(error: Any) -> Any:
    """An error object as a reply of its own would carry it."""
    return error if isinstance(error, dict) and "error" in error else {"error": error}

"""Released answers as they are published by the controller: one JSON object for an answer, one CSV line for a value.

What was asked is told from its normal form, in words and as calls in SQL: the ledger holds no analyst's own words.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from idios.codec import to_json
from idios.core.exact import text
from idios.display import name_interval
from idios.ledger import StoredAnswer
from idios.plan.question_words import describe_question, describe_statistics, name_statistics

EXPORTED = (
    *("id", "time", "dataset", "version", "group", "statistic", "value", "epsilon", "delta", "rho", "guarantee"),
    *("clipped_low", "clipped_high", "question", "low", "high", "interval", "check", "entry"),
)
"""The columns of the CSV."""


def format_json(answers: Sequence[StoredAnswer]) -> str:
    """One object for every answer."""
    content = [
        {
            "id": answer.id,
            "time": answer.time,
            "sequence": answer.sequence,
            "question": describe_question(answer.question),
            "epsilon": text(answer.epsilon),
            "delta": text(answer.delta),
            "rho": text(answer.rho),
            **to_json(replace(answer.table, statistics=name_statistics(answer.question))),
            "interval": [answer.table.name_interval(i) for i in range(len(answer.table.statistics))],
        }
        for answer in answers
    ]
    return json.dumps(content, ensure_ascii=False, indent=2)


def format_csv(answers: Sequence[StoredAnswer]) -> str:
    """One line for every released value."""
    target = io.StringIO()
    lines = csv.DictWriter(target, EXPORTED, lineterminator="\n")
    lines.writeheader()
    for answer in answers:
        lines.writerows(_list_values(answer))
    return target.getvalue().rstrip("\n")


def _list_values(answer: StoredAnswer) -> Iterator[dict[str, object]]:
    """Every released value with all that is published of it; a check is the noisy number of records too high."""
    table = answer.table
    nothing = ((None,) * len(table.statistics),) * len(table.cells)
    described = list(zip(name_statistics(answer.question), describe_statistics(answer.question), strict=True))
    extra = (table.clipped or nothing, table.intervals or nothing, table.checks or nothing)
    for group, *rows in zip(table.groups, table.cells, *extra, strict=True):
        for (statistic, question), value, limits, interval, check in zip(described, *rows, strict=True):
            yield {
                "id": answer.id,
                "time": answer.time,
                "dataset": answer.dataset,
                "version": answer.version,
                "group": "; ".join(f"{key} = {name}" for key, name in group.items()),
                "statistic": statistic,
                "value": value,
                "epsilon": text(answer.epsilon),
                "delta": text(answer.delta),
                "rho": text(answer.rho),
                "guarantee": table.guarantee,
                **dict(zip(("clipped_low", "clipped_high"), map(text, limits or ()), strict=False)),
                "question": question,
                **dict(zip(("low", "high"), interval or (), strict=False)),
                "interval": None if interval is None else name_interval(clipped=limits is not None),
                "check": None if check is None else (abs(check) + 1) // 2 * (1 if check > 0 else -1),
                "entry": answer.sequence,
            }

"""Tumult Analytics on Spark: medians, extremes and means of bounded data; each session answers one question."""

from __future__ import annotations

from collections.abc import Callable


def questions(values: list[float], low: float, high: float, epsilon: float) -> dict[str, Callable[[], float]]:
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, PureDPBudget, QueryBuilder, Session

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.createDataFrame(pd.DataFrame({"x": values}))

    def ask(statistic: str) -> float:
        budget = PureDPBudget(epsilon)
        session = Session.from_dataframe(budget, "t", frame, protected_change=AddOneRow())
        query = getattr(QueryBuilder("t"), statistic)("x", low, high)
        return float(session.evaluate(query, budget).collect()[0][0])

    return {
        "median": lambda: ask("median"),
        "maximum": lambda: ask("max"),
        "mean": lambda: ask("average"),
    }

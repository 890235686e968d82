"""SmartNoise SQL: bounded means; it has no private quantile."""

from __future__ import annotations

from collections.abc import Callable


def questions(values: list[float], low: float, high: float, epsilon: float) -> dict[str, Callable[[], float]]:
    import pandas as pd
    import snsql

    frame = pd.DataFrame({"person": range(len(values)), "x": values})
    column = {"type": "float", "lower": low, "upper": high}
    table = {"row_privacy": True, "rows": len(values), "x": column, "person": {"type": "int"}}
    privacy = snsql.Privacy(epsilon=epsilon, delta=1e-6)
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"public": {"t": table}}})
    return {"mean": lambda: float(reader.execute("SELECT AVG(x) AS a FROM public.t")[1][0])}

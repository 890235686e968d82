"""How time and memory grow with rows: one column of a Parquet file, asked about in a process of its own.

Times are those of whole questions, charge included. The exponent is the slope of a line through the logarithms of rows
and of median times, by least squares; its spread is that of the same slope over the first, second, … repetitions.
Memory is the most that the process ever had (the kernel's VmHWM), Python, its libraries and DuckDB's buffers included.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import linear_regression, median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from bench.figures import FOLDER, Figure, Settings, write_time

TITLE = "Growth and memory"
ABOUT = """\
Floats in a Parquet file, each question in a process of its own. The exponent is the slope of a line
through the logarithms of rows and of median times, by least squares. Memory is the most that the whole process had at
the greatest size, with Python, its libraries and DuckDB. Groups are bounded by `max_groups` of the data set, beyond
which a question is refused before anything is read."""
BATCH = 10**6
EXPONENT, MEBIBYTES = 1.05, 1024
STEPS = (10**6, 10**7)
LARGEST = 10**8


@dataclass(frozen=True)
class Asked:
    """A question, its level, whether its column has bounds, and whether a quick run asks it."""

    statistic: str
    bounds: bool = False
    level: str = "individual"
    quick: bool = False

    def __str__(self) -> str:
        told = [f"`{self.statistic}`", *["with bounds"] * self.bounds]
        return ", ".join([*told, *[self.level] * (self.level != "individual")])


QUESTIONS = (
    Asked("MEDIAN(x)", quick=True),
    Asked("MEDIAN(x)", level="differential"),
    Asked("QUANTILE(x, 0.9)"),
    Asked("KTH_LARGEST(x, 2)"),
    Asked("COUNT(*) WHERE x > 30000"),
    Asked("AVG(x)", bounds=True, quick=True),
    Asked("AVG(x)", quick=True),
    Asked("SUM(x)", bounds=True),
    Asked("SUM(x)"),
    Asked("VARIANCE(x)", bounds=True),
    Asked("VARIANCE(x)"),
)


def choose_sizes(settings: Settings) -> tuple[int, ...]:
    return (10**5, 10**6) if settings.quick else (*STEPS, *[LARGEST] * settings.growth)


def describe(settings: Settings) -> str:
    """How much is read."""
    return " and ".join(f"{rows:,}" for rows in choose_sizes(settings)) + f" rows, {settings.turns}"


def measure(settings: Settings) -> Iterator[Figure]:
    """The exponent and the greatest memory of every question."""
    paths = {rows: generate(rows) for rows in choose_sizes(settings)}
    for asked in QUESTIONS:
        if not settings.wants(str(asked)) or (settings.quick and not asked.quick):
            continue
        found = {rows: ask_apart(asked, path, settings.repetitions) for rows, path in paths.items()}
        yield from describe_growth(asked, found)


@dataclass(frozen=True)
class Found:
    """The seconds of each repetition, and the most memory of the process in MiB."""

    seconds: list[float]
    memory: float


def describe_growth(asked: Asked, found: dict[int, Found]) -> Iterator[Figure]:
    """Two figures: how time grows, and memory at the greatest size."""
    sizes, largest = list(found), found[max(found)]
    slopes = [fit_exponent(sizes, times) for times in zip(*(each.seconds for each in found.values()), strict=True)]
    exponent = fit_exponent(sizes, [median(each.seconds) for each in found.values()])
    ours = ", ".join(write_time(median(each.seconds)) for each in found.values())
    across = ", ".join(f"{rows:.0e}".replace("e+0", "e") for rows in sizes)
    yield Figure(f"{asked}: exponent", exponent, min(slopes), max(slopes), EXPONENT, ours=ours, beside=f"{across} rows")
    memories = [each.memory for each in found.values()]
    yield Figure(
        f"{asked}: memory",
        largest.memory,
        min(memories),
        max(memories),
        MEBIBYTES,
        unit="MiB",
        ours=", ".join(f"{memory:.0f} MiB" for memory in memories),
        beside=f"{across} rows",
    )


def fit_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of log seconds over log rows, by least squares."""
    return linear_regression(np.log(sizes).tolist(), np.log(seconds).tolist()).slope


def generate(rows: int) -> Path:
    """The file, made once: lognormal floats below 10⁶, and zeros.

    No question names the zeros. With them 10⁶ rows are read from the file too, instead of being kept in memory.
    """
    path = FOLDER / f"growth-{rows}.parquet"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        rng, unfinished = np.random.default_rng(7), path.with_suffix(".unfinished")
        with parquet.ParquetWriter(unfinished, pa.schema({"x": pa.float64(), "zero": pa.int64()})) as writer:
            for start in range(0, rows, BATCH):
                values = np.minimum(rng.lognormal(10, 1, min(BATCH, rows - start)), 10**6)
                writer.write_table(
                    pa.table({"x": values, "zero": np.zeros(len(values), np.int64)}), row_group_size=2**17
                )
        unfinished.rename(path)
    return path


def ask_apart(asked: Asked, path: Path, repetitions: int) -> Found:
    """Ask in a process of its own, whose memory is then that of this question."""
    given = json.dumps([str(path), asked.statistic, asked.bounds, asked.level, repetitions])
    done = subprocess.run(
        [sys.executable, "-m", "bench.growth", given],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    seconds, memory = json.loads(done.stdout)
    return Found(seconds, memory)


def ask(path: str, statistic: str, bounds: bool, level: str, repetitions: int) -> tuple[list[float], float]:
    """Open the file and ask, once to warm up; the seconds of each turn, and the most memory."""
    from idios.party import TrustedParty

    number = {"type": "number", "nullable": False, **({"bounds": [0, 10**6]} if bounds else {})}
    columns = {"x": number, "zero": {"type": "integer", "nullable": False}}
    selected, _, condition = statistic.partition(" WHERE ")
    text = f"SELECT {selected} FROM t" + (f" WHERE {condition}" if condition else "")
    seconds = []
    with TrustedParty.open(
        path, name="t", columns=columns, protection=level, budget=10**9, min_epsilon=Fraction(1, 10**9), check=0
    ) as party:
        for turn in range(repetitions + 1):
            began = time.perf_counter()
            party.query(text, 1 + Fraction(turn + 1, 10**6))
            seconds.append(time.perf_counter() - began)
    return seconds[1:], read_peak_memory()


def read_peak_memory() -> float:
    """The most memory this process ever had, in MiB; ``ru_maxrss`` would begin with that of its parent on Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        # bytes on macOS, which has no such file
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    [line] = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    print(json.dumps(ask(*json.loads(sys.argv[1]))))

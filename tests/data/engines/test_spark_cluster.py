"""A data set on a real cluster: a server that its file alone takes there, a worker that dies, and Spark Connect."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.config import read_configuration
from idios.core.domain import Kind
from idios.data.backend import CancellationToken, describe_source
from idios.errors import AnswerFailed, DataChanged, SourceError, SourceUnavailable
from idios.ledger import Ledger
from idios.model import Answer
from idios.party import TrustedParty
from tests.services.postgresql import free_port
from tests.services.serving import Serving
from tests.services.spark import SHORT_LIVED
from tests.services.spark_cluster import ConnectServer, StandaloneCluster
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-cluster"),  # one cluster, not one in every process
    # pyspark leaves channels and sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning"),
]

FILES, ROWS = 24, 5_000
COLUMNS = {"age": {"type": "integer", "bounds": [0, 120]}, "year": {"type": "integer", "bounds": [2000, 2100]}}
PATIENCE = 240.0
"""Seconds that Java may take for anything on a busy machine."""


def write_people(folder: Path) -> None:
    """Ages 0 to 99 in every file, as often as each other: the median is between 49 and 50."""
    below = folder / "people" / "year=2024"
    below.mkdir(parents=True)
    for i in range(FILES):
        pq.write_table(pa.table({"age": np.arange(ROWS, dtype=np.int64) % 100}), below / f"part [{i}].parquet")


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    started = StandaloneCluster()
    yield started
    started.close()


@pytest.fixture(scope="module")
def connect() -> Iterator[ConnectServer]:
    started = ConnectServer()
    yield started
    started.close()
    gc.collect()


TOML = """
[server]
wait_seconds = 240

[spark]
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.driver.memory" = "512m"
"spark.executor.memory" = "512m"
"spark.driver.extraJavaOptions" = "{java}"
"spark.executor.extraJavaOptions" = "{java}"
"spark.ui.enabled" = true
"spark.ui.port" = {port}
"spark.sql.files.maxPartitionBytes" = 100000
"spark.sql.files.openCostInBytes" = 100000

[datasets.people]
source = "{url}?path={folder}/people"
protection = "differential"
budget = 100
release_seconds = 0

[datasets.people.columns]
age = {{ type = "integer", bounds = [0, 120] }}
year = {{ type = "integer", bounds = [2000, 2100] }}

[datasets.everyone]
source = '{url}?table=parquet."{folder}/people"'
protection = "differential"
budget = 100
release_seconds = 0

[datasets.everyone.columns]
age = {{ type = "integer", bounds = [0, 120] }}
"""


def test_a_server_answers_from_a_cluster_and_outlives_a_worker(cluster: StandaloneCluster, tmp_path: Path) -> None:
    write_people(tmp_path)
    config, port = tmp_path / "idios.toml", free_port()
    config.write_text(TOML.format(url=cluster.url, folder=tmp_path, port=port, java=SHORT_LIVED))
    local = {"SPARK_LOCAL_IP": "127.0.0.1"}
    with Serving(config, environment=local) as serving:
        serving.wait(PATIENCE)
        configuration = read_configuration(config)
        with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
            ledger.add_analyst("ada")
            for name in ("people", "everyone"):
                ledger.grant("ada", name, epsilon=None)
            headers = {"Authorization": f"Bearer {ledger.issue_token('ada').secret}"}

        def ask(sql: str) -> Any:
            asked = {"sql": sql, "epsilon": "1"}
            return httpx2.post(f"{serving.url}/v1/query", json=asked, headers=headers, timeout=PATIENCE)

        first = ask("SELECT MEDIAN(age) FROM people WHERE year = 2024")
        assert first.status_code == 200, first.text
        assert 45 <= float(first.json()["rows"][0]["MEDIAN(age)"]) <= 55
        table = ask("SELECT MEDIAN(age) FROM everyone")
        assert table.status_code == 200, table.text
        assert 45 <= float(table.json()["rows"][0]["MEDIAN(age)"]) <= 55

        for bound in range(80, 85):  # until a question is caught in its midst
            answers: list[Any] = []
            sql = f"SELECT AVG(age), MEDIAN(age) FROM people WHERE age < {bound}"
            question = Thread(target=lambda sql=sql, answers=answers: answers.append(ask(sql)))
            question.start()
            caught = until(lambda answers=answers: "ended" if answers else has_running_stage(port), PATIENCE)
            if caught != "ended":
                cluster.workers[0].kill()
            question.join(PATIENCE)
            (reply,) = answers
            assert reply.status_code == 200, reply.text
            assert 38 <= float(reply.json()["rows"][0]["AVG(age)"]) <= 43
            if caught != "ended":
                break
        else:
            pytest.fail("no question took long enough to kill a worker meanwhile")
        assert serving.stop() == 0


def has_running_stage(port: int) -> bool:
    """Whether a stage of some tasks is in its midst, as the driver's own pages say."""
    api = f"http://127.0.0.1:{port}/api/v1/applications"
    (application,) = httpx2.get(api, timeout=30).json()
    stages = httpx2.get(f"{api}/{application['id']}/stages?status=active", timeout=30).json()
    return any(0 < stage["numCompleteTasks"] < stage["numTasks"] for stage in stages)


def test_spark_connect_reads_tables_and_pinned_folders(
    connect: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.connect.session import SparkSession

    from idios.data.engines import spark_cluster

    finalised: list[SparkSession] = []
    monkeypatch.setattr(SparkSession, "__del__", lambda self: finalised.append(self))  # the real one may wait for ever
    write_people(tmp_path)
    folder = tmp_path / "people"
    helper = SparkSession.builder.remote(connect.url).create()
    spark_cluster.CONNECTED.append(helper)
    helper.sql(f"CREATE TABLE people USING parquet LOCATION '{folder}/year=2024'").collect()
    helper.stop()
    table, path = f"{connect.url}?table=default.people", f"{connect.url}?path={folder}"
    assert describe_source(table) == [("age", Kind.INTEGER, 0)]
    assert describe_source(path) == [("age", Kind.INTEGER, 0), ("year", Kind.INTEGER, 0)]

    with TrustedParty.open(
        table, name="people", columns={"age": COLUMNS["age"]}, budget=10_000, protection="individual"
    ) as party:
        assert 48 <= ask_again(party, "SELECT MEDIAN(age) FROM people", 1000).rows[0]["MEDIAN(age)"] <= 51

    with TrustedParty.open(path, name="people", columns=COLUMNS, budget=10_000, protection="individual") as party:
        version = party.datasets["people"].dataset.version
        pq.write_table(pa.table({"age": [1]}), folder / "year=2024" / "later.parquet")
        (row,) = ask_again(party, "SELECT COUNT(*), MEDIAN(age) FROM people WHERE year = 2024", 1000).rows
        assert 48 <= row["MEDIAN(age)"] <= 51
        pq.write_table(pa.table({"age": [1]}), folder / "year=2024" / "part [0].parquet")
        spent = party.ledger.balance("people").epsilon.spent
        with pytest.raises(DataChanged):
            party.query("SELECT MAX(age) FROM people", 1)
        assert party.ledger.balance("people").epsilon.spent == spent

    with TrustedParty.open(path, name="people", columns=COLUMNS, budget=10, protection="individual") as party:
        assert party.datasets["people"].dataset.size == (FILES - 1) * ROWS + 2
        assert party.datasets["people"].dataset.version != version

    for wrong in (f"{connect.url}?table=nobody", f"{connect.url}?path={tmp_path}/nowhere"):
        with pytest.raises(SourceError):
            TrustedParty.open(wrong, name="people", columns=COLUMNS, budget=10, protection="individual")

    gc.collect()
    assert not finalised


def ask_again(party: TrustedParty, sql: str, epsilon: object) -> Answer:
    """Ask, and once more where a busy server failed: that costs nothing, as the failure says."""
    try:
        return party.query(sql, epsilon)
    except AnswerFailed:
        return party.query(sql, epsilon)


def test_a_connect_server_that_dies(connect: ConnectServer, tmp_path: Path) -> None:
    write_people(tmp_path)
    source = f"{connect.url}?path={tmp_path}/people"
    with TrustedParty.open(source, name="people", columns=COLUMNS, budget=10, protection="individual") as party:

        def die(step: str, share: float) -> None:
            if step == "scanning":
                connect.process.kill()

        with pytest.raises(AnswerFailed):
            party.query("SELECT MEDIAN(age) FROM people", 1, cancellation=CancellationToken(die))
        spent = party.ledger.balance("people").epsilon.spent
        with pytest.raises(SourceUnavailable):
            party.query("SELECT AVG(age) FROM people", 1)
        assert party.ledger.balance("people").epsilon.spent == spent

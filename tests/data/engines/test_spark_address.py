"""Addresses of Spark are read strictly, and shown without their secrets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from idios.config import find_shared_sources, read_configuration
from idios.data.backend import describe_source
from idios.data.engines.spark_address import RESERVED, is_spark, read_address, read_session_settings
from idios.errors import ConfigurationError, InvalidInput, SourceError, SourceUnavailable
from tests.services import require_package
from tests.services.postgresql import free_port


def test_every_form_of_an_address() -> None:
    expected = {
        "spark://m:7077?table=people": ("spark", "spark://m:7077", "people", ""),
        "spark://m?path=/data/people": ("spark", "spark://m:7077", "", "/data/people"),
        "spark://a,b:1?path=s3a://c/d": ("spark", "spark://a:7077,b:1", "", "s3a://c/d"),
        "spark:local?table=a": ("local", "local", "a", ""),
        "spark:local[2]?path=file:/x/a+b%20%26": ("local", "local[2]", "", "file:/x/a+b &"),
        "spark:local[*,3]?table=a.b": ("local", "local[*,3]", "a.b", ""),
        "sc://h?table=a": ("sc", "sc://h:15002", "a", ""),
        "sc://[::1]:1/;token=secret;use_ssl=true?table=a": ("sc", "sc://[::1]:1/;token=secret;use_ssl=true", "a", ""),
    }
    for written, parts in expected.items():
        address = read_address(written)
        assert address is not None
        assert (address.kind, address.url, address.table, address.path) == parts, written
        assert "secret" not in address.shown + repr(address), written


@pytest.mark.parametrize("source", ["spark:people", 'spark:a."b?c"', "spark:localities", "people.csv"])
def test_what_names_no_place_is_no_address(source: str) -> None:
    assert read_address(source) is None


def test_what_is_not_understood_is_refused_without_secrets() -> None:
    for written in (
        *("spark://m:7077", "spark://m:7077?", "spark://m?table=a&path=/b", "spark://m?table=", "spark://m?tabel=a"),
        *("spark://user:secret@m?table=a", "spark://m/folder?table=a", "spark://?table=a", "spark://m:123456?table=a"),
        *("spark:local[x]?table=a", "spark:local[0]?table=a", "spark://m?path=data/people", "sc://h/x?table=a"),
        *("sc://h,i?table=a", "sc://h:1/;token=secret", "spark://m?table=a&table=b&mode=secret"),
    ):
        with pytest.raises(SourceError) as raised:
            assert read_address(written) is None
        assert "secret" not in str(raised.value), written


def test_settings_have_the_names_of_spark() -> None:
    given = {"spark.a": True, "spark": {"b": {"c": 3, "d": "x"}, "e": False}}
    assert read_session_settings(given) == {
        "spark.a": "true",
        "spark.b.c": "3",
        "spark.b.d": "x",
        "spark.e": "false",
    }
    refused: list[Any] = [{"executor.memory": "1g"}, {"spark.a": 1.5}, {"spark.a": ["x"]}, "spark.a=1"]
    refused += [{f"{name}x": "1"} for name in RESERVED]
    for settings in refused:
        with pytest.raises(InvalidInput):
            read_session_settings(settings)


def test_settings_come_from_the_file(tmp_path: Path) -> None:
    config = tmp_path / "idios.toml"
    text = """
    [spark]
    "spark.executor.memory" = "8g"
    spark.cores.max = 16

    [datasets.people]
    source = "spark://m:7077?path=/data/people"
    budget = 1
    columns = { age = { type = "integer" } }
    """
    config.write_text(text)
    (people,) = read_configuration(config, {}).datasets.values()
    assert people.session_settings == {"spark.executor.memory": "8g", "spark.cores.max": "16"}
    assert "8g" not in repr(people)
    config.write_text(text.replace('"spark.executor.memory"', '"spark.master"'))
    with pytest.raises(ConfigurationError, match=r"spark\.master"):
        read_configuration(config, {})


def test_one_source_by_several_addresses(tmp_path: Path) -> None:
    same = {"a": "spark://m:7077?table=people", "b": "spark:default.People", "c": "spark:local?table=people"}
    others = {"d": "sc://h?table=people", "e": "sc://i?table=people", "f": "spark://m:7077?table=firms"}
    assert find_shared_sources(same | others) == [("a", "b", "c")]
    folder = {"a": f"spark://m?path={tmp_path}", "b": f"sc://h?path=file://{tmp_path}/", "c": str(tmp_path)}
    assert find_shared_sources(folder | {"d": "spark://m?path=s3a://x/y"}) == [("a", "b", "c")]
    assert find_shared_sources({"a": "spark://m?tabel=x", "b": "spark://m?tabel=x"}) == [("a", "b")]


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_cluster_that_is_away_is_an_error_at_once(scheme: str) -> None:
    require_package("pyspark", "spark")
    address = f"{scheme}://127.0.0.1:{free_port()}"
    began = time.monotonic()
    with pytest.raises(SourceUnavailable, match=f"cannot be reached at {address}"):
        describe_source(f"{address}?table=people")
    assert time.monotonic() - began < 20


def test_which_sources_are_of_spark() -> None:
    sources = [("session", "t"), "spark:t", "spark://m?table=t", "sc://h?table=t", "a.csv", "postgresql://h/d?table=t"]
    assert [is_spark(source) for source in sources] == [True] * 4 + [False] * 2

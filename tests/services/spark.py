"""A small Spark session in this machine, for the tests that need one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.services import choose_services, require_package, require_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for what runs some minutes: compiling more thoroughly takes longer than it saves."""


def java() -> str:
    """The path of Java, on which pyspark runs."""
    require_package("pyspark", "spark")
    home = os.environ.get("JAVA_HOME") if choose_services() != "none" else None
    return f"{home}/bin/java" if home else require_program("java")


def session() -> SparkSession:
    """Start Spark, or say what it lacks."""
    java()
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .appName("idios-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")  # the default of Spark 3
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )

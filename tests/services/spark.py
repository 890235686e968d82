"""A small Spark session in this machine, for the tests that need one."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for what runs some minutes: compiling more thoroughly takes longer than it saves."""


class NotInstalled(Exception):
    """Spark, or the Java that it runs on, is not on this machine."""


def session() -> SparkSession:
    """Start Spark, or say what it lacks."""
    if find_spec("pyspark") is None:
        raise NotInstalled("pyspark is not installed (it comes with idios[spark])")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise NotInstalled("there is no Java to run Spark on")
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

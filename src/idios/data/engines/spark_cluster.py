"""Sessions of Spark by their address: one for each in a process, started when it is needed and again when it is lost.

1. A process has one Java machine and one context in it, so one master; of Spark Connect it has as many as it likes.
2. All data sets at an address share its session, and the last one that is closed stops it, unless it ran before them.
3. Nothing waits for minutes: an address is tried before a session is started there, executors are waited for as long
   as ``spark.scheduler.maxRegisteredResourcesWaitingTime`` says, and Spark Connect repeats a call for ten seconds.
4. Shuffles have as many partitions as the cluster has cores, unless the configuration says otherwise: each question
   ends in a handful of records, for which Spark's 200 are mostly empty tasks.
"""

from __future__ import annotations

import re
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, cast

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from idios.data.engines.spark_address import DEFAULTS, MEANING, RESERVED, SparkAddress
from idios.errors import SourceError, SourceUnavailable

SECONDS_TO_CONNECT = 3.0
WAITING = "spark.scheduler.maxRegisteredResourcesWaitingTime"
PARTITIONS = "spark.sql.shuffle.partitions"
MOST_PARTITIONS = 2000

FrameMaker = Callable[[SparkSession], DataFrame]


class SparkPlace(ABC):
    """Where a data set's statements run."""

    shown: str

    @abstractmethod
    def session(self) -> SparkSession:
        """The session, which may be a new one; ``SourceUnavailable`` if there is none to be had."""

    @abstractmethod
    def check(self) -> None:
        """Raise ``SourceUnavailable`` if a statement could not run now; quick, and runs none."""

    @abstractmethod
    def release(self) -> None:
        """One data set fewer uses it."""

    def hold_view(self, name: str, make_frame: FrameMaker) -> None:
        """Give what a function makes a name in the session, and in every later one."""
        make_frame(self.session()).createOrReplaceTempView(name)

    def drop_view(self, name: str) -> None:
        """Forget a view, and what is kept of it."""
        drop_view(self.session(), name)

    @property
    def questions_at_once(self) -> int | None:
        """How many questions the scheduler can serve in turns; None for the usual number."""
        context = find_context(self.session())
        fair = context is None or context.getConf().get("spark.scheduler.mode", "FIFO") == "FAIR"
        return None if fair else 1

    def has_executors(self) -> bool:
        """Whether there is someone to run a statement, as far as that can be known."""
        context = find_context(self.session())
        return context is None or count_executors(context) > 0


class GivenSession(SparkPlace):
    """A session of the caller's, who started it and will stop it."""

    shown = "the given session"

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        fix_meaning(session)

    def session(self) -> SparkSession:
        """The caller's session."""
        self.check()
        return self._session

    def check(self) -> None:
        """A session that was stopped is not started again."""
        if is_stopped(self._session):
            raise SourceUnavailable("the Spark session was stopped: open the data set in a running one")

    def release(self) -> None:
        """Leave it open."""


class SparkCluster(SparkPlace):
    """The session at an address."""

    def __init__(self, address: SparkAddress, settings: Mapping[str, str]) -> None:
        self.address, self.settings = address, dict(settings)
        self.shown = address.shown
        self.users = 0
        self._lock = RLock()
        self._session: SparkSession | None = None
        self._is_ours = True
        self._views: dict[str, FrameMaker] = {}

    def session(self) -> SparkSession:
        """The session, started again if it was lost, with the same views."""
        with self._lock:
            if self._session is None or is_stopped(self._session):
                self._session = None
                started = self._connect() if self.address.connects else self._start()
                fix_meaning(started)
                for name, make_frame in self._views.items():
                    make_frame(started).createOrReplaceTempView(name)
                self._session = started
            self._fit_shuffles(self._session)
            return self._session

    def check(self) -> None:
        """Try the address, or the context that runs already, which needs its master no more but needs executors."""
        if self.address.connects:
            self._forget_unless_known()
        if not self.has_executors():
            raise SourceUnavailable(f"Spark at {self.shown} has no executor at the moment")

    def release(self) -> None:
        """Stop the session if no data set uses it any more."""
        with _CLUSTERS_LOCK:
            self.users -= 1
            if self.users:
                return
            _CLUSTERS.pop(self.address.url, None)
        with self._lock:
            if self._session is not None and self._is_ours and not (self.address.connects and self._is_away()):
                self._session.stop()
            self._session = None

    def hold_view(self, name: str, make_frame: FrameMaker) -> None:
        """Make a view, and remember how."""
        with self._lock:
            super().hold_view(name, make_frame)
            self._views[name] = make_frame

    def drop_view(self, name: str) -> None:
        """Forget a view; a session that is lost has none."""
        with self._lock:
            if not self._views.pop(name, None) or self._session is None:
                return
            if not is_stopped(self._session) and not (self.address.connects and self._is_away()):
                drop_view(self._session, name)

    def _is_away(self) -> bool:
        try:
            probe(self.address)
        except SourceUnavailable:
            return True
        return False

    def _forget_unless_known(self) -> None:
        """Forget a session that a server of Spark Connect does not know any more: it was started again since."""
        probe(self.address)
        with self._lock:
            try:
                if self._session is not None:
                    self._session.conf.get(PARTITIONS)
            except PySparkException:
                self._session = None

    def _start(self) -> SparkSession:
        probe(self.address)
        self._is_ours = True
        running = SparkContext._active_spark_context
        if running is not None and not is_stopped_context(running):
            self._is_ours = False
            if running.master != self.address.url:
                raise SourceError(
                    f"this process has a Spark session at {running.master} and cannot have another at {self.shown}: "
                    "keep all data sets at one master, or reach others by Spark Connect (sc://…)"
                )
        builder = SparkSession.builder.master(self.address.url)
        for name, value in (DEFAULTS | self.settings).items():
            builder = builder.config(name, value)
        try:
            session = builder.getOrCreate()
            self._wait_for_executors(session.sparkContext)
        except SourceError:
            raise
        except Exception as error:  # of Java, of the gateway to it, or a setting that Spark does not take
            raise SourceUnavailable(f"no Spark session could be started at {self.shown}") from error
        return session

    def _wait_for_executors(self, context: SparkContext) -> None:
        seconds = read_seconds(context.getConf().get(WAITING, DEFAULTS[WAITING]) or "")
        deadline = time.monotonic() + seconds
        while not count_executors(context):
            if time.monotonic() > deadline or is_stopped_context(context):
                context.stop()
                raise SourceUnavailable(
                    f"Spark at {self.shown} gave no executor within {seconds} seconds: it has no worker with free "
                    "cores and memory, or other applications hold them (spark.cores.max limits what each may take)"
                )
            time.sleep(0.1)

    def _connect(self) -> SparkSession:
        probe(self.address)
        try:
            from pyspark.sql.connect.session import SparkSession as ConnectSession
        except ImportError as error:
            raise SourceError(
                "Spark Connect needs packages that are not installed: pip install 'idios[spark-connect]'"
            ) from error
        try:
            session: Any = ConnectSession.builder.remote(self.address.url).create()
            CONNECTED.append(session)
            limit_retries(session)
            for name, value in self.settings.items():
                session.conf.set(name, value)
        except Exception as error:
            raise SourceUnavailable(
                f"no session of Spark Connect could be started at {self.shown}, or a setting of [spark] is not taken"
            ) from error
        return cast(SparkSession, session)

    def _fit_shuffles(self, session: SparkSession) -> None:
        context = find_context(session)
        if context is None or PARTITIONS in self.settings:
            return
        wanted = str(min(max(2, context.defaultParallelism), MOST_PARTITIONS))
        if session.conf.get(PARTITIONS) != wanted:
            session.conf.set(PARTITIONS, wanted)


CONNECTED: list[SparkSession] = []
"""All sessions of Spark Connect that were ever started, stopped or not: none is left to the garbage collector.

PySpark's finaliser of a session waits for a lock of all sessions. It may run in any thread, and so in one that another
session, which holds the lock, has just started and waits for: that never ends.
"""
_CLUSTERS: dict[str, SparkCluster] = {}
_CLUSTERS_LOCK = RLock()


def find_cluster(address: SparkAddress, settings: Mapping[str, str]) -> SparkCluster:
    """The one cluster of an address in this process, for one more data set."""
    with _CLUSTERS_LOCK:
        cluster = _CLUSTERS.setdefault(address.url, SparkCluster(address, settings))
        if cluster.settings != dict(settings):
            raise SourceError(
                f"the session at {address.shown} runs with other settings: give all its data sets the same"
            )
        cluster.users += 1
        return cluster


def probe(address: SparkAddress) -> None:
    """Raise unless one of the hosts takes a connection."""
    for host, port in address.hosts:
        try:
            socket.create_connection((host.strip("[]"), port), SECONDS_TO_CONNECT).close()
            return
        except OSError:
            continue
    if address.hosts:
        raise SourceUnavailable(f"Spark cannot be reached at {address.shown}")


def find_context(session: SparkSession) -> SparkContext | None:
    """The context of a session; Spark Connect has none."""
    try:
        return session.sparkContext
    except PySparkException:
        return None


def is_stopped(session: Any) -> bool:
    """Whether a session can run nothing any more."""
    context = find_context(session)
    return bool(session.is_stopped) if context is None else is_stopped_context(context)


def is_stopped_context(context: Any) -> bool:
    """Whether a context was stopped, by its owner or because its cluster gave it up."""
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:  # the Java machine is gone
        return True


def count_executors(context: Any) -> int:
    """How many executors there are; those that come when they are needed count as one."""
    if context.master.startswith("local") or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return 1
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # without the driver


def drop_view(session: SparkSession, name: str) -> None:
    """Take a view away, and what executors keep of it."""
    session.catalog.uncacheTable(name)
    session.catalog.dropTempView(name)


def fix_meaning(session: SparkSession) -> None:
    """Set all that says what is read and what a statement means, and take back what else of it was set."""
    for name, *_ in session.sql("SET").collect():
        if name.startswith(RESERVED) and name not in MEANING and session.conf.isModifiable(name):
            session.conf.unset(name)
    for name, value in MEANING.items():
        session.conf.set(name, value)


def limit_retries(session: Any) -> None:
    """Let a server that is gone be an error soon: Spark Connect would try for ten minutes."""
    from pyspark.sql.connect.client import retries

    if hasattr(session.client, "set_retry_policies"):  # from version 4 on
        policy = retries.DefaultPolicy(max_retries=5, backoff_multiplier=3.0, initial_backoff=100, max_backoff=5000)
        session.client.set_retry_policies([policy])


_UNITS = {"ms": 0.001, "s": 1, "": 1, "m": 60, "min": 60, "h": 3600}


def read_seconds(written: str) -> float:
    """A time as Spark writes it.

    >>> read_seconds("30s"), read_seconds("2min"), read_seconds("odd")
    (30.0, 120.0, 30.0)
    """
    match = re.fullmatch(r"([0-9]+)(ms|s|m|min|h|)", written.strip())
    return float(match[1]) * _UNITS[match[2]] if match else 30.0

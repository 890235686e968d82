"""A real server process: signals, workers, TLS, logs, the environment."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

import idios
from idios.config import Settings, read_configuration
from idios.errors import ConfigurationError
from idios.ledger import Ledger
from idios.party import TrustedParty
from idios.server.startup import check_address, list_address_risks
from tests.server.office import MEDIAN, let_in, write_office
from tests.services import require_program
from tests.services.serving import Serving
from tests.waiting import until


def prepared(folder: Path, **options: str) -> tuple[Path, dict[str, str]]:
    config = write_office(folder, **options)
    with TrustedParty.from_config(config) as party:
        tokens = let_in(party.ledger)
    return config, {"Authorization": f"Bearer {tokens.ada}", "X-Grace": tokens.grace}


def test_logs_have_no_literals_and_no_answers(tmp_path: Path) -> None:
    config, headers = prepared(tmp_path)
    with Serving(config).wait() as serving:
        asked = {"sql": "SELECT MEDIAN(age) FROM people WHERE income < 918273645", "epsilon": "0.5"}
        answer = httpx2.post(f"{serving.url}/v1/query", json=asked, headers=headers).json()
        httpx2.post(f"{serving.url}/v1/query", json={"sql": "SELECT 424242", "epsilon": "1"}, headers=headers)
        httpx2.get(f"{serving.url}/v1/answers?dataset=people", headers=headers)
        httpx2.get(f"{serving.url}/secret-path-of-somebody", headers=headers)
        assert serving.stop() == 0
    text = serving.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["event"] == "request"]
    assert {line["route"] for line in requests} >= {"/v1/query", "/v1/answers", "unknown"}
    assert {line["caller"] for line in requests if line["route"] == "/v1/query"} == {"analyst:ada"}
    (value,) = answer["rows"][0].values()
    logged = " ".join(str(line[key]) for line in lines for key in line if key not in NUMBERS)
    # Before the first question stand a port and a digest, in which any short number can be found.
    asking = str([{key: line[key] for key in line if key not in NUMBERS} for line in lines[lines.index(requests[0]) :]])
    assert value not in re.sub(r"\[\d+\]|v1", "", asking)
    for secret in (
        "918273645",
        "424242",
        "secret-path",
        headers["Authorization"][7:],
        "dataset=people",
        "SELECT",
    ):
        assert secret not in logged, secret


NUMBERS = ("time", "milliseconds", "request", "status")


def test_sigterm_finishes_running_questions(tmp_path: Path) -> None:
    config, headers = prepared(tmp_path, release="2")
    configuration = read_configuration(config)
    with Serving(config).wait() as serving:
        answers = []

        def ask() -> None:
            asked = {"sql": MEDIAN, "epsilon": "0.5"}
            answers.append(httpx2.post(f"{serving.url}/v1/query", json=asked, headers=headers, timeout=30))

        thread = threading.Thread(target=ask)
        thread.start()
        with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
            until(lambda: ledger.balance("people").epsilon.spent)
        assert serving.stop() == 0
        thread.join()
    assert answers[0].status_code == 200
    assert answers[0].json()["rows"]


def test_several_workers_share_everything(tmp_path: Path, ledger_base: str) -> None:
    """A question is asked of one worker, looked at and fetched from any; a session and a metric belong to all."""
    config, headers = prepared(tmp_path, ledger=ledger_base, release="2")
    with Serving(config, "--workers", "2").wait() as serving:
        asked = {"sql": MEDIAN, "epsilon": "0.5", "wait": 0}
        later = httpx2.post(f"{serving.url}/v1/query", json=asked, headers=headers)
        assert later.status_code == 202
        states = set()
        deadline = time.monotonic() + 30
        while "answered" not in states and time.monotonic() < deadline:
            # a new connection each time, so that either worker gets it
            states.add(httpx2.get(serving.url + later.headers["Location"], headers=headers).json()["state"])
        assert "answered" in states
        assert states <= {"running", "answered"}
        for _ in range(20):
            httpx2.get(f"{serving.url}/v1/me", headers=headers)
        metrics = httpx2.get(f"{serving.url}/metrics", headers={"Authorization": f"Bearer {headers['X-Grace']}"}).text
        (line,) = [line for line in metrics.splitlines() if 'route="/v1/me"' in line]
        assert line.endswith(" 20.0")
        assert serving.stop() == 0


def test_a_certificate_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for certificate, told in (("nope.pem", "No such file"), ("empty.pem", "cannot be used")):
        settings = Settings(port=0, tls_cert=str(tmp_path / certificate), tls_key=str(tmp_path / certificate))
        with pytest.raises(ConfigurationError, match=f"{certificate}.*{told}"):
            check_address(settings)


def test_tokens_in_the_clear_are_warned_of() -> None:
    assert list_address_risks(Settings(host="0.0.0.0"))
    for safe in (
        {},
        {"host": "::1"},
        {"host": "0.0.0.0", "tls_cert": "a", "tls_key": "b"},
        {"host": "10.0.0.1", "behind_proxy": "10.0.0.2"},
    ):
        assert not list_address_risks(replace(Settings(), **safe))


@pytest.mark.parametrize("believed", ["*", "0.0.0.0/0"])
def test_believing_everybody_is_warned_of(believed: str) -> None:
    (told,) = list_address_risks(Settings(behind_proxy=believed))
    assert "believes any client" in told
    assert not list_address_risks(Settings(behind_proxy="127.0.0.1"))


def test_tls_by_flags(tmp_path: Path) -> None:
    config, headers = prepared(tmp_path)
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        [
            *(
                require_program("openssl"),
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        capture_output=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    trusted = ssl.create_default_context(cafile=str(certificate))
    with Serving(config, "--tls-cert", str(certificate), "--tls-key", str(key)).wait(verify=False) as serving:
        answered = httpx2.get(f"https://127.0.0.1:{serving.port}/v1/me", headers=headers, verify=trusted)
        assert answered.json()["name"] == "ada"
        assert "max-age" in answered.headers["Strict-Transport-Security"]


def test_the_demonstration_can_be_tried_at_once(tmp_path: Path) -> None:
    """Both printed tokens work, and nothing is left when it ends."""
    folders = set(Path(tempfile.gettempdir()).glob("idios-demo-*"))
    with Serving(tmp_path / "none.toml", "--demo").wait() as serving:
        (folder,) = set(Path(tempfile.gettempdir()).glob("idios-demo-*")) - folders
        told = dict(re.findall(r"the (\w+) \w+ signs in with +(\S+)", serving.log.read_text()))
        with idios.connect(serving.url, told["analyst"]) as party:
            assert party.query("SELECT MEDIAN(income) FROM people", "0.5").value > 0
            assert party.sandbox("SELECT MEDIAN(age) FROM people", "0.5").sandbox
        with idios.connect(serving.url, told["controller"]) as party:
            assert party.me.role == "controller"
        assert serving.stop() == 0
    assert not folder.exists()


def test_an_address_that_is_taken_is_said_so(tmp_path: Path) -> None:
    config, _ = prepared(tmp_path)
    with Serving(config).wait() as serving:
        second = Serving(config, port=serving.port)
        assert second.process.wait(60) == 1
        assert "choose another with --host and --port" in " ".join(second.log.read_text().split())


def test_it_does_not_start_without_trust(tmp_path: Path) -> None:
    config, _ = prepared(tmp_path)
    config.write_text(config.read_text().replace('analysts = "trusted"\n', ""))
    serving = Serving(config)
    assert serving.process.wait(60) == 1
    assert "0s and 1000s" in " ".join(serving.log.read_text().split())


def test_the_environment_has_the_last_word(tmp_path: Path) -> None:
    config, headers = prepared(tmp_path)
    environment = {"IDIOS_REQUESTS_PER_MINUTE": "4", "IDIOS_LOG_QUESTIONS": "true"}
    with Serving(config, environment=environment).wait() as serving:
        asked = {"sql": MEDIAN, "epsilon": "0.5"}
        statuses = [httpx2.post(f"{serving.url}/v1/query", json=asked, headers=headers).status_code for _ in range(2)]
        assert statuses == [200, 429]
    assert MEDIAN in serving.log.read_text()


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("IDIOS_PORT", "http", "whole number"),
        ("IDIOS_TLS_CERT", "cert.pem", "tls_key"),
        ("IDIOS_WORKERS", "0", "at least 1"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, variable: str, value: str, told: str) -> None:
    config, _ = prepared(tmp_path)
    serving = Serving(config, environment={variable: value})
    assert serving.process.wait(60) == 1
    assert told in " ".join(serving.log.read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize("counts", [True, False], ids=["counts its work", "never counts its work"])
def test_sigterm_ends_a_process_whose_planning_never_ends(counts: bool, tmp_path: Path) -> None:
    """Nothing is known to plan for ever. If something did, other callers would wait, and the process would end."""
    config, headers = prepared(tmp_path)
    step = "work.spend(0)" if counts else "pass"
    (tmp_path / "sitecustomize.py").write_text(
        f"""
from idios.plan import planner
from idios.sql import reader
from idios.expressions.work import Work
def prepare(question, dataset):
    work = Work()
    while question.measures[0].label == "for_ever":
        {step}
    return planner.prepare(question, dataset)
reader.prepare = prepare
"""
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    with Serving(config, environment={"PYTHONPATH": path, "IDIOS_SHUTDOWN_SECONDS": "0"}).wait() as serving:
        ended = []

        def ask() -> None:
            asked = {"sql": "SELECT COUNT(*) AS for_ever FROM people", "epsilon": "0.5"}
            with suppress(httpx2.TransportError):
                httpx2.post(f"{serving.url}/v1/quote", json=asked, headers=headers, timeout=60)
            ended.append(time.monotonic())

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(1)
        assert not ended
        assert serving.stop(40) == 0
        thread.join()
    assert ("a thread did not end" in serving.log.read_text()) is not counts

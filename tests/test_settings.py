"""[server] and the environment: read strictly, in the right order, and documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.config import read_configuration
from idios.errors import ConfigurationError
from idios.settings import SERVER_KEYS, read_settings

ROOT = Path(__file__).parent.parent
TOML = """
[server]
port = 8001
host = "0.0.0.0"

[datasets.people]
source = "people.csv"
budget = 1
columns = { age = "integer" }
"""


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "idios.toml").write_text(TOML)
    found = read_configuration(
        tmp_path / "idios.toml",
        {"IDIOS_PORT": "9000", "IDIOS_LEDGER_URL": "postgresql://base", "IDIOS_LEDGER_KEY_FILE": "/keys/ledger.key"},
    )
    assert (found.server.port, found.server.host) == (9000, "0.0.0.0")
    assert found.ledger_url == "postgresql://base"
    assert found.key_file == Path("/keys/ledger.key")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"prot": 1}, "known are host, port"),
        ({"port": "8000"}, "port must be a whole number, got '8000'"),
        ({"port": True}, "port must be a whole number"),
        ({"port": 70000}, "at most 65535"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"log_questions": "yes"}, "log_questions must be true or false"),
        ({"tls_key": "key.pem"}, "both tls_cert and tls_key"),
        ({"behind_proxy": "localhost"}, "behind_proxy must be the address of a proxy"),
        ({"behind_proxy": "127.0.0.1, proxy.example.org"}, "behind_proxy must be the address of a proxy"),
        ({"behind_proxy": "10.0.0.1/8"}, "behind_proxy must be the address of a proxy"),
        ({"behind_proxy": "127.0.0.1,"}, "behind_proxy must be the address of a proxy"),
    ],
)
def test_what_cannot_be_is_refused(table: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read_settings(table, {})


@pytest.mark.parametrize("written", ["127.0.0.1", "::1", "10.1.2.0/24, fd00:1::/64", "10.0.0.0/8"])
def test_proxies_are_addresses_and_networks(written: str) -> None:
    assert not read_settings({"behind_proxy": written}, {}).believes_anybody


@pytest.mark.parametrize("written", ["*", "0.0.0.0/0", "::/0", "127.0.0.1, 0.0.0.0/1", "2000::/3"])
def test_whoever_believes_everybody_is_known(written: str) -> None:
    assert read_settings({"behind_proxy": written}, {}).believes_anybody


def test_a_variable_is_read_as_its_key(tmp_path: Path) -> None:
    assert read_settings({}, {"IDIOS_LOG_QUESTIONS": "True"}).log_questions
    assert read_settings({}, {"IDIOS_HOST": "8080"}).host == "8080"
    for bad in ("eighty", "8_0", "８０", "--80", "-", "9" * 5000):
        with pytest.raises(ConfigurationError, match="IDIOS_PORT"):
            read_settings({}, {"IDIOS_PORT": bad})


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    table = text.partition("## `[server]`")[2].partition("\n## ")[0]
    for key in SERVER_KEYS:
        assert f"`{key}`" in table, key

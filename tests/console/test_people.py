"""The console of a data set about people with several rows, in several tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.running import Served, Watched, expect, served
from tests.console.test_appearance import PICTURES

pytestmark = pytest.mark.xdist_group("chromium")

SHOP = """
[datasets.households]
source = "households.csv"
unit = "id"
unit_word = "household"
protection = "differential"
budget = 30
groups = 2
release_seconds = 0
columns = { size = { type = "integer", bounds = [1, 20] } }

[datasets.orders]
source = "orders.csv"
unit = "household"
order = "day"
links = { household = "households.id", product = "products.code" }

[datasets.orders.columns]
amount = { type = "integer" }
day = { type = "date" }
channel = { type = "category", values = ["shop", "web"] }

[datasets.lines]
source = "lines.csv"
links = { number = "orders.number" }
columns = { weight = { type = "integer" } }

[datasets.products]
source = "products.csv"
public = true
columns = { kind = { type = "category", values = ["food", "toy"] } }
"""
REDUCED = "SELECT MEDIAN(spent) FROM (SELECT SUM(amount) AS spent FROM orders GROUP BY household)"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "households.csv").write_text("id,size\n" + "".join(f"{i},{1 + i % 6}\n" for i in range(400)))
    (folder / "orders.csv").write_text(
        "number,household,product,amount,day,channel\n"
        + "".join(f"{i},{i % 380},{'bc'[i % 2]},{i % 97},2026-01-{1 + i % 28:02},shop\n" for i in range(2000))
    )
    (folder / "lines.csv").write_text("number,weight\n" + "".join(f"{i % 2000},{i % 9}\n" for i in range(3000)))
    (folder / "products.csv").write_text("code,kind\nb,food\nc,toy\n")
    with served(folder, SHOP) as started:
        yield started


def test_a_data_set_shows_its_unit_its_links_and_its_tables(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/datasets")
    told = seen.text()
    for expected in (
        "household, by id",
        "Groups of one household at most 2",
        "GROUP BY channel",
        "All rows with the same id are of one household",
        "orders same households All rows with the same household are of one household, in the order of day: "
        "orders.household = households.id, orders.product = products.code.",
        "lines same households Each row is of the household to whose row it leads: lines.number = orders.number.",
        "products public Facts about nobody, to be joined.",
        "MEDIAN of AVG(amount) by household",
    ):
        assert expected in told, told
    assert seen.fits()
    PICTURES.mkdir(parents=True, exist_ok=True)
    seen.picture(PICTURES / "desktop-people.png")
    seen.page.set_viewport_size({"width": 360, "height": 740})
    assert seen.fits()
    seen.picture(PICTURES / "phone-people.png")
    seen.follow("GROUP BY channel")
    expect(seen.page.locator("#quote")).to_contain_text("household in at most 2 groups of")
    seen.open("/console/datasets")
    seen.follow("MEDIAN of AVG(amount) by household")
    expect(seen.page.locator("#quote")).to_contain_text("the rows of each household to AVG(orders.amount)")


def test_a_check_is_told_in_households(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/ask")
    assert "A check tells how many households off an answer is" in seen.text()
    seen.write(REDUCED, "2")
    expect(seen.page.locator("#quote")).to_contain_text("tells how many households off it is")
    seen.page.get_by_label("Share for checks").fill("0")
    expect(seen.page.locator("#quote")).not_to_contain_text("households off")
    seen.press("^Ask")
    assert "Tells how many households too high or too low this answer is" in seen.text()
    assert not seen.faults


def test_names_of_all_tables_complete(seen: Watched) -> None:
    seen.sign_in("ada")
    seen.open("/console/ask")
    seen.page.get_by_label("Question in SQL").press_sequentially("SELECT COUNT(*) FROM prod")
    expect(seen.page.locator("main")).to_contain_text("products")

"""Every example runs as it is, on the local engine, and gives exactly what it should."""

from __future__ import annotations

import importlib.util
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def at(hour: int, minute: int) -> datetime:
    return datetime(2026, 1, 1, hour, minute, tzinfo=UTC)


def test_every_example_has_a_test():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    tested = {name.removeprefix("test_example_") for name in globals() if name.startswith("test_example_")}
    assert names == tested


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_docstring_says_how_to_run_it(name):
    lines = (load(name).__doc__ or "").splitlines()
    assert any(line.strip().startswith(f"python examples/{name}.py --engine spark") for line in lines)


def test_example_running_totals(tmp_path):
    first, second = date(2026, 1, 1), date(2026, 1, 2)
    assert [tuple(row.values()) for row in load("running_totals").main("local", tmp_path)] == [
        ("ann", first, 20.0, False),
        ("ann", first, 25.5, False),
        ("ann", first, 26.75, False),
        ("ann", first, 26.75, True),
        ("ann", second, 100.0, False),
        ("ann", second, 100.0, True),
        ("bob", first, 4.5, False),
        ("bob", first, 4.5, True),
        ("bob", second, 8.0, False),
        ("bob", second, 8.0, True),
    ]


@pytest.mark.parametrize("max_rows_per_epoch", [1, 2, 3, 1_000_000])
def test_example_sessions(max_rows_per_epoch):
    sessions, suspicious = load("sessions").main("local", max_rows_per_epoch=max_rows_per_epoch)
    assert sessions == [
        ("ann", at(9, 0), 3, 20.0, ["home", "shoes", "basket"]),
        ("ann", at(11, 0), 2, 1.0, ["hats"]),
        ("bob", at(9, 5), 1, 0.0, ["home"]),
        ("bob", at(9, 35), 1, 0.0, ["shoes"]),
    ]
    assert suspicious == [("ann", at(9, 25), "BR", "NL")]


def test_example_alerts(tmp_path):
    assert load("alerts").main("local", tmp_path) == [
        ("attic", at(12, 5), "event"),
        ("cellar", at(12, 29), "processing"),
        ("garden", at(12, 29), "processing"),
    ]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_example_fraud_detection(parallelism):
    assert load("fraud_detection").main("local", parallelism=parallelism) == [
        (at(12, 1), "ann", "big", 600.0),
        (at(12, 4), "bob", "burst", 800.0),
        (at(12, 6), "cat", "burst", 750.0),
        (at(12, 12), "ann", "big", 950.0),
    ]


@pytest.mark.parametrize("max_rows_per_epoch", [1, 3, 1_000_000])
def test_example_order_payments(max_rows_per_epoch):
    pairs, unpaid, unasked = load("order_payments").main("local", max_rows_per_epoch=max_rows_per_epoch)
    assert [(pair.order_id, pair.customer, pair.amount) for pair in pairs] == [
        (1, "ann", 20.0),
        (2, "bob", 15.0),
        (2, "bob", 20.0),
        (4, "ann", 99.0),
    ]
    assert [(order.order_id, order.customer) for order in unpaid] == [(3, "cat")]
    assert [(payment.of, payment.amount) for payment in unasked] == [(3, 12.5), (9, 5.0)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_example_online_learning(parallelism):
    scores = load("online_learning").main("local", parallelism=parallelism)
    found = {(row.shop, row.items): [] for row in scores}
    for row in scores:
        found[row.shop, row.items].append((row.seen, row.probability))
    assert found == {
        ("books", 0.0): [(1, 0.438), (100, 0.975), (199, 0.987), (298, 0.995)],
        ("books", 3.0): [(1, 0.438), (100, 0.078), (199, 0.035), (298, 0.075)],
        ("tools", 0.0): [(1, 0.438), (100, 0.007), (199, 0.003), (298, 0.001)],
        ("tools", 3.0): [(1, 0.438), (100, 0.995), (199, 0.999), (298, 0.999)],
    }


def test_example_sql_sales(tmp_path):
    totals, minutes = load("sql_sales").main("local", tmp_path)
    assert totals == [("books", 25.0), ("tools", 40.0)]
    assert minutes == [(1, "books", 2), (1, "tools", 1), (2, "books", 1)]


@pytest.mark.parametrize("max_rows_per_epoch", [1, 1_000_000])
def test_example_sql_exchange_rates(max_rows_per_epoch):
    rows = load("sql_exchange_rates").main("local", max_rows_per_epoch)
    assert [(number, round(amount, 6)) for number, amount in rows] == [(1, 110.0), (2, 13.0), (3, 120.0), (4, 55.0)]


@pytest.mark.parametrize("max_rows_per_epoch", [1, 1_000_000])
def test_example_sql_best_sellers(max_rows_per_epoch):
    best, state = load("sql_best_sellers").main("local", max_rows_per_epoch)
    assert best == {1: ("ink", 9.0), 2: ("nib", 4.0)}
    assert "one accumulator of mean_price" in state

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.batch import Batch
from headwater.errors import RowError, UserCodeError
from headwater.graph.nodes import Exchange, Key
from headwater.runtime.routing import route, with_key
from headwater.schema import Schema
from headwater.state.keys import key_groups, subtasks_of

SCHEMA = Schema.of("k string, n long")
COUNT = 100


def batch() -> Batch:
    table = pa.table({"k": [f"k{i % 17}" for i in range(COUNT)], "n": list(range(COUNT))})
    return Batch(table, np.arange(COUNT, dtype=np.int64))


def parts(exchange: Exchange, parallelism: int = 3, first: int = 0) -> dict[int, list[int]]:
    found = {}
    for subtask, part in route(batch(), exchange, 128, parallelism, first):
        assert part.timestamps.tolist() == part.table["n"].to_pylist()
        found[subtask] = part.table["n"].to_pylist()
    return found


def test_a_key_goes_to_the_owner_of_its_group_and_keeps_its_order() -> None:
    found = parts(Exchange("key", Key(("k",), None, pa.string())))
    owners = subtasks_of(key_groups(pa.array([f"k{i % 17}" for i in range(COUNT)]), 128), 128, 3)
    assert found == {s: [n for n in range(COUNT) if owners[n] == s] for s in range(3)}


def test_a_key_of_two_columns_is_routed_as_a_struct() -> None:
    dtype = pa.struct([("k", pa.string()), ("n", pa.int64())])
    found = parts(Exchange("key", Key(("k", "n"), None, dtype)))
    structs = pa.array([{"k": f"k{i % 17}", "n": i} for i in range(COUNT)], dtype)
    owners = subtasks_of(key_groups(structs, 128), 128, 3)
    assert found == {s: [n for n in range(COUNT) if owners[n] == s] for s in range(3)}


def test_a_function_key_is_computed_once_and_travels_along() -> None:
    key = Key((), lambda row: row.n % 5, pa.int64())
    keyed = with_key(batch(), key, SCHEMA, "step")
    assert keyed.key is not None
    for _, part in route(keyed, Exchange("key", key), 128, 3, 0):
        assert part.key is not None
        assert part.key.to_pylist() == [n % 5 for n in part.table["n"].to_pylist()]


def test_rebalance_deals_rows_out_in_turn() -> None:
    found = parts(Exchange("rebalance"), 3, first=2)
    assert found[2][:3] == [0, 3, 6]
    assert found[0][:3] == [1, 4, 7]
    assert max(map(len, found.values())) - min(map(len, found.values())) <= 1


def test_broadcast_goes_everywhere_and_global_to_the_first() -> None:
    assert parts(Exchange("broadcast")) == {subtask: list(range(COUNT)) for subtask in range(3)}
    assert parts(Exchange("global")) == {0: list(range(COUNT))}


@pytest.mark.parametrize("kind", ["rebalance", "global", "broadcast"])
def test_one_subtask_gets_everything_once(kind: str) -> None:
    assert parts(Exchange(kind), 1) == {0: list(range(COUNT))}


def test_hundreds_of_subtasks_lose_nothing() -> None:
    found = parts(Exchange("key", Key(("n",), None, pa.int64())), 128)
    assert Counter(n for rows in found.values() for n in rows) == Counter(range(COUNT))


def test_a_key_function_that_raises_is_named_with_its_step() -> None:
    def fail(row: Any) -> Any:
        raise KeyError(row.k)

    with pytest.raises(UserCodeError, match="step 'totals' failed: KeyError: 'k0'"):
        with_key(batch(), Key((), fail, pa.string()), SCHEMA, "totals")


def test_a_key_that_is_not_of_its_type_is_refused() -> None:
    with pytest.raises(RowError, match="step 'totals', field 'key': value 0 does not fit string"):
        with_key(batch(), Key((), lambda row: row.n, pa.string()), SCHEMA, "totals")

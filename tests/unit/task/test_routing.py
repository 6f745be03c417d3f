from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.data.batch import Batch
from headwater.data.schema import Schema
from headwater.errors import RowError, UserCodeError
from headwater.graph.edges import Exchange, Key
from headwater.state.keys import key_groups, subtasks_of
from headwater.task.routing import route, with_key

SCHEMA = Schema.of("k string, n long")
COUNT = 100


def batch() -> Batch:
    table = pa.table({"k": [f"k{i % 17}" for i in range(COUNT)], "n": list(range(COUNT))})
    return Batch(table, np.arange(COUNT, dtype=np.int64))


def parts(exchange: Exchange, parallelism: int = 3, turn: int = 0) -> dict[int, list[int]]:
    found = {}
    for subtask, part in route(batch(), exchange, 128, parallelism, turn=turn, step="step"):
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
    for _, part in route(keyed, Exchange("key", key), 128, 3, turn=0, step="step"):
        assert part.key is not None
        assert part.key.to_pylist() == [n % 5 for n in part.table["n"].to_pylist()]


def test_rebalance_deals_rows_out_in_turn() -> None:
    found = parts(Exchange("rebalance"), 3, turn=2)
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


def custom(partitioner: Any, *columns: str) -> Exchange:
    fields = [SCHEMA.field(column) for column in columns]
    dtype = fields[0].type if len(fields) == 1 else pa.struct(fields)
    return Exchange("custom", Key(columns, None, dtype), partitioner)


def test_a_partitioner_chooses_and_order_is_kept() -> None:
    found = parts(custom(lambda k, n: int(k[1:]) % n, "k"))
    assert found == {s: [n for n in range(COUNT) if n % 17 % 3 == s] for s in range(3)}


def test_a_partitioner_is_asked_once_for_each_key_of_a_batch() -> None:
    asked: list[tuple[Any, int]] = []

    def choose(key: Any, parallelism: int) -> int:
        asked.append((key, parallelism))
        return 0

    parts(custom(choose, "k"))
    assert asked == [(f"k{i}", 3) for i in range(17)]


def test_a_partitioner_over_several_columns_gets_a_row() -> None:
    found = parts(custom(lambda key, n: (len(key.k) + key.n) % n, "k", "n"))
    assert found == {s: [i for i in range(COUNT) if (len(f"k{i % 17}") + i) % 3 == s] for s in range(3)}


def test_a_partitioner_over_a_function_gets_its_result_which_does_not_travel() -> None:
    key = Key((), lambda row: row.n % 5, pa.int64())
    keyed = with_key(batch(), key, SCHEMA, "step")
    routed = list(route(keyed, Exchange("custom", key, lambda five, n: five % n), 128, 3, turn=0, step="step"))
    assert {s: part.table["n"].to_pylist() for s, part in routed} == {
        s: [n for n in range(COUNT) if n % 5 % 3 == s] for s in range(3)
    }
    assert [part.key for _, part in routed] == [None] * 3


def test_a_null_is_a_key_for_a_partitioner() -> None:
    rows = Batch(pa.table({"k": ["a", None, "a", None]}), np.arange(4, dtype=np.int64))
    exchange = custom(lambda k, n: 1 if k is None else 0, "k")
    found = {s: p.timestamps.tolist() for s, p in route(rows, exchange, 128, 2, turn=0, step="step")}
    assert found == {0: [0, 2], 1: [1, 3]}


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("wrong", [-1, 3, 1.0, True, None, "1", np.int64(0)], ids=repr)
def test_what_a_partitioner_must_not_give_is_told(wrong: Any, parallelism: int) -> None:
    with pytest.raises(UserCodeError, match=rf"subtask from 0 to {parallelism - 1}; got .*; return an int") as failed:
        parts(custom(lambda k, n: wrong if k == "k3" else 0, "k"), parallelism)
    assert (failed.value.step, failed.value.key) == ("step", "k3")


def test_a_partitioner_that_raises_is_named_with_step_and_key() -> None:
    with pytest.raises(UserCodeError, match="step 'step' failed for key 'k0': KeyError: 'k0'") as failed:
        parts(custom(lambda k, n: {}[k], "k"))
    assert "lambda k, n: {}[k]" in failed.value.traceback

"""The table of aggregates and what reads it go together."""

from __future__ import annotations

import pytest

from headwater import aggregates as hw
from headwater.aggregates.declared import is_in_any_order, refuse_taking_back
from headwater.aggregates.facts import FACTS
from headwater.errors import GraphError
from headwater.operators.aggregation.kernels import KERNELS


def test_every_function_that_users_call_is_in_the_table_and_has_a_kernel() -> None:
    called = set(hw.__all__) - {"Aggregate", "result_fields"}
    assert called == set(FACTS) == set(KERNELS)


def test_order_of_rows_shows_in_what_is_picked_by_arrival_and_in_collections() -> None:
    by_order = {name for name, facts in FACTS.items() if not facts.is_in_any_order}
    assert by_order == {"first", "last", "first_value", "last_value", "min_by", "max_by", "collect_list", "collect_set"}
    assert is_in_any_order({"n": hw.count(), "top": hw.max("v")})
    assert not is_in_any_order({"n": hw.count(), "top": hw.max_by("v", "w")})


def test_a_sketch_that_cannot_take_rows_back_is_refused_with_the_way_out() -> None:
    refuse_taking_back({"n": hw.count(), "mid": hw.approx_quantile("v", 0.5)}, "totals")
    with pytest.raises(GraphError) as error:
        refuse_taking_back({"n": hw.count(), "users": hw.approx_count_distinct("user")}, "totals")
    assert str(error.value) == (
        "step 'totals' needs aggregates that can take rows back, as its input is a changelog; "
        "got \"hw.approx_count_distinct('user')\"; use hw.count_distinct instead"
    )

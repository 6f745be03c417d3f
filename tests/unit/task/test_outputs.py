"""What steps are given and give, by output: also those that run behind others, and those that rows come to by two ways."""

from __future__ import annotations

from typing import Any

import headwater as hw

ODD, EVEN = hw.OutputTag("odd", "n long"), hw.OutputTag("even", "n long")


class Split(hw.ProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> Any:
        ctx.output(ODD if event.n % 2 else EVEN, (event.n,))
        if event.n % 3 == 0:
            yield event


class SplitByKey(hw.KeyedProcessFunction):
    process = Split.process


def counted(*, rebalanced: bool = False) -> hw.JobStatus:
    env = hw.Environment("outputs", engine="local", parallelism=2)
    rows = env.from_rows([(n,) for n in range(10)], "n long")
    first = (rows.rebalance() if rebalanced else rows).process(Split(), "n long", name="first")
    second = first.side_output(ODD).key_by("n").process(SplitByKey(), "n long", name="second")
    both = first.union(second).map(lambda row: row)
    both.sink(hw.connectors.memory())
    second.side_output(ODD).where("n > 5").sink(hw.connectors.memory(), name="odd")
    job = env.run()
    return job.status()


def test_rows_are_counted_for_each_output_of_each_step() -> None:
    for rebalanced in (False, True):
        steps = counted(rebalanced=rebalanced).steps
        facts = {uid: (step.rows_in, step.rows_out, dict(step.outputs)) for uid, step in steps.items()}
        assert facts == {
            "rows": (10, 10, {}),
            "first": (10, 14, {"odd": 5, "even": 5}),
            "second": (5, 7, {"odd": 5}),
            "map": (6, 6, {}),
            "where": (5, 2, {}),
        }


def test_what_was_counted_goes_through_the_status_that_is_stored() -> None:
    status = counted()
    again = hw.JobStatus.from_json(status.to_json(), "here")
    assert {uid: dict(step) for uid, step in again.steps.items()} == {
        uid: dict(step) for uid, step in status.steps.items()
    }
    old = status.to_json()
    for step in old["steps"].values():
        del step["outputs"]
    assert hw.JobStatus.from_json(old, "here").steps["first"].outputs == {}

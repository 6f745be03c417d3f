"""A plan as bytes that workers can read; or which step keeps it from being so."""

from __future__ import annotations

import sys

from pyspark import cloudpickle

from headwater.job import program
from headwater.operators.user_code import not_copied
from headwater.plan.plan import JobPlan


def pickled_plan(plan: JobPlan) -> bytes:
    """The plan as bytes; where that cannot be, which step keeps it from being so, and with what."""
    try:
        return _dumps(plan)
    except Exception:
        for node in plan.graph:
            for part in vars(node).values():
                try:
                    _dumps(part)
                except Exception as reason:
                    raise not_copied(part, plan.graph.uid(node), reason, _dumps) from None
        raise


def _dumps(value: object) -> bytes:
    if program.MODULE in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules[program.MODULE])  # type: ignore[no-untyped-call]
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return pickled

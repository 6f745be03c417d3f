"""How many random examples a test is given: few by default, which are the same each time; many in `make test-long`."""

from __future__ import annotations

import os

from hypothesis import settings

LONG = bool(os.environ.get("HEADWATER_LONG"))
"""Whether this is `make test-long`."""
_FEWEST = 10


def examples(many: int) -> settings:
    """The settings of a test that finds most faults with `many` examples; a long run has ten times as many."""
    return settings(max_examples=many * 10 if LONG else min(many, max(_FEWEST, many // 5)))

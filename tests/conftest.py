from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the unit tests first: they take seconds, and must pass before a JVM has started."""
    items.sort(key=lambda item: "unit" not in item.path.parts)

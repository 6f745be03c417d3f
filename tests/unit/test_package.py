from __future__ import annotations

import subprocess
import sys

import headwater as hw


def test_importing_headwater_imports_neither_pyspark_nor_pandas() -> None:
    code = "import sys, headwater; print(sorted({'pyspark', 'pandas', 'py4j'} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert [name for name in hw.__all__ if not hasattr(hw, name)] == []


def test_every_error_on_purpose_has_one_root() -> None:
    errors = [value for value in vars(hw).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert errors
    assert all(issubclass(error, hw.HeadwaterError | Warning) for error in errors)

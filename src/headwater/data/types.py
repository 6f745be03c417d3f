"""What values of a type can be used for."""

from __future__ import annotations

import pyarrow as pa


def is_key_type(dtype: pa.DataType) -> bool:
    """Whether values of this type can be keys: exact equality, hashable in Python."""
    if pa.types.is_struct(dtype):
        return all(is_key_type(field.type) for field in dtype)
    return not (
        pa.types.is_floating(dtype) or pa.types.is_list(dtype) or pa.types.is_map(dtype) or pa.types.is_null(dtype)
    )


def is_time_type(dtype: pa.DataType) -> bool:
    """Whether a column of this type can be event time: timestamps, or a bigint of milliseconds."""
    return bool(pa.types.is_timestamp(dtype) or dtype == pa.int64())

"""What the bytes of a record mean: JSON, CSV, Avro, or themselves."""

from __future__ import annotations

from headwater.connectors.formats.avro import AvroFormat
from headwater.connectors.formats.contract import Format, Undecodable, numbered_rows, sifted, sound
from headwater.connectors.formats.csv import CsvFormat
from headwater.connectors.formats.decimals import decimals
from headwater.connectors.formats.json import JsonFormat
from headwater.connectors.formats.raw import RawFormat
from headwater.errors import GraphError

__all__ = [
    "AvroFormat",
    "CsvFormat",
    "Format",
    "JsonFormat",
    "RawFormat",
    "Undecodable",
    "decimals",
    "format_of",
    "numbered_rows",
    "sifted",
    "sound",
]

_NAMED: dict[str, type[Format]] = {"json": JsonFormat, "csv": CsvFormat, "raw": RawFormat}


def format_of(given: Format | str, step: str) -> Format:
    """A format by its name, or as it is given."""
    if isinstance(given, Format):
        return given
    if given not in _NAMED:
        raise GraphError.bad_argument(
            step, f"reads {', '.join(_NAMED)} or hw.connectors.avro(…)", given, "choose one of them"
        )
    return _NAMED[given]()

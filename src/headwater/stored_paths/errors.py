"""What is wrong with a path in a stored file."""

from __future__ import annotations

from headwater.errors import HeadwaterError, short


class UnsafePath(HeadwaterError):
    """A stored file names a path that is not its own to name."""

    is_final = True

    @classmethod
    def of(cls, where: object, name: object, folder: object) -> UnsafePath:
        return cls(
            f"{where} may only name files below {folder}; it names {short(name)}: it is damaged, or somebody else made it; "
            f"use a copy that you trust"
        )

"""Errors of ours that a program does not catch: shown from the user's lines, which is where they are mended."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import TracebackType

from headwater.errors import HeadwaterError

_HEADWATER = str(Path(__file__).parent)


def leave_out_our_frames() -> None:
    """Let whatever shows errors that a program does not catch show ours without the frames of this package.

    They tell all in their text. Where the logger `headwater` is at level debug they are shown as they are; so are errors of
    others, always.
    """
    show = sys.excepthook

    def show_ours(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        if isinstance(error, HeadwaterError) and not logging.getLogger("headwater").isEnabledFor(logging.DEBUG):
            frames = of_user(frames)
            error.__traceback__ = frames
        show(kind, error, frames)

    sys.excepthook = show_ours


def of_user(frames: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are not of this package."""
    kept = []
    while frames is not None:
        if not frames.tb_frame.f_code.co_filename.startswith(_HEADWATER):
            kept.append(frames)
        frames = frames.tb_next
    found: TracebackType | None = None
    for one in reversed(kept):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found

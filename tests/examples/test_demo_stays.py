"""The demo in a terminal: it goes on after the proof until Ctrl-C, and leaves nothing behind."""

from __future__ import annotations

import os
import pty
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.chaos.driver import session

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.recovery, pytest.mark.timeout(900)]

COMMAND = [sys.executable, "-m", "headwater.demo", "--stay", "--events", "20000", "--kills", "1"]


def test_ctrl_c_ends_it_in_order() -> None:
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.execv(sys.executable, COMMAND)
    said = ""
    try:
        said = until(terminal, "until Ctrl-C", said)
        time.sleep(3)  # some orders come
        os.write(terminal, b"\x03")
        said = until(terminal, "ending the job", said)
        _, status = os.waitpid(process, 0)
    finally:
        for left in session(process):
            os.kill(left, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "exact after 1 kills" in said
    folder = re.search(r"headwater status (/\S+)/job", said)
    assert folder is not None
    assert not Path(folder[1]).exists()


def until(terminal: int, text: str, said: str) -> str:
    """What the terminal shows, up to a text, without line breaks."""
    while text not in said:
        said += os.read(terminal, 65_536).decode(errors="replace").replace("\r\n", "")
    return said

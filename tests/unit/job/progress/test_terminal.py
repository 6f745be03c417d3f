"""The line of a job in a real terminal: scripts of users in processes of their own, on pseudo-terminals."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

WIDTH = 80
LONG = """
import logging
import time
import headwater as hw

began, words = time.monotonic(), ["first", "second"]


def on_step(step, epoch):
    if step is hw.EpochStep.CLEANED and words and time.monotonic() - began > 3 - len(words):
        logging.getLogger("users").warning("the %s word of the job's own", words.pop(0))
        print("and one on stdout", flush=True)


env = hw.Environment("a-job-whose-name-is-rather-long", engine="local", checkpoint_interval="10 ms")
numbers = hw.connectors.generator(lambda i: (i, i * 100), count=300, rate=100.0, splits=2)
rows = env.source(numbers, "n long, ts long", hw.Watermarks.monotonous("ts"), name="numbers")
rows.sink(hw.connectors.memory())
env.run(on_step=on_step)
print("the script goes on")
"""
SHORT = """
import headwater as hw

env = hw.Environment("short", engine="local")
env.from_rows([(1,)], "n long").sink(hw.connectors.memory())
env.run({settings})
"""


def in_terminal(script: str, folder: Path) -> str:
    """What a terminal gets to see, byte by byte."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    process = subprocess.Popen([sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65_536):
            seen += piece
    except OSError:
        """The last process has closed the terminal."""
    os.close(ours)
    assert process.wait(60) == 0, seen.decode()
    return seen.decode()


def screen_after(seen: str) -> list[str]:
    """The lines that a terminal shows in the end; a line that is too long would go on in the next one."""
    lines, column = [""], 0
    for piece in re.findall(r"\x1b\[K|\r|\n|[^\x1b\r\n]+", seen):
        if piece == "\r":
            column = 0
        elif piece == "\n":
            lines.append("")
        elif piece == "\x1b[K":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column].ljust(column) + piece + lines[-1][column + len(piece) :]
            column += len(piece)
            assert column < WIDTH, f"{lines[-1]!r} takes more than one line"
    return lines


def test_one_line_that_is_gone_in_the_end_and_garbles_nothing(tmp_path: Path) -> None:
    seen = in_terminal(LONG, tmp_path)
    drawn = re.findall(r"\r\x1b\[K(a-job-whose-name-is-rather-long: epoch [^\r\n]*)", seen)
    assert len(drawn) >= 2
    assert max(len(line) for line in drawn) == WIDTH - 1, "cut to the width"
    words = [f"the {which} word of the job's own" for which in ("first", "second")]
    *before, last, after, rest = screen_after(seen)
    assert before == [words[0], "and one on stdout", words[1], "and one on stdout"]
    assert re.fullmatch(r"a-job-whose-name-is-rather-long: finished after epoch \d+, 300 rows in [\d.]+ s", last)
    assert (after, rest) == ("the script goes on", "")


@pytest.mark.parametrize("settings", ["", "progress=False"])
def test_no_terminal_or_no_wish_no_line(tmp_path: Path, settings: str) -> None:
    script = SHORT.format(settings=settings)
    if settings:
        assert in_terminal(script, tmp_path) == ""
    else:
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
        assert (done.stdout, done.stderr) == ("", "")

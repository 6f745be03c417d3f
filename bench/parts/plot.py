"""Lines over time as a picture (SVG), drawn without a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _PANEL, _LEFT, _TOP, _GAP = 860, 150, 90, 40, 46
_INK, _FAINT, _GRID, _LINE = "#1f2a37", "#5b6b7d", "#dfe5ec", "#2e6fb7"
_STEPS = 4


@dataclass(frozen=True)
class Line:
    """What was measured, at each time."""

    name: str
    unit: str
    values: Sequence[float]


def drawn(title: str, minutes: Sequence[float], lines: Sequence[Line]) -> str:
    """One panel below the other, each from zero on, over the same time."""
    height = _TOP + len(lines) * (_PANEL + _GAP)
    parts = [_text(20, 24, title, ink=_INK, size=15)]
    for place, line in enumerate(lines):
        parts += _panel(_TOP + place * (_PANEL + _GAP), minutes, line)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def _panel(top: int, minutes: Sequence[float], line: Line) -> list[str]:
    most = max(line.values, default=0) * 1.15 or 1.0
    last = max(minutes, default=0) or 1.0
    right, bottom = _WIDTH - 20, top + 18 + _PANEL - 18
    parts = [_text(_LEFT, top + 10, f"{line.name} ({line.unit})", ink=_INK, size=12)]
    for step in range(_STEPS + 1):
        share = step / _STEPS
        y, x = bottom - share * (_PANEL - 18), _LEFT + share * (right - _LEFT)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(_text(_LEFT - 8, round(y + 4), f"{most * share:,.3g}", anchor="end"))
        parts.append(_text(round(x), bottom + 14, f"{last * share:.3g} min", anchor="middle"))
    points = [
        f"{_LEFT + at / last * (right - _LEFT):.1f},{bottom - value / most * (_PANEL - 18):.1f}"
        for at, value in zip(minutes, line.values, strict=True)
    ]
    parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{_LINE}" stroke-width="1.6"/>')
    return parts


def _text(x: int, y: int, text: str, *, ink: str = _FAINT, size: int = 10, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{ink}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'

"""A job graph as a picture: steps in columns by how far they are from their sources, and lines for what they read."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from headwater.graph.edges import Edge
from headwater.graph.graph import Graph
from headwater.graph.nodes import Node

_LETTER, _LINE, _HEIGHT = 7, 16, 44
_BESIDE, _BELOW, _MARGIN = 64, 18, 8
"""Pixels: of a letter, a line of text and a box; and between boxes."""
_FILLS = {"source": "#e3f1e3", "sink": "#e4ecf7", "step": "#f6f6f6"}


def picture(graph: Graph, node_ids: Iterable[int] | None = None) -> str:
    """The graph, or the part of it that these nodes read from, as SVG."""
    wanted = {node.id for node in graph} if node_ids is None else graph.above(node_ids)
    nodes = [node for node in graph if node.id in wanted]
    columns: list[list[Node]] = []
    depth: dict[int, int] = {}
    for node in nodes:
        depth[node.id] = max((depth[edge.source] + 1 for edge in node.inputs), default=0)
        columns += [[]] * (depth[node.id] + 1 - len(columns))
        columns[depth[node.id]] = [*columns[depth[node.id]], node]
    boxes: dict[int, tuple[int, int, int]] = {}
    left = height = _MARGIN
    for column in columns:
        width = 2 * _MARGIN + _LETTER * max(len(text) for node in column for text in _texts(graph, node))
        for row, node in enumerate(column):
            boxes[node.id] = left, _MARGIN + row * (_HEIGHT + _BELOW), width
        height = max(height, _MARGIN + len(column) * (_HEIGHT + _BELOW))
        left += width + _BESIDE
    size = f'width="{max(left - _BESIDE + _MARGIN, 2 * _MARGIN)}" height="{height}"'
    lines = [line for node in nodes for edge in node.inputs for line in _line(edge, boxes[edge.source], boxes[node.id])]
    drawn = [part for node in nodes for part in _box(graph, node, boxes[node.id])]
    style = 'font-family="sans-serif" font-size="12" fill="none" stroke="#555"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join([*lines, *drawn])}</svg>'


def _texts(graph: Graph, node: Node) -> tuple[str, str]:
    return graph.uid(node), node.operation


def _box(graph: Graph, node: Node, box: tuple[int, int, int]) -> Iterable[str]:
    x, y, width = box
    fill = _FILLS["source" if node.is_source else "sink" if node.is_sink else "step"]
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="4" fill="{fill}"/>'
    for number, (text, colour) in enumerate(zip(_texts(graph, node), ("#111", "#777"), strict=True)):
        yield _text(x + _MARGIN, y + _LINE + 2 + number * _LINE, text, colour)


def _line(edge: Edge, start: tuple[int, int, int], end: tuple[int, int, int]) -> Iterable[str]:
    x, y = start[0] + start[2], start[1] + _HEIGHT // 2
    to_x, to_y = end[0], end[1] + _HEIGHT // 2
    middle = (x + to_x) // 2
    yield f'<path d="M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}"/>'
    if edge.tag is not None:
        yield _text(x + 3, y - 4, edge.tag, "#777")


def _text(x: int, y: int, text: str, colour: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" stroke="none">{escape(text)}</text>'

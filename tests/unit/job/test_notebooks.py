"""What a notebook shows of environments, streams and jobs."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import headwater as hw

SVG = "{http://www.w3.org/2000/svg}"
LATE = hw.OutputTag("late <rows>", "n long")


def texts(svg: str) -> list[str]:
    return [str(one.text) for one in ET.fromstring(svg).iter(f"{SVG}text")]


def lines(svg: str) -> int:
    return len(list(ET.fromstring(svg).iter(f"{SVG}path")))


class Sorted(hw.ProcessFunction):
    def process(self, row, ctx):
        ctx.output(LATE, row)
        yield row


def job() -> tuple[hw.Environment, hw.Stream, hw.Stream]:
    env = hw.Environment("shown", engine="local")
    left = env.from_rows([(1,), (2,)], "n long", name="left")
    right = env.from_rows([(3,)], "n long", name="right")
    step = left.union(right).process(Sorted(), "n long").with_uid("sorted")
    step.sink(hw.connectors.memory(), name="end & all")
    step.side_output(LATE).sink(hw.connectors.memory(), name="late")
    return env, left, step


def test_environment_is_its_graph():
    env, _, _ = job()
    shown = texts(env._repr_svg_())
    assert [text for text in shown if text not in ("source", "process", "sink")] == [
        "late <rows>",
        "left",
        "right",
        "sorted",
        "end & all",
        "late",
    ]
    assert lines(env._repr_svg_()) == 4


def test_stream_is_what_its_rows_come_from():
    _, left, step = job()
    assert texts(left._repr_svg_()) == ["left", "source"]
    assert texts(step._repr_svg_()) == ["left", "source", "right", "source", "sorted", "process"]
    assert lines(step._repr_svg_()) == 2


def test_boxes_of_a_picture_are_apart():
    env, _, _ = job()
    boxes = [
        tuple(int(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in ET.fromstring(env._repr_svg_()).iter(f"{SVG}rect")
    ]
    for at, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[at + 1 :]:
            beside = x + width <= other_x or other_x + other_width <= x
            below = y + height <= other_y or other_y + other_height <= y
            assert beside or below


def test_job_is_its_status_with_the_graph():
    env, _, _ = job()
    shown = env.run()._repr_html_()
    assert shown.startswith("<div><b>shown</b> finished epoch=0")
    assert "<svg" in shown
    assert "<tr><td>sorted</td><td>3</td><td>6</td>" in shown
    assert "to late &lt;rows&gt;=3" in shown


def test_environment_without_steps_is_an_empty_picture():
    assert texts(hw.Environment("empty", engine="local")._repr_svg_()) == []

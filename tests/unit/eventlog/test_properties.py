"""Random use, compared with a plain list."""

from __future__ import annotations

import tempfile

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.eventlog import EventLog, Retention, conform, index

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 1), st.lists(st.text(max_size=20), max_size=40)),
        st.tuples(st.just("read"), st.integers(0, 400), st.integers(0, 400)),
        st.tuples(st.just("reopen"), st.integers(0, 1)),
        st.tuples(st.just("tear"), st.binary(max_size=60)),
        st.tuples(
            st.just("lose index"),
        ),
        st.tuples(st.just("retain"), st.booleans()),
    ),
    max_size=40,
)


@settings(examples(120), suppress_health_check=[HealthCheck.too_slow])
@given(actions=ACTIONS, segment_bytes=st.integers(1, 4000), frame_bytes=st.integers(50, 2000))
def test_log_behaves_as_a_list(actions, segment_bytes, frame_bytes):
    """Two writers and a reader that live long or are reopened; `kept` is where the list begins for readers."""
    was = conform.FRAME_BYTES, index.STRIDE_BYTES
    conform.FRAME_BYTES, index.STRIDE_BYTES = frame_bytes, 256
    try:
        with tempfile.TemporaryDirectory() as folder:
            run(EventLog(folder), actions, segment_bytes)
    finally:
        conform.FRAME_BYTES, index.STRIDE_BYTES = was


def run(log, actions, segment_bytes):
    log.create_topic("t", SCHEMA, segment_bytes=segment_bytes, retention=Retention(max_age_ms=10**15))
    writers = [log.topic("t"), log.topic("t")]
    reader = log.topic("t")
    folder = reader.path / "partition-0"
    model: list[tuple[int, str]] = []
    for action, *facts in actions:
        match action, facts:
            case "append", (who, texts):
                rows = [(len(model) + i, text) for i, text in enumerate(texts)]
                table = pa.table({"n": [n for n, _ in rows], "text": texts}, schema=SCHEMA)
                assert writers[who].append(table) == (len(model), len(model) + len(texts))
                model += rows
            case "read", (a, b):
                check_read(reader, model, a, b)
            case "reopen", (who,):
                writers[who] = log.topic("t")
                reader = log.topic("t")
            case "tear", (junk,):
                with max(folder.glob("*.segment")).open("ab") as file:
                    file.write(junk)
            case "lose index", ():
                for path in folder.glob("*.index"):
                    path.unlink()
            case "retain", (everything,):
                writers[0].apply_retention(now_ms=10**17 if everything else 0)
        assert reader.end_offsets() == {0: len(model)}
    start = reader.start_offsets()[0]
    check_read(log.topic("t"), model, start, len(model))
    check_read(reader, model, start, len(model))


def check_read(topic, model, a, b):
    first = topic.start_offsets()[0]
    a, b = sorted((min(max(a, first), len(model)), min(max(b, first), len(model))))
    batches = list(topic.read(0, a, b))
    assert all(batch.num_rows for batch in batches)
    read = [(n, text) for batch in batches for n, text in zip(*batch.to_pydict().values(), strict=True)]
    assert read == model[a:b]

import java.util.List;
import java.util.function.Function;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.streaming.util.TwoInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;

/** One operator of Flink in its harness: takes the actions of a case, and gives what they led to. */
abstract class FlinkProgram implements AutoCloseable {
    static final TypeInformation<Tuple2<String, Long>> ROW = Types.TUPLE(Types.STRING, Types.LONG);
    static final KeySelector<Tuple2<String, Long>, String> KEY = row -> row.f0;

    private static final ObjectMapper JSON = new ObjectMapper();

    private final AbstractStreamOperatorTestHarness<?> harness;
    private final List<OutputTag<Tuple2<String, Long>>> lateTags;

    /** The watermark of each side so far. */
    long left = Long.MIN_VALUE;
    long right = Long.MIN_VALUE;

    FlinkProgram(AbstractStreamOperatorTestHarness<?> harness, List<OutputTag<Tuple2<String, Long>>> lateTags)
            throws Exception {
        this.harness = harness;
        this.lateTags = lateTags;
        harness.open();
    }

    /** The key and value of a row. */
    static Tuple2<String, Long> row(JsonNode action) {
        return Tuple2.of(action.get(1).asText(), action.get(2).asLong());
    }

    static boolean isLeft(JsonNode action) {
        return action.get(0).asText().equals("left");
    }

    void act(JsonNode action) throws Exception {
        switch (action.get(0).asText()) {
            case "row", "left", "right" -> push(action, action.get(3).asLong());
            case "watermark" -> watermark(action.get(1).asLong(), action.get(1).asLong());
            case "watermark_left" -> watermark(action.get(1).asLong(), right);
            case "watermark_right" -> watermark(left, action.get(1).asLong());
            case "clock" -> {
                harness.setStateTtlProcessingTime(action.get(1).asLong());
                harness.setProcessingTime(action.get(1).asLong());
            }
            case "end" -> watermark(Watermark.MAX_WATERMARK.getTimestamp(), Watermark.MAX_WATERMARK.getTimestamp());
            default -> throw new IllegalArgumentException(action.toString());
        }
        // In a job, a processing-time timer that is due when it is set fires at once; here it takes a tick.
        harness.setProcessingTime(harness.getProcessingTime());
    }

    abstract void push(JsonNode action, long timestamp) throws Exception;

    /** Raises the watermarks of both sides, or of one; a stream alone is both. */
    private void watermark(long newLeft, long newRight) throws Exception {
        advance(newLeft, newRight);
        left = newLeft;
        right = newRight;
    }

    abstract void advance(long newLeft, long newRight) throws Exception;

    /** What is emitted, without its timestamp. Operators of the DataStream API are given functions that emit JSON. */
    ArrayNode shown(Object value) throws JsonProcessingException {
        return (ArrayNode) JSON.readTree((String) value);
    }

    /** Moves what the last action led to into `fired` and `late`. */
    void take(int step, ArrayNode fired, ArrayNode late) throws JsonProcessingException {
        for (StreamRecord<?> record : harness.extractOutputStreamRecords()) {
            ArrayNode row = shown(record.getValue()).insert(0, step);
            fired.add(record.hasTimestamp() ? row.add(record.getTimestamp()) : row);
        }
        harness.getOutput().clear();
        for (OutputTag<Tuple2<String, Long>> tag : lateTags) {
            var side = harness.getSideOutput(tag);
            while (side != null && !side.isEmpty()) {
                var record = side.poll();
                ArrayNode row = late.addArray().add(step);
                if (lateTags.size() > 1) {
                    row.add(tag.getId());
                }
                row.add(record.getValue().f0).add(record.getValue().f1).add(record.getTimestamp());
            }
        }
    }

    @Override
    public void close() throws Exception {
        harness.close();
    }

    /** An operator with one input: a stream, or the union of two, whose watermark is the smaller of theirs. */
    static class OneInput<T> extends FlinkProgram {
        private final OneInputStreamOperatorTestHarness<T, String> harness;
        private final Function<JsonNode, T> element;

        OneInput(
                OneInputStreamOperatorTestHarness<T, String> harness,
                Function<JsonNode, T> element,
                List<OutputTag<Tuple2<String, Long>>> lateTags)
                throws Exception {
            super(harness, lateTags);
            this.harness = harness;
            this.element = element;
        }

        @Override
        void push(JsonNode action, long timestamp) throws Exception {
            harness.processElement(element.apply(action), timestamp);
        }

        @Override
        void advance(long newLeft, long newRight) throws Exception {
            if (Math.min(newLeft, newRight) > Math.min(left, right)) {
                harness.processWatermark(Math.min(newLeft, newRight));
            }
        }
    }

    /** An operator with two inputs of the same type. */
    static class TwoInputs<T> extends FlinkProgram {
        private final TwoInputStreamOperatorTestHarness<T, T, ?> harness;
        private final Function<JsonNode, T> element;

        TwoInputs(
                TwoInputStreamOperatorTestHarness<T, T, ?> harness,
                Function<JsonNode, T> element,
                List<OutputTag<Tuple2<String, Long>>> lateTags)
                throws Exception {
            super(harness, lateTags);
            this.harness = harness;
            this.element = element;
        }

        @Override
        void push(JsonNode action, long timestamp) throws Exception {
            if (isLeft(action)) {
                harness.processElement1(element.apply(action), timestamp);
            } else {
                harness.processElement2(element.apply(action), timestamp);
            }
        }

        /** The side that is behind comes last, so that the operator's watermark moves once. */
        @Override
        void advance(long newLeft, long newRight) throws Exception {
            if (left >= right) {
                harness.processWatermark1(new Watermark(newLeft));
                harness.processWatermark2(new Watermark(newRight));
            } else {
                harness.processWatermark2(new Watermark(newRight));
                harness.processWatermark1(new Watermark(newLeft));
            }
        }
    }
}

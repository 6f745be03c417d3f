import java.util.List;
import java.util.function.Function;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.event.WatermarkEvent;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.io.PushingAsyncDataInput.DataOutput;
import org.apache.flink.streaming.runtime.streamrecord.LatencyMarker;
import org.apache.flink.streaming.runtime.streamrecord.RecordAttributes;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.StatusWatermarkValve;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.streaming.util.TwoInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;

/** One operator of Flink in its harness: takes the actions of a case, and gives what they led to. */
abstract class FlinkProgram implements AutoCloseable {
    static final TypeInformation<Tuple2<String, Long>> ROW = Types.TUPLE(Types.STRING, Types.LONG);
    static final KeySelector<Tuple2<String, Long>, String> KEY = row -> row.f0;

    private static final int LEFT = 0;
    private static final int RIGHT = 1;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final AbstractStreamOperatorTestHarness<?> harness;
    private final List<OutputTag<Tuple2<String, Long>>> lateTags;

    /** The watermark of each side so far: of the left one, and of the right one. */
    private final long[] watermarks = {Long.MIN_VALUE, Long.MIN_VALUE};

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
            case "row", "left", "right" -> {
                status(isLeft(action) ? LEFT : RIGHT, WatermarkStatus.ACTIVE);
                push(action, action.get(3).asLong());
            }
            case "watermark" -> raiseBoth(action.get(1).asLong());
            case "watermark_left" -> raise(LEFT, action.get(1).asLong());
            case "watermark_right" -> raise(RIGHT, action.get(1).asLong());
            case "idle_left" -> status(LEFT, WatermarkStatus.IDLE);
            case "idle_right" -> status(RIGHT, WatermarkStatus.IDLE);
            case "clock" -> {
                harness.setStateTtlProcessingTime(action.get(1).asLong());
                harness.setProcessingTime(action.get(1).asLong());
            }
            case "end" -> raiseBoth(Watermark.MAX_WATERMARK.getTimestamp());
            case "end_left" -> raise(LEFT, Watermark.MAX_WATERMARK.getTimestamp());
            case "end_right" -> raise(RIGHT, Watermark.MAX_WATERMARK.getTimestamp());
            default -> throw new IllegalArgumentException(action.toString());
        }
        // In a job, a processing-time timer that is due when it is set fires at once; here it takes a tick.
        harness.setProcessingTime(harness.getProcessingTime());
    }

    abstract void push(JsonNode action, long timestamp) throws Exception;

    /** The side that is behind comes last, so that the operator's watermark moves once. A stream alone is both. */
    private void raiseBoth(long timestamp) throws Exception {
        int ahead = watermarks[LEFT] >= watermarks[RIGHT] ? LEFT : RIGHT;
        raise(ahead, timestamp);
        raise(ahead == LEFT ? RIGHT : LEFT, timestamp);
    }

    /** In a job, the watermark of a side that is idle comes after the word that it is active again. */
    private void raise(int side, long timestamp) throws Exception {
        status(side, WatermarkStatus.ACTIVE);
        watermark(side, new Watermark(timestamp));
        watermarks[side] = timestamp;
    }

    abstract void watermark(int side, Watermark watermark) throws Exception;

    abstract void status(int side, WatermarkStatus status) throws Exception;

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

    /** An operator with one input: a stream, or the union of two, of which Flink's valve makes one watermark. */
    static class OneInput<T> extends FlinkProgram implements DataOutput<T> {
        private final OneInputStreamOperatorTestHarness<T, String> harness;
        private final Function<JsonNode, T> element;
        private final StatusWatermarkValve valve = new StatusWatermarkValve(2);

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
        void watermark(int side, Watermark watermark) throws Exception {
            valve.inputWatermark(watermark, side, this);
        }

        @Override
        void status(int side, WatermarkStatus status) throws Exception {
            valve.inputWatermarkStatus(status, side, this);
        }

        @Override
        public void emitWatermark(Watermark watermark) throws Exception {
            harness.processWatermark(watermark);
        }

        @Override
        public void emitWatermarkStatus(WatermarkStatus status) throws Exception {
            harness.processWatermarkStatus(status);
        }

        @Override
        public void emitRecord(StreamRecord<T> unused) {}

        @Override
        public void emitLatencyMarker(LatencyMarker unused) {}

        @Override
        public void emitRecordAttributes(RecordAttributes unused) {}

        @Override
        public void emitWatermark(WatermarkEvent unused) {}
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

        @Override
        void watermark(int side, Watermark watermark) throws Exception {
            if (side == LEFT) {
                harness.processWatermark1(watermark);
            } else {
                harness.processWatermark2(watermark);
            }
        }

        @Override
        void status(int side, WatermarkStatus status) throws Exception {
            if (side == LEFT) {
                harness.processWatermarkStatus1(status);
            } else {
                harness.processWatermarkStatus2(status);
            }
        }
    }
}

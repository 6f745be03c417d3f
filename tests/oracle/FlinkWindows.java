import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.delta.DeltaFunction;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.*;
import org.apache.flink.streaming.api.windowing.evictors.*;
import org.apache.flink.streaming.api.windowing.triggers.*;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Runs windowed programs on Flink's own window operator: cases as JSON lines in, what they emit as JSON lines out.
 *
 * <p>Each program is built with the DataStream API. The operator that the API makes is then driven by Flink's operator
 * harness, one action at a time, so that a watermark comes exactly between the rows it stands between. cases.py
 * describes the form of a case.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public class FlinkWindows {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TypeInformation<Tuple2<String, Long>> ROW = Types.TUPLE(Types.STRING, Types.LONG);
    private static final OutputTag<Tuple2<String, Long>> LATE = new OutputTag<>("late", ROW);
    private static final KeySelector<Tuple2<String, Long>, String> KEY = row -> row.f0;
    private static final DeltaFunction<Tuple2<String, Long>> GROWTH = (from, to) -> to.f1 - from.f1;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line; (line = in.readLine()) != null; ) {
            out.println(run(JSON.readTree(line)));
        }
        out.flush();
    }

    private static ObjectNode run(JsonNode spec) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        result.set("id", spec.get("id"));
        ArrayNode fired = result.putArray("fired");
        ArrayNode late = result.putArray("late");
        var built = (OneInputTransformation<Tuple2<String, Long>, String>) program(spec).getTransformation();
        var factory = built.getOperatorFactory();
        try (var harness = new KeyedOneInputStreamOperatorTestHarness<>(factory, KEY, Types.STRING)) {
            harness.open();
            int step = 0;
            for (JsonNode action : spec.get("actions")) {
                act(harness, action);
                // In a job, a processing-time timer that is due when it is set fires at once; here it takes a tick.
                harness.setProcessingTime(harness.getProcessingTime());
                for (StreamRecord<? extends String> record : harness.extractOutputStreamRecords()) {
                    ArrayNode row = (ArrayNode) JSON.readTree(record.getValue());
                    fired.add(row.insert(0, step).add(record.getTimestamp()));
                }
                harness.getOutput().clear();
                var side = harness.getSideOutput(LATE);
                while (side != null && !side.isEmpty()) {
                    var record = side.poll();
                    var row = record.getValue();
                    late.addArray().add(step).add(row.f0).add(row.f1).add(record.getTimestamp());
                }
                step++;
            }
        }
        return result;
    }

    private static void act(OneInputStreamOperatorTestHarness<Tuple2<String, Long>, ?> harness, JsonNode action)
            throws Exception {
        switch (action.get(0).asText()) {
            case "row" -> harness.processElement(
                    Tuple2.of(action.get(1).asText(), action.get(2).asLong()), action.get(3).asLong());
            case "watermark" -> harness.processWatermark(action.get(1).asLong());
            case "clock" -> harness.setProcessingTime(action.get(1).asLong());
            case "end" -> harness.processWatermark(Watermark.MAX_WATERMARK);
            default -> throw new IllegalArgumentException(action.toString());
        }
    }

    private static DataStream<String> program(JsonNode spec) {
        KeyedStream<Tuple2<String, Long>, String> keyed = StreamExecutionEnvironment.getExecutionEnvironment()
                .fromData(ROW, Tuple2.of("", 0L)).keyBy(KEY, Types.STRING);
        WindowedStream windowed = windowed(keyed, spec.get("window"));
        if (spec.hasNonNull("trigger")) {
            windowed.trigger(trigger(spec.get("trigger")));
        }
        if (spec.hasNonNull("evictor")) {
            windowed.evictor(evictor(spec.get("evictor")));
        }
        if (spec.get("lateness").asLong() > 0) {
            windowed.allowedLateness(Duration.ofMillis(spec.get("lateness").asLong()));
        }
        if (spec.get("late").asBoolean()) {
            windowed.sideOutputLateData(LATE);
        }
        String function = spec.get("function").asText();
        if (function.equals("list")) {
            return windowed.process(new Show<Tuple2<String, Long>>(row -> String.valueOf(row.f1)), Types.STRING);
        }
        Show<Long> show = new Show<>(String::valueOf);
        return windowed.aggregate(new Fold(function), show, Types.LONG, Types.LONG, Types.STRING);
    }

    private static WindowedStream windowed(KeyedStream<Tuple2<String, Long>, String> keyed, JsonNode spec) {
        Duration size = millis(spec, "size");
        Duration slide = millis(spec, "slide");
        Duration offset = millis(spec, "offset");
        Duration gap = millis(spec, "gap");
        String time = spec.path("clock").asBoolean() ? " on the clock" : "";
        return switch (spec.get("kind").asText() + time) {
            case "tumbling" -> keyed.window(TumblingEventTimeWindows.of(size, offset));
            case "tumbling on the clock" -> keyed.window(TumblingProcessingTimeWindows.of(size, offset));
            case "sliding" -> keyed.window(SlidingEventTimeWindows.of(size, slide, offset));
            case "sliding on the clock" -> keyed.window(SlidingProcessingTimeWindows.of(size, slide, offset));
            case "session" -> keyed.window(EventTimeSessionWindows.withGap(gap));
            case "session on the clock" -> keyed.window(ProcessingTimeSessionWindows.withGap(gap));
            case "count" -> spec.has("slide")
                    ? keyed.countWindow(spec.get("size").asLong(), spec.get("slide").asLong())
                    : keyed.countWindow(spec.get("size").asLong());
            case "global" -> keyed.window(GlobalWindows.create());
            default -> throw new IllegalArgumentException(spec.toString());
        };
    }

    private static Trigger trigger(JsonNode spec) {
        Trigger trigger = switch (spec.get("kind").asText()) {
            case "event_time" -> EventTimeTrigger.create();
            case "processing_time" -> ProcessingTimeTrigger.create();
            case "count" -> CountTrigger.of(spec.get("n").asLong());
            case "continuous" -> ContinuousEventTimeTrigger.of(millis(spec, "interval"));
            case "continuous_processing_time" -> ContinuousProcessingTimeTrigger.of(millis(spec, "interval"));
            case "delta" -> DeltaTrigger.of(
                    spec.get("threshold").asDouble(), GROWTH, ROW.createSerializer(new SerializerConfigImpl()));
            default -> throw new IllegalArgumentException(spec.toString());
        };
        return spec.path("purging").asBoolean() ? PurgingTrigger.of(trigger) : trigger;
    }

    private static Evictor evictor(JsonNode spec) {
        boolean after = spec.path("after").asBoolean();
        return switch (spec.get("kind").asText()) {
            case "count" -> CountEvictor.of(spec.get("n").asLong(), after);
            case "time" -> TimeEvictor.of(millis(spec, "size"), after);
            case "delta" -> DeltaEvictor.of(spec.get("threshold").asDouble(), GROWTH, after);
            default -> throw new IllegalArgumentException(spec.toString());
        };
    }

    private static Duration millis(JsonNode spec, String field) {
        return Duration.ofMillis(spec.path(field).asLong());
    }

    /** How a value is written. */
    interface Text<T> extends Serializable {
        String of(T value);
    }

    /** Emits [key, window start, window end, values] as JSON; a global window has no start and end. */
    static class Show<T> extends ProcessWindowFunction<T, String, String, Window> {
        private final Text<T> text;

        Show(Text<T> text) {
            this.text = text;
        }

        @Override
        public void process(String key, Context context, Iterable<T> values, Collector<String> out) {
            List<String> shown = new ArrayList<>();
            values.forEach(value -> shown.add(text.of(value)));
            String bounds =
                    context.window() instanceof TimeWindow time ? time.getStart() + "," + time.getEnd() : "null,null";
            out.collect("[\"" + key + "\"," + bounds + ",[" + String.join(",", shown) + "]]");
        }
    }

    /** Sum, count, min or max of the values. */
    static class Fold implements AggregateFunction<Tuple2<String, Long>, Long, Long> {
        private final String name;

        Fold(String name) {
            this.name = name;
        }

        @Override
        public Long createAccumulator() {
            return switch (name) {
                case "min" -> Long.MAX_VALUE;
                case "max" -> Long.MIN_VALUE;
                default -> 0L;
            };
        }

        @Override
        public Long add(Tuple2<String, Long> row, Long total) {
            return merge(total, name.equals("count") ? 1L : row.f1);
        }

        @Override
        public Long getResult(Long total) {
            return total;
        }

        @Override
        public Long merge(Long a, Long b) {
            return switch (name) {
                case "min" -> Math.min(a, b);
                case "max" -> Math.max(a, b);
                default -> a + b;
            };
        }
    }
}

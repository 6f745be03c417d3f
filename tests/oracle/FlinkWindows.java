import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.delta.DeltaFunction;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.streaming.api.windowing.assigners.*;
import org.apache.flink.streaming.api.windowing.evictors.*;
import org.apache.flink.streaming.api.windowing.triggers.*;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Windowed programs on keyed streams, built with the DataStream API. */
@SuppressWarnings({"unchecked", "rawtypes"})
class FlinkWindows {
    private static final OutputTag<Tuple2<String, Long>> LATE = new OutputTag<>("late", FlinkProgram.ROW);
    private static final DeltaFunction<Tuple2<String, Long>> GROWTH = (from, to) -> to.f1 - from.f1;

    static FlinkProgram windows(JsonNode spec) throws Exception {
        var built = (OneInputTransformation<Tuple2<String, Long>, String>) program(spec).getTransformation();
        var harness = new KeyedOneInputStreamOperatorTestHarness<>(
                built.getOperatorFactory(), FlinkProgram.KEY, Types.STRING);
        return new FlinkProgram.OneInput<>(harness, FlinkProgram::row, List.of(LATE));
    }

    private static DataStream<String> program(JsonNode spec) {
        KeyedStream<Tuple2<String, Long>, String> keyed = StreamExecutionEnvironment.getExecutionEnvironment()
                .fromData(FlinkProgram.ROW, Tuple2.of("", 0L)).keyBy(FlinkProgram.KEY, Types.STRING);
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
        if (!spec.get("kind").asText().equals("count")) {
            return keyed.window(assigner(spec));
        }
        return spec.has("slide")
                ? keyed.countWindow(spec.get("size").asLong(), spec.get("slide").asLong())
                : keyed.countWindow(spec.get("size").asLong());
    }

    /** What assigns windows; count windows have none of their own. */
    static WindowAssigner assigner(JsonNode spec) {
        Duration size = millis(spec, "size");
        Duration slide = millis(spec, "slide");
        Duration offset = millis(spec, "offset");
        Duration gap = millis(spec, "gap");
        String time = spec.path("clock").asBoolean() ? " on the clock" : "";
        return switch (spec.get("kind").asText() + time) {
            case "tumbling" -> TumblingEventTimeWindows.of(size, offset);
            case "tumbling on the clock" -> TumblingProcessingTimeWindows.of(size, offset);
            case "sliding" -> SlidingEventTimeWindows.of(size, slide, offset);
            case "sliding on the clock" -> SlidingProcessingTimeWindows.of(size, slide, offset);
            case "session" -> EventTimeSessionWindows.withGap(gap);
            case "session on the clock" -> ProcessingTimeSessionWindows.withGap(gap);
            case "global" -> GlobalWindows.create();
            default -> throw new IllegalArgumentException(spec.toString());
        };
    }

    /** A case's trigger, or null. */
    static Trigger trigger(JsonNode spec) {
        if (spec.isNull()) {
            return null;
        }
        Trigger trigger = switch (spec.get("kind").asText()) {
            case "event_time" -> EventTimeTrigger.create();
            case "processing_time" -> ProcessingTimeTrigger.create();
            case "count" -> CountTrigger.of(spec.get("n").asLong());
            case "continuous" -> ContinuousEventTimeTrigger.of(millis(spec, "interval"));
            case "continuous_processing_time" -> ContinuousProcessingTimeTrigger.of(millis(spec, "interval"));
            case "delta" -> DeltaTrigger.of(
                    spec.get("threshold").asDouble(),
                    GROWTH,
                    FlinkProgram.ROW.createSerializer(new SerializerConfigImpl()));
            default -> throw new IllegalArgumentException(spec.toString());
        };
        return spec.path("purging").asBoolean() ? PurgingTrigger.of(trigger) : trigger;
    }

    /** A case's evictor, or null. */
    static Evictor evictor(JsonNode spec) {
        if (spec.isNull()) {
            return null;
        }
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

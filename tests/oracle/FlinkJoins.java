import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.apache.flink.api.common.functions.CoGroupFunction;
import org.apache.flink.api.common.functions.JoinFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.streaming.api.transformations.TwoInputTransformation;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.streaming.util.KeyedTwoInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;
import org.apache.flink.util.TaggedUnion;

/** Joins of the DataStream API: interval joins, window joins and co-groups, as the API builds them. */
@SuppressWarnings({"unchecked", "rawtypes"})
class FlinkJoins {
    private static final OutputTag<Tuple2<String, Long>> LATE_LEFT = new OutputTag<>("left", FlinkProgram.ROW);
    private static final OutputTag<Tuple2<String, Long>> LATE_RIGHT = new OutputTag<>("right", FlinkProgram.ROW);

    static FlinkProgram interval(JsonNode spec) throws Exception {
        var joined = stream().keyBy(FlinkProgram.KEY, Types.STRING)
                .intervalJoin(stream().keyBy(FlinkProgram.KEY, Types.STRING))
                .between(millis(spec, "lower"), millis(spec, "upper"));
        if (!spec.get("lower_inclusive").asBoolean()) {
            joined = joined.lowerBoundExclusive();
        }
        if (!spec.get("upper_inclusive").asBoolean()) {
            joined = joined.upperBoundExclusive();
        }
        if (spec.get("late").asBoolean()) {
            joined = joined.sideOutputLeftLateData(LATE_LEFT).sideOutputRightLateData(LATE_RIGHT);
        }
        var built = (TwoInputTransformation<Tuple2<String, Long>, Tuple2<String, Long>, String>)
                joined.process(new Pairs(), Types.STRING).getTransformation();
        var operator = (TwoInputStreamOperator<Tuple2<String, Long>, Tuple2<String, Long>, String>)
                ((SimpleOperatorFactory<String>) built.getOperatorFactory()).getOperator();
        var harness = new KeyedTwoInputStreamOperatorTestHarness<>(
                operator, FlinkProgram.KEY, FlinkProgram.KEY, Types.STRING);
        return new FlinkProgram.TwoInputs<>(harness, FlinkProgram::row, List.of(LATE_LEFT, LATE_RIGHT));
    }

    /** A window join or a co-group: Flink runs both as a window operator over the union of the inputs. */
    static FlinkProgram windowed(JsonNode spec) throws Exception {
        var built = (OneInputTransformation<TaggedUnion<Tuple2<String, Long>, Tuple2<String, Long>>, String>)
                (spec.get("kind").asText().equals("cogroup") ? cogroup(spec) : join(spec)).getTransformation();
        var harness = new KeyedOneInputStreamOperatorTestHarness<>(
                built.getOperatorFactory(),
                (KeySelector<TaggedUnion<Tuple2<String, Long>, Tuple2<String, Long>>, String>)
                        built.getStateKeySelector(),
                (TypeInformation<String>) built.getStateKeyType());
        return new FlinkProgram.OneInput<>(harness, FlinkJoins::tagged, List.of());
    }

    private static DataStream<String> join(JsonNode spec) {
        JoinFunction<Tuple2<String, Long>, Tuple2<String, Long>, String> pairs = FlinkJoins::pair;
        return stream().join(stream())
                .where(FlinkProgram.KEY, Types.STRING)
                .equalTo(FlinkProgram.KEY, Types.STRING)
                .window(FlinkWindows.assigner(spec.get("window")))
                .trigger(FlinkWindows.trigger(spec.get("trigger")))
                .evictor(FlinkWindows.evictor(spec.get("evictor")))
                .allowedLateness(millis(spec, "lateness"))
                .apply(pairs, Types.STRING);
    }

    private static DataStream<String> cogroup(JsonNode spec) {
        return stream().coGroup(stream())
                .where(FlinkProgram.KEY, Types.STRING)
                .equalTo(FlinkProgram.KEY, Types.STRING)
                .window(FlinkWindows.assigner(spec.get("window")))
                .trigger(FlinkWindows.trigger(spec.get("trigger")))
                .evictor(FlinkWindows.evictor(spec.get("evictor")))
                .allowedLateness(millis(spec, "lateness"))
                .apply(new Groups(), Types.STRING);
    }

    private static DataStream<Tuple2<String, Long>> stream() {
        return StreamExecutionEnvironment.getExecutionEnvironment().fromData(FlinkProgram.ROW, Tuple2.of("", 0L));
    }

    private static TaggedUnion<Tuple2<String, Long>, Tuple2<String, Long>> tagged(JsonNode action) {
        return FlinkProgram.isLeft(action)
                ? TaggedUnion.one(FlinkProgram.row(action))
                : TaggedUnion.two(FlinkProgram.row(action));
    }

    private static String pair(Tuple2<String, Long> left, Tuple2<String, Long> right) {
        return "[\"" + left.f0 + "\"," + left.f1 + "," + right.f1 + "]";
    }

    private static Duration millis(JsonNode spec, String field) {
        return Duration.ofMillis(spec.get(field).asLong());
    }

    /** Emits [key, left value, right value]. */
    static class Pairs extends ProcessJoinFunction<Tuple2<String, Long>, Tuple2<String, Long>, String> {
        @Override
        public void processElement(
                Tuple2<String, Long> left, Tuple2<String, Long> right, Context context, Collector<String> out) {
            out.collect(pair(left, right));
        }
    }

    /** Emits [key, left values, right values]; a co-group of nothing, which evictors leave, shows no key. */
    static class Groups implements CoGroupFunction<Tuple2<String, Long>, Tuple2<String, Long>, String> {
        @Override
        public void coGroup(
                Iterable<Tuple2<String, Long>> lefts, Iterable<Tuple2<String, Long>> rights, Collector<String> out) {
            List<String> keys = new ArrayList<>();
            List<Long> leftValues = values(lefts, keys);
            List<Long> rightValues = values(rights, keys);
            String key = keys.isEmpty() ? null : "\"" + keys.get(0) + "\"";
            out.collect("[" + key + "," + leftValues + "," + rightValues + "]");
        }

        private static List<Long> values(Iterable<Tuple2<String, Long>> rows, List<String> keys) {
            List<Long> values = new ArrayList<>();
            for (Tuple2<String, Long> row : rows) {
                keys.add(row.f0);
                values.add(row.f1);
            }
            return values;
        }
    }
}

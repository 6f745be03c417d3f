import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;

/** Keyed state with a ttl, in a process function: each row does one thing to the state of its key. */
class FlinkTtl {
    static FlinkProgram ttl(JsonNode spec) throws Exception {
        KeySelector<Tuple4<String, String, String, Long>, String> key = row -> row.f0;
        var says = new Says(
                spec.get("state").asText(), spec.get("ttl").asLong(), spec.get("update").asText().equals("write"));
        var harness = new KeyedOneInputStreamOperatorTestHarness<>(new KeyedProcessOperator<>(says), key, Types.STRING);
        return new FlinkProgram.OneInput<>(harness, FlinkTtl::row, List.of());
    }

    /** The key, what is done, to which entry, and with which number. */
    private static Tuple4<String, String, String, Long> row(JsonNode action) {
        return Tuple4.of(
                action.get(1).asText(), action.get(4).asText(), action.get(5).asText(), action.get(2).asLong());
    }

    /** Emits [key, what was read], null for what reads nothing. */
    static class Says extends KeyedProcessFunction<String, Tuple4<String, String, String, Long>, String> {
        private final String kind;
        private final long millis;
        private final boolean onWrite;
        private transient ObjectMapper json;
        private transient ValueState<Long> value;
        private transient ListState<Long> list;
        private transient MapState<String, Long> map;
        private transient ReducingState<Long> reducing;
        private transient AggregatingState<Long, Long> aggregating;

        Says(String kind, long millis, boolean onWrite) {
            this.kind = kind;
            this.millis = millis;
            this.onWrite = onWrite;
        }

        @Override
        public void open(OpenContext unused) {
            json = new ObjectMapper();
            var context = getRuntimeContext();
            switch (kind) {
                case "value" -> value = context.getState(expiring(new ValueStateDescriptor<>("it", Types.LONG)));
                case "list" -> list = context.getListState(expiring(new ListStateDescriptor<>("it", Types.LONG)));
                case "map" ->
                    map = context.getMapState(expiring(new MapStateDescriptor<>("it", Types.STRING, Types.LONG)));
                case "reducing" -> reducing = context.getReducingState(
                        expiring(new ReducingStateDescriptor<>("it", Long::sum, Types.LONG)));
                default -> aggregating = context.getAggregatingState(
                        expiring(new AggregatingStateDescriptor<>("it", new Total(), Types.LONG)));
            }
        }

        private <S extends StateDescriptor<?, ?>> S expiring(S descriptor) {
            descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofMillis(millis))
                    .setUpdateType(
                            onWrite
                                    ? StateTtlConfig.UpdateType.OnCreateAndWrite
                                    : StateTtlConfig.UpdateType.OnReadAndWrite)
                    .setStateVisibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
                    .build());
            return descriptor;
        }

        @Override
        public void processElement(
                Tuple4<String, String, String, Long> row, Context unused, Collector<String> out) throws Exception {
            Object found = switch (kind) {
                case "value" -> ofValue(row);
                case "list" -> ofList(row);
                case "map" -> ofMap(row);
                case "reducing" -> ofReducing(row);
                default -> ofAggregating(row);
            };
            out.collect("[\"" + row.f0 + "\"," + json.writeValueAsString(found) + "]");
        }

        private Object ofValue(Tuple4<String, String, String, Long> row) throws Exception {
            switch (row.f1) {
                case "set" -> value.update(row.f3);
                case "clear" -> value.clear();
                default -> {
                    return value.value();
                }
            }
            return null;
        }

        private Object ofList(Tuple4<String, String, String, Long> row) throws Exception {
            switch (row.f1) {
                case "add" -> list.add(row.f3);
                case "add_all" -> list.addAll(List.of(row.f3, row.f3 + 1));
                case "update" -> list.update(List.of(row.f3, row.f3 + 1));
                case "clear" -> list.clear();
                default -> {
                    return all(list.get());
                }
            }
            return null;
        }

        private Object ofMap(Tuple4<String, String, String, Long> row) throws Exception {
            switch (row.f1) {
                case "put" -> map.put(row.f2, row.f3);
                case "put_all" -> map.putAll(new HashMap<>(Map.of("x", row.f3, "y", row.f3 + 1)));
                case "remove" -> map.remove(row.f2);
                case "clear" -> map.clear();
                case "get" -> {
                    return map.get(row.f2);
                }
                case "contains" -> {
                    return map.contains(row.f2);
                }
                case "keys" -> {
                    return all(map.keys());
                }
                case "values" -> {
                    return all(map.values());
                }
                case "is_empty" -> {
                    return map.isEmpty();
                }
                default -> {
                    List<List<Object>> found = new ArrayList<>();
                    for (Map.Entry<String, Long> entry : map.entries()) {
                        found.add(List.of(entry.getKey(), entry.getValue()));
                    }
                    return found;
                }
            }
            return null;
        }

        private Object ofReducing(Tuple4<String, String, String, Long> row) throws Exception {
            switch (row.f1) {
                case "add" -> reducing.add(row.f3);
                case "clear" -> reducing.clear();
                default -> {
                    return reducing.get();
                }
            }
            return null;
        }

        private Object ofAggregating(Tuple4<String, String, String, Long> row) throws Exception {
            switch (row.f1) {
                case "add" -> aggregating.add(row.f3);
                case "clear" -> aggregating.clear();
                default -> {
                    return aggregating.get();
                }
            }
            return null;
        }

        private static <T> List<T> all(Iterable<T> found) {
            List<T> all = new ArrayList<>();
            if (found != null) {
                found.forEach(all::add);
            }
            return all;
        }
    }

    /** The sum, and as the result a hundred times that, which shows that accumulators are what is kept. */
    static class Total implements AggregateFunction<Long, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Long value, Long accumulator) {
            return accumulator + value;
        }

        @Override
        public Long getResult(Long accumulator) {
            return accumulator * 100;
        }

        @Override
        public Long merge(Long left, Long right) {
            return left + right;
        }
    }
}

import java.util.List;

import org.apache.flink.api.common.functions.AbstractRichFunction;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.util.KeyedTwoInputStreamOperatorTestHarness;
import org.apache.flink.streaming.util.TwoInputStreamOperatorTestHarness;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.generated.GeneratedJoinCondition;
import org.apache.flink.table.runtime.generated.JoinCondition;
import org.apache.flink.table.runtime.operators.join.stream.StreamingJoinOperator;
import org.apache.flink.table.runtime.operators.join.stream.utils.JoinInputSideSpec;
import org.apache.flink.table.runtime.operators.join.temporal.TemporalRowTimeJoinOperator;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.RowKind;

/** Joins of Flink SQL: regular joins and event-time temporal joins, the operators that the planner would choose. */
class FlinkTableJoins {
    private static final LogicalType STRING = new VarCharType(VarCharType.MAX_LENGTH);
    private static final LogicalType LONG = new BigIntType();
    private static final InternalTypeInfo<RowData> KEY = InternalTypeInfo.ofFields(STRING);
    private static final boolean[] NULL_KEYS_MATCH_NOTHING = {true};

    /** A join on equal keys alone: both inputs have a key and a value, and no unique key. */
    static FlinkProgram regular(JsonNode spec) throws Exception {
        InternalTypeInfo<RowData> type = InternalTypeInfo.ofFields(STRING, LONG);
        String how = spec.get("how").asText();
        long ttl = spec.path("ttl").asLong();
        var operator = new StreamingJoinOperator(
                type,
                type,
                new EqualKeys(),
                JoinInputSideSpec.withoutUniqueKey(),
                JoinInputSideSpec.withoutUniqueKey(),
                how.equals("left") || how.equals("full"),
                how.equals("right") || how.equals("full"),
                NULL_KEYS_MATCH_NOTHING,
                ttl,
                ttl);
        var harness = harness(operator, InternalTypeInfo.ofFields(STRING, LONG, STRING, LONG));
        return new FlinkProgram.TwoInputs<>(harness, FlinkTableJoins::changed, List.of()) {
            @Override
            ArrayNode shown(Object value) {
                RowData row = (RowData) value;
                ArrayNode shown = JsonNodeFactory.instance.arrayNode().add(row.getRowKind().shortString());
                String key = row.isNullAt(0) ? text(row, 2) : text(row, 0);
                return shown.add(key).add(number(row, 1)).add(number(row, 3));
            }
        };
    }

    /** Rows with a key, a value and the time of the row; on the right side, the time from which the version holds. */
    static FlinkProgram temporal(JsonNode spec) throws Exception {
        InternalTypeInfo<RowData> type = InternalTypeInfo.ofFields(STRING, LONG, LONG);
        boolean outer = spec.get("how").asText().equals("left");
        var operator = new TemporalRowTimeJoinOperator(type, type, new EqualKeys(), 2, 2, 0, 0, outer);
        var harness = harness(operator, InternalTypeInfo.ofFields(STRING, LONG, LONG, STRING, LONG, LONG));
        return new FlinkProgram.TwoInputs<>(harness, FlinkTableJoins::timed, List.of()) {
            @Override
            ArrayNode shown(Object value) {
                RowData row = (RowData) value;
                ArrayNode shown = JsonNodeFactory.instance.arrayNode().add(text(row, 0));
                return shown.add(number(row, 1)).add(number(row, 4)).add(number(row, 2));
            }
        };
    }

    private static TwoInputStreamOperatorTestHarness<RowData, RowData, RowData> harness(
            TwoInputStreamOperator<RowData, RowData, RowData> operator, InternalTypeInfo<RowData> output)
            throws Exception {
        KeySelector<RowData, RowData> selector = row -> {
            GenericRowData key = GenericRowData.of(row.isNullAt(0) ? null : row.getString(0));
            return KEY.toRowSerializer().toBinaryRow(key, true);
        };
        var harness = new KeyedTwoInputStreamOperatorTestHarness<>(operator, selector, selector, KEY);
        harness.setup(output.toSerializer());
        return harness;
    }

    private static RowData changed(JsonNode action) {
        return GenericRowData.ofKind(kind(action), key(action), action.get(2).asLong());
    }

    private static RowData timed(JsonNode action) {
        return GenericRowData.ofKind(kind(action), key(action), action.get(2).asLong(), action.get(3).asLong());
    }

    private static StringData key(JsonNode action) {
        return action.get(1).isNull() ? null : StringData.fromString(action.get(1).asText());
    }

    private static RowKind kind(JsonNode action) {
        return switch (action.path(4).asText("+I")) {
            case "+I" -> RowKind.INSERT;
            case "-U" -> RowKind.UPDATE_BEFORE;
            case "+U" -> RowKind.UPDATE_AFTER;
            case "-D" -> RowKind.DELETE;
            default -> throw new IllegalArgumentException(action.toString());
        };
    }

    private static String text(RowData row, int column) {
        return row.isNullAt(column) ? null : row.getString(column).toString();
    }

    private static Long number(RowData row, int column) {
        return row.isNullAt(column) ? null : row.getLong(column);
    }

    /** The condition of a join on keys: the harness hands over rows of the same key only. */
    static class EqualKeys extends GeneratedJoinCondition {
        EqualKeys() {
            super("EqualKeys", "", new Object[0]);
        }

        @Override
        public JoinCondition newInstance(ClassLoader loader) {
            return new Always();
        }
    }

    static class Always extends AbstractRichFunction implements JoinCondition {
        @Override
        public boolean apply(RowData left, RowData right) {
            return true;
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.flink.api.dag.Transformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.StreamOperatorFactory;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.operators.CodeGenOperatorFactory;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.RowType;

/**
 * Evaluates expressions with Flink SQL: a line with the tables, then a line for each case in; what each gives out.
 *
 * <p>Flink's planner checks an expression and writes the operator that computes it. Its harness takes one row at a
 * time, so that an expression that fails for one row still has results for the others. cases.py describes the form.
 */
public class FlinkExpressions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final StreamTableEnvironment tables;
    private final Map<String, List<RowData>> rows = new HashMap<>();

    private FlinkExpressions() {
        tables = StreamTableEnvironment.create(StreamExecutionEnvironment.getExecutionEnvironment());
        tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // Flink prints the code that it could not compile
        FlinkExpressions program = new FlinkExpressions();
        for (JsonNode table : JSON.readTree(in.readLine())) {
            program.define(table);
        }
        for (String line; (line = in.readLine()) != null; ) {
            out.println(program.run(JSON.readTree(line)));
        }
    }

    private void define(JsonNode table) {
        String name = table.get("name").asText();
        tables.executeSql("CREATE TEMPORARY TABLE " + name + " (" + table.get("columns").asText()
                + ") WITH ('connector' = 'datagen')");
        LogicalType type = tables.from(name).getResolvedSchema().toPhysicalRowDataType().getLogicalType();
        List<RowData> made = new ArrayList<>();
        table.get("rows").forEach(row -> made.add((RowData) read(row, type)));
        rows.put(name, made);
    }

    private ObjectNode run(JsonNode spec) {
        ObjectNode result = JSON.createObjectNode();
        Table table;
        StreamOperatorFactory<RowData> factory;
        try {
            table = tables.sqlQuery(
                    "SELECT " + spec.get("expression").asText() + " AS `r`, 1 AS `other` FROM " + spec.get("table").asText());
            factory = operator(tables.toDataStream(table).getTransformation());
        } catch (Throwable refused) {
            return result.put("refused", message(refused));
        }
        LogicalType type = table.getResolvedSchema().getColumnDataTypes().get(0).getLogicalType();
        result.put("type", type.copy(true).asSummaryString());
        ArrayNode values = result.putArray("values");
        OneInputStreamOperatorTestHarness<RowData, RowData> harness = null;
        for (RowData row : rows.get(spec.get("table").asText())) {
            try {
                if (harness == null) {
                    harness = new OneInputStreamOperatorTestHarness<>(factory, 1, 1, 0);
                    harness.open();
                }
                harness.processElement(row, 0);
                RowData given = (RowData) ((StreamRecord<?>) harness.getOutput().poll()).getValue();
                values.addObject()
                        .set("value", shown(RowData.createFieldGetter(type, 0).getFieldOrNull(given), type));
            } catch (Throwable failed) {
                harness = null;
                values.addObject().put("error", message(failed));
            }
        }
        return result;
    }

    @SuppressWarnings("unchecked")
    private static StreamOperatorFactory<RowData> operator(Transformation<?> last) {
        for (Transformation<?> found = last; ; found = found.getInputs().get(0)) {
            if (found instanceof OneInputTransformation<?, ?> step
                    && step.getOperatorFactory() instanceof CodeGenOperatorFactory<?>
                    && step.getName().startsWith("Calc")) {
                return (StreamOperatorFactory<RowData>) step.getOperatorFactory();
            }
        }
    }

    private static String message(Throwable failed) {
        Throwable cause = failed;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        String text = cause.getClass().getSimpleName() + ": " + cause.getMessage();
        return text.substring(0, Math.min(200, text.length())).split("\n")[0];
    }

    private static Object read(JsonNode given, LogicalType type) {
        if (given == null || given.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return given.asBoolean();
            case TINYINT:
                return (byte) given.asInt();
            case SMALLINT:
                return (short) given.asInt();
            case INTEGER:
                return given.asInt();
            case BIGINT:
                return given.asLong();
            case FLOAT:
                return Float.valueOf(given.asText());
            case DOUBLE:
                return Double.valueOf(given.asText());
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return DecimalData.fromBigDecimal(
                        new BigDecimal(given.asText()), decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                return StringData.fromString(given.asText());
            case BINARY:
            case VARBINARY:
                return HexFormat.of().parseHex(given.asText());
            case DATE:
                return (int) LocalDate.parse(given.asText()).toEpochDay();
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return TimestampData.fromLocalDateTime(LocalDateTime.parse(given.asText()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return TimestampData.fromInstant(Instant.parse(given.asText() + "Z"));
            case ARRAY:
                List<Object> items = new ArrayList<>();
                given.forEach(item -> items.add(read(item, type.getChildren().get(0))));
                return new GenericArrayData(items.toArray());
            case MAP:
                Map<Object, Object> pairs = new LinkedHashMap<>();
                given.forEach(pair -> pairs.put(
                        read(pair.get(0), type.getChildren().get(0)), read(pair.get(1), type.getChildren().get(1))));
                return new GenericMapData(pairs);
            case ROW:
                GenericRowData row = new GenericRowData(type.getChildren().size());
                for (int at = 0; at < row.getArity(); at++) {
                    row.setField(at, read(given.get(at), type.getChildren().get(at)));
                }
                return row;
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }

    private static JsonNode shown(Object value, LogicalType type) {
        if (value == null) {
            return NODES.nullNode();
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return NODES.booleanNode((Boolean) value);
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
            case INTERVAL_YEAR_MONTH:
            case INTERVAL_DAY_TIME:
                return NODES.numberNode(((Number) value).longValue());
            case VARBINARY:
            case BINARY:
                return NODES.textNode(HexFormat.of().formatHex((byte[]) value));
            case DATE:
                return NODES.textNode(LocalDate.ofEpochDay((Integer) value).toString());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return NODES.textNode(((TimestampData) value).toLocalDateTime().toString());
            case ARRAY:
                ArrayNode items = NODES.arrayNode();
                ArrayData array = (ArrayData) value;
                var item = ArrayData.createElementGetter(type.getChildren().get(0));
                for (int at = 0; at < array.size(); at++) {
                    items.add(shown(item.getElementOrNull(array, at), type.getChildren().get(0)));
                }
                return items;
            case MAP:
                MapData map = (MapData) value;
                ArrayNode pairs = NODES.arrayNode();
                var key = ArrayData.createElementGetter(((MapType) type).getKeyType());
                var of = ArrayData.createElementGetter(((MapType) type).getValueType());
                for (int at = 0; at < map.size(); at++) {
                    pairs.addArray()
                            .add(shown(key.getElementOrNull(map.keyArray(), at), ((MapType) type).getKeyType()))
                            .add(shown(of.getElementOrNull(map.valueArray(), at), ((MapType) type).getValueType()));
                }
                return pairs;
            case ROW:
                ArrayNode fields = NODES.arrayNode();
                List<LogicalType> types = ((RowType) type).getChildren();
                for (int at = 0; at < types.size(); at++) {
                    fields.add(shown(RowData.createFieldGetter(types.get(at), at).getFieldOrNull((RowData) value), types.get(at)));
                }
                return fields;
            default:
                return NODES.textNode(value.toString());
        }
    }
}

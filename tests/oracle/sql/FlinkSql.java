import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.apache.flink.client.deployment.executors.PipelineExecutorUtils;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.PipelineExecutor;
import org.apache.flink.core.execution.PipelineExecutorFactory;
import org.apache.flink.core.execution.PipelineExecutorServiceLoader;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.runtime.typeutils.ExternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs statements with Flink SQL: a line with a case in, a line with the table that its changelog comes to out.
 *
 * <p>Rows come in the order in which they are given, and the watermark follows every single one, so that which rows are
 * late is certain. sql_cases.py describes the form.
 */
public class FlinkSql {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final MiniCluster CLUSTER = new MiniCluster(new MiniClusterConfiguration.Builder()
            .withRandomPorts().setNumTaskManagers(1).setNumSlotsPerTaskManager(1).build());

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // Flink prints the code that it could not compile
        CLUSTER.start();
        for (String line; (line = in.readLine()) != null; ) {
            out.println(run(JSON.readTree(line)));
        }
        CLUSTER.close();
    }

    /** Runs all jobs on one cluster; Flink would start one for each. */
    private static class OneCluster implements PipelineExecutorServiceLoader, PipelineExecutorFactory {
        @Override
        public PipelineExecutorFactory getExecutorFactory(Configuration settings) {
            return this;
        }

        @Override
        public Stream<String> getExecutorNames() {
            return Stream.of(getName());
        }

        @Override
        public String getName() {
            return "one-cluster";
        }

        @Override
        public boolean isCompatibleWith(Configuration settings) {
            return true;
        }

        @Override
        public PipelineExecutor getExecutor(Configuration settings) {
            return (pipeline, given, loader) -> {
                StreamGraph job = PipelineExecutorUtils.getStreamGraph(pipeline, given);
                return CLUSTER.submitJob(job).thenApply(submitted -> new MiniClusterJobClient(
                        submitted.getJobID(), CLUSTER, loader, MiniClusterJobClient.JobFinalizationBehavior.NOTHING));
            };
        }
    }

    private static ObjectNode run(JsonNode spec) {
        ObjectNode result = JSON.createObjectNode();
        Configuration settings = new Configuration();
        settings.setString("pipeline.auto-watermark-interval", "0 ms");
        settings.setString("restart-strategy.type", "disable");
        settings.setString("execution.target", "one-cluster");
        StreamExecutionEnvironment env =
                new StreamExecutionEnvironment(new OneCluster(), settings, FlinkSql.class.getClassLoader());
        env.setParallelism(1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        spec.get("tables").properties().forEach(named -> define(env, tables, named.getKey(), named.getValue()));
        Table table;
        TableResult started;
        try {
            table = tables.sqlQuery(spec.get("statement").asText());
            started = table.execute();
        } catch (Throwable refused) {
            return result.put("refused", message(refused));
        }
        List<Column> columns = table.getResolvedSchema().getColumns();
        ArrayNode shown = NODES.arrayNode();
        for (Column column : columns) {
            String type = column.getDataType().getLogicalType().copy(true).asSummaryString();
            shown.addArray().add(column.getName()).add(type);
        }
        List<Row> rows = new ArrayList<>();
        try (CloseableIterator<Row> changes = started.collect()) {
            while (changes.hasNext()) {
                apply(changes.next(), rows);
            }
        } catch (Throwable failed) {
            return result.put("failed", message(failed));
        }
        result.set("columns", shown);
        ArrayNode given = result.putArray("rows");
        for (Row row : rows) {
            ArrayNode values = given.addArray();
            for (int at = 0; at < columns.size(); at++) {
                values.add(shown(row.getField(at), columns.get(at).getDataType().getLogicalType()));
            }
        }
        return result;
    }

    private static void apply(Row change, List<Row> rows) {
        RowKind kind = change.getKind();
        change.setKind(RowKind.INSERT);
        if (kind == RowKind.INSERT || kind == RowKind.UPDATE_AFTER) {
            rows.add(change);
        } else if (!rows.remove(change)) {
            throw new IllegalStateException("takes back a row that is not there: " + change);
        }
    }

    private static void define(StreamExecutionEnvironment env, StreamTableEnvironment tables, String name, JsonNode table) {
        Schema.Builder schema = Schema.newBuilder();
        List<DataTypes.Field> fields = new ArrayList<>();
        List<DataType> types = new ArrayList<>();
        for (JsonNode column : table.get("columns")) {
            String type = column.get(1).asText();
            schema.column(column.get(0).asText(), type);
            DataType parsed = parsed(tables, type);
            types.add(parsed);
            fields.add(DataTypes.FIELD(column.get(0).asText(), parsed));
        }
        if (table.has("time")) {
            String time = table.get("time").asText();
            String delay = String.format("%.3f", table.get("delay_ms").asLong() / 1000.0);
            schema.watermark(time, "`" + time + "` - INTERVAL '" + delay + "' SECOND");
        }
        boolean keyed = table.has("key");
        if (keyed) {
            List<String> key = new ArrayList<>();
            table.get("key").forEach(column -> key.add(column.asText()));
            schema.primaryKey(key);
        }
        boolean before = false;
        List<Row> rows = new ArrayList<>();
        for (int at = 0; at < table.get("rows").size(); at++) {
            JsonNode given = table.get("rows").get(at);
            Row row = new Row(types.size());
            for (int column = 0; column < types.size(); column++) {
                row.setField(column, read(given.get(column), types.get(column)));
            }
            if (table.has("kinds")) {
                row.setKind(kind(table.get("kinds").get(at).asText()));
                before |= row.getKind() == RowKind.UPDATE_BEFORE;
            }
            rows.add(row);
        }
        if (table.has("lookup")) {
            FlinkLookup.TABLES.put(name, rows);
            tables.createTemporaryTable(name, TableDescriptor.forConnector("rows")
                    .schema(schema.build()).option(FlinkLookup.NAME, name).build());
            return;
        }
        DataType whole = DataTypes.ROW(fields.toArray(new DataTypes.Field[0])).notNull();
        DataStream<Row> stream = env.fromData(rows, ExternalTypeInfo.of(whole));
        ChangelogMode mode = !table.has("kinds") ? ChangelogMode.insertOnly()
                : before || !keyed ? ChangelogMode.all() : ChangelogMode.upsert();
        tables.createTemporaryView(name, tables.fromChangelogStream(stream, schema.build(), mode));
    }

    private static DataType parsed(StreamTableEnvironment tables, String type) {
        return tables.sqlQuery("SELECT CAST(NULL AS " + type.replace(" NOT NULL", "") + ") AS c")
                .getResolvedSchema().getColumnDataTypes().get(0);
    }

    private static RowKind kind(String text) {
        for (RowKind kind : RowKind.values()) {
            if (kind.shortString().equals(text)) {
                return kind;
            }
        }
        throw new IllegalArgumentException(text);
    }

    private static String message(Throwable failed) {
        Throwable cause = failed;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        String text = cause.getClass().getSimpleName() + ": " + cause.getMessage();
        return text.substring(0, Math.min(300, text.length())).split("\n")[0];
    }

    private static Object read(JsonNode given, DataType dtype) {
        if (given == null || given.isNull()) {
            return null;
        }
        LogicalType type = dtype.getLogicalType();
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
                return new BigDecimal(given.asText());
            case CHAR:
            case VARCHAR:
                return given.asText();
            case BINARY:
            case VARBINARY:
                return HexFormat.of().parseHex(given.asText());
            case DATE:
                return LocalDate.parse(given.asText());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return LocalDateTime.parse(given.asText());
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return Instant.parse(given.asText() + "Z");
            case ARRAY:
                List<Object> items = new ArrayList<>();
                DataType item = dtype.getChildren().get(0);
                given.forEach(one -> items.add(read(one, item)));
                Object array = java.lang.reflect.Array.newInstance(item.getConversionClass(), items.size());
                for (int at = 0; at < items.size(); at++) {
                    java.lang.reflect.Array.set(array, at, items.get(at));
                }
                return array;
            case MAP:
                Map<Object, Object> pairs = new LinkedHashMap<>();
                given.forEach(pair -> pairs.put(
                        read(pair.get(0), dtype.getChildren().get(0)), read(pair.get(1), dtype.getChildren().get(1))));
                return pairs;
            case ROW:
                Row row = new Row(dtype.getChildren().size());
                for (int at = 0; at < row.getArity(); at++) {
                    row.setField(at, read(given.get(at), dtype.getChildren().get(at)));
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
                return NODES.numberNode(((Number) value).longValue());
            case DECIMAL:
                return NODES.textNode(((BigDecimal) value).toPlainString());
            case VARBINARY:
            case BINARY:
                return NODES.textNode(HexFormat.of().formatHex((byte[]) value));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return NODES.textNode(LocalDateTime.ofInstant((Instant) value, ZoneOffset.UTC).toString());
            case TIME_WITHOUT_TIME_ZONE:
                return NODES.textNode(((LocalTime) value).toString());
            case ARRAY:
                ArrayNode items = NODES.arrayNode();
                for (int at = 0; at < java.lang.reflect.Array.getLength(value); at++) {
                    items.add(shown(java.lang.reflect.Array.get(value, at), type.getChildren().get(0)));
                }
                return items;
            case MULTISET:
            case MAP:
                ArrayNode pairs = NODES.arrayNode();
                ((Map<?, ?>) value).forEach((key, of) -> pairs.addArray()
                        .add(shown(key, type.getChildren().get(0)))
                        .add(type.getChildren().size() > 1
                                ? shown(of, type.getChildren().get(1)) : NODES.numberNode(((Number) of).longValue())));
                return pairs;
            case ROW:
                ArrayNode fields = NODES.arrayNode();
                for (int at = 0; at < type.getChildren().size(); at++) {
                    fields.add(shown(((Row) value).getField(at), type.getChildren().get(at)));
                }
                return fields;
            default:
                return NODES.textNode(value.toString());
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

import org.apache.flink.client.deployment.executors.PipelineExecutorUtils;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
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
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs queries with Flink SQL on one cluster in this process: a line with a query in, a line with its result out.
 *
 * <p>A query has its "text", the "tables" before it, "settings", and whether to "collect". The result has the time that
 * the job ran, in milliseconds, and if it is collected the rows that its changelog comes to, each with how often it is
 * there.
 */
public class FlinkNexmark {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static MiniCluster cluster;

    /** The function that query 14 calls, as Nexmark's project has it. */
    public static class CountChar extends ScalarFunction {
        public long eval(String text, String character) {
            long count = 0;
            if (text != null) {
                for (int at = 0; at < text.length(); at++) {
                    if (text.charAt(at) == character.charAt(0)) {
                        count++;
                    }
                }
            }
            return count;
        }
    }

    /** The table that query 13 looks keys up in: lines of JSON, held in memory. Flink's own file connector only scans. */
    public static class SideInput implements DynamicTableSourceFactory {
        private static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();

        @Override
        public String factoryIdentifier() {
            return "side-input";
        }

        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return Set.of(PATH);
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return Set.of();
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            return new Looked(FactoryUtil.createTableFactoryHelper(this, context).getOptions().get(PATH));
        }
    }

    private record Looked(String path) implements LookupTableSource {
        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return LookupFunctionProvider.of(new LookUp(path));
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "side input";
        }
    }

    /** Finds the row of a key. */
    public static class LookUp extends LookupFunction {
        private final String path;
        private transient Map<Long, RowData> rows;

        public LookUp(String path) {
            this.path = path;
        }

        @Override
        public void open(FunctionContext context) throws Exception {
            rows = new HashMap<>();
            for (String line : Files.readAllLines(Path.of(path))) {
                JsonNode row = JSON.readTree(line);
                long key = row.get("key").asLong();
                rows.put(key, GenericRowData.of(key, StringData.fromString(row.get("value").asText())));
            }
        }

        @Override
        public Collection<RowData> lookup(RowData key) {
            RowData found = rows.get(key.getLong(0));
            return found == null ? List.of() : List.of(found);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Configuration settings = settings(JSON.readTree(in.readLine()));
        cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(settings)
                .withRandomPorts().setNumTaskManagers(1).setNumSlotsPerTaskManager(2).build());
        cluster.start();
        try {
            for (String line; (line = in.readLine()) != null; ) {
                out.println(run(JSON.readTree(line)));
            }
        } catch (Exception failed) {
            failed.printStackTrace();
            System.exit(1); // threads of the cluster go on
        }
        cluster.close();
    }

    private static Configuration settings(JsonNode given) {
        Configuration settings = new Configuration();
        given.properties().forEach(one -> settings.setString(one.getKey(), one.getValue().asText()));
        return settings;
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
            return (pipeline, given, loader) -> cluster.submitJob(PipelineExecutorUtils.getStreamGraph(pipeline, given))
                    .thenApply(job -> new MiniClusterJobClient(
                            job.getJobID(), cluster, loader, MiniClusterJobClient.JobFinalizationBehavior.NOTHING));
        }
    }

    private static ObjectNode run(JsonNode asked) throws Exception {
        Configuration settings = settings(asked.get("settings"));
        settings.setString("execution.target", "one-cluster");
        StreamExecutionEnvironment env =
                new StreamExecutionEnvironment(new OneCluster(), settings, FlinkNexmark.class.getClassLoader());
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        tables.createTemporarySystemFunction("count_char", CountChar.class);
        for (JsonNode statement : asked.get("tables")) {
            tables.executeSql(statement.asText());
        }
        Table table = tables.sqlQuery(asked.get("text").asText());
        ObjectNode result = JSON.createObjectNode();
        if (asked.get("collect").asBoolean()) {
            result.set("rows", rows(table));
            return result;
        }
        Schema schema = Schema.newBuilder().fromResolvedSchema(table.getResolvedSchema()).build();
        return result.put("ms", table.insertInto(TableDescriptor.forConnector("blackhole").schema(schema).build())
                .execute().getJobClient().get().getJobExecutionResult().get().getNetRuntime());
    }

    private static ArrayNode rows(Table table) throws Exception {
        Map<ArrayNode, Long> counts = new HashMap<>();
        try (CloseableIterator<Row> changes = table.execute().collect()) {
            while (changes.hasNext()) {
                Row row = changes.next();
                boolean isTaken = row.getKind() == RowKind.UPDATE_BEFORE || row.getKind() == RowKind.DELETE;
                ArrayNode values = JSON.createArrayNode();
                for (int at = 0; at < row.getArity(); at++) {
                    values.add(text(row.getField(at)));
                }
                counts.merge(values, isTaken ? -1L : 1L, Long::sum);
            }
        }
        ArrayNode rows = JSON.createArrayNode();
        counts.forEach((values, count) -> {
            if (count != 0) {
                rows.addArray().add(values).add(count);
            }
        });
        return rows;
    }

    private static String text(Object value) {
        if (value instanceof LocalDateTime) {
            return String.valueOf(((LocalDateTime) value).toInstant(ZoneOffset.UTC).toEpochMilli());
        }
        if (value instanceof BigDecimal) {
            return ((BigDecimal) value).toPlainString();
        }
        return value == null ? null : value.toString();
    }
}

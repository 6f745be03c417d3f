import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;

/** The connector 'rows': tables in this process that rows are looked up in. */
public class FlinkLookup implements DynamicTableSourceFactory {
    static final Map<String, List<Row>> TABLES = new HashMap<>();
    private static final Map<String, List<RowData>> INTERNAL = new ConcurrentHashMap<>();
    static final ConfigOption<String> NAME = ConfigOptions.key("name").stringType().noDefaultValue();

    @Override
    public String factoryIdentifier() {
        return "rows";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(NAME);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        String name = context.getCatalogTable().getOptions().get(NAME.key());
        return new Source(name, context.getPhysicalRowDataType());
    }

    private static class Source implements LookupTableSource {
        private final String name;
        private final DataType type;

        Source(String name, DataType type) {
            this.name = name;
            this.type = type;
        }

        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            DataStructureConverter converter = context.createDataStructureConverter(type);
            List<RowData> rows = new ArrayList<>();
            TABLES.get(name).forEach(row -> rows.add((RowData) converter.toInternal(row)));
            INTERNAL.put(name, rows);
            int[] keys = new int[context.getKeys().length];
            for (int at = 0; at < keys.length; at++) {
                keys[at] = context.getKeys()[at][0];
            }
            return LookupFunctionProvider.of(new Found(name, keys, type.getLogicalType().getChildren()));
        }

        @Override
        public DynamicTableSource copy() {
            return new Source(name, type);
        }

        @Override
        public String asSummaryString() {
            return "rows " + name;
        }
    }

    /** The rows that have a key. */
    public static class Found extends LookupFunction {
        private final String name;
        private final int[] keys;
        private final List<LogicalType> types;

        Found(String name, int[] keys, List<LogicalType> types) {
            this.name = name;
            this.keys = keys;
            this.types = types;
        }

        @Override
        public Collection<RowData> lookup(RowData key) {
            List<RowData> found = new ArrayList<>();
            for (RowData row : INTERNAL.get(name)) {
                boolean same = true;
                for (int at = 0; at < keys.length; at++) {
                    LogicalType type = types.get(keys[at]);
                    Object asked = RowData.createFieldGetter(type, at).getFieldOrNull(key);
                    Object there = RowData.createFieldGetter(type, keys[at]).getFieldOrNull(row);
                    same &= asked != null && Objects.equals(asked, there);
                }
                if (same) {
                    found.add(row);
                }
            }
            return found;
        }
    }
}

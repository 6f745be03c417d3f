import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;

import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Runs cases on Flink's own operators: cases as JSON lines in, what they emit as JSON lines out.
 *
 * <p>Every operator is driven by Flink's operator harness, one action at a time, so that a watermark comes exactly
 * between the rows it stands between. cases.py describes the form of a case.
 */
public class FlinkOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

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
        try (FlinkProgram program = program(spec)) {
            int step = 0;
            for (JsonNode action : spec.get("actions")) {
                program.act(action);
                program.take(step, fired, late);
                step++;
            }
        }
        return result;
    }

    private static FlinkProgram program(JsonNode spec) throws Exception {
        return switch (spec.get("kind").asText()) {
            case "windows" -> FlinkWindows.windows(spec);
            case "interval" -> FlinkJoins.interval(spec);
            case "window_join", "cogroup" -> FlinkJoins.windowed(spec);
            case "regular" -> FlinkTableJoins.regular(spec);
            case "temporal" -> FlinkTableJoins.temporal(spec);
            case "ttl" -> FlinkTtl.ttl(spec);
            default -> throw new IllegalArgumentException(spec.toString());
        };
    }
}

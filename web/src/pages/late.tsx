import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Fact, Loading, Problem } from "../parts/basics";
import { Bars, Legend } from "../parts/charts";
import { count, duration, moment, percent, short } from "../text";
import type { Late } from "../types";

export function LatePage({ job }: PageProps) {
  const { data, error } = usePage<Late>(`jobs/${job.id}/late`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  const late = data.steps.reduce((sum, one) => sum + one.late, 0), dead = data.steps.reduce((sum, one) => sum + one.dead_letters, 0);
  const read = Math.max(...data.steps.map((one) => one.rows_in), 0);
  const concerned = data.steps.filter((one) => one.late || one.dead_letters || one.outputs.length || Object.keys(one.counters).length);
  const dropped = data.steps.flatMap((one) => one.late_rows.map((row, place) => ({ ...row, step: one.step, id: `${one.step}/${place}` })));
  return (
    <>
      <Problem text={error} />
      <Card title="Rows put aside" side={<Legend names={["late", "dead_letters"]} />}>
        <dl class="facts">
          <Fact name="late rows dropped" value={count(late)} />
          <Fact name="dead letters" value={count(dead)} />
          <Fact name="of all rows" value={read ? percent((late + dead) / read) : "–"} />
        </dl>
        {late + dead > 0 ? (
          <Bars label="Rows put aside in each of the newest epochs" text={(value) => short(Math.round(value))}
            bars={data.history.map((one) => ({ label: `${one.epoch}`, parts: [{ name: "late", value: one.late }, { name: "dead_letters", value: one.dead_letters }] }))} />
        ) : <p class="hint">No row was late, and every row could be read.</p>}
        {late > 0 && <p class="hint">A late row came after its window's end and lateness had passed. A longer delay of watermarks, <code>.allow_lateness("1 h")</code> or a side output keeps it.</p>}
      </Card>
      {concerned.length > 0 && (
        <Card title="By step">
          <DataTable label="Rows put aside by step" rows={concerned} keyOf={(one) => one.step} columns={[
            { title: "step", cell: (one) => <span class="strong">{one.step}</span> },
            { title: "rows in", isNumber: true, cell: (one) => count(one.rows_in) },
            { title: "late", isNumber: true, cell: (one) => count(one.late) },
            { title: "late rows go to", cell: (one) => one.late_to ?? "nowhere, they are counted" },
            { title: "dead letters", isNumber: true, cell: (one) => count(one.dead_letters) },
            { title: "side outputs", cell: (one) => one.outputs.map((output) => `${output.tag} ${short(output.rows)}${output.read_by.length ? ` to ${output.read_by.join(", ")}` : ", read by none"}`).join("; ") || "–" },
            { title: "counters", cell: (one) => Object.entries(one.counters).map(([name, value]) => `${name} ${short(value)}`).join(", ") || "–" },
          ]} />
        </Card>
      )}
      {dropped.length > 0 && (
        <Card title="Newest late rows" side={<span class="hint">up to 20 of each step</span>}>
          <DataTable label="Newest late rows that were dropped" rows={dropped} keyOf={(one) => one.id} columns={[
            { title: "step", cell: (one) => <span class="strong">{one.step}</span> },
            { title: "event time", cell: (one) => moment(one.timestamp_ms, true) },
            { title: "late by", isNumber: true, cell: (one) => (one.late_by_ms === null ? "the input had ended" : duration(one.late_by_ms)) },
            { title: "key", cell: (one) => <code>{one.key ?? "–"}</code> },
            { title: "row", cell: (one) => (one.row === null ? `${count(one.rows)} rows, combined before they came here` : <code class="row-text">{one.row}</code>) },
            { title: "epoch", isNumber: true, cell: (one) => count(one.epoch) },
          ]} />
        </Card>
      )}
    </>
  );
}

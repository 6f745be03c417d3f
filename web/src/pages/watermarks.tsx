import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Loading, Problem } from "../parts/basics";
import { ago, count, duration, lag, mark, moment } from "../text";
import type { Split, Watermarks } from "../types";

const MOST_LANES = 60;

export function WatermarksPage({ job, now }: PageProps) {
  const { data, error } = usePage<Watermarks>(`jobs/${job.id}/watermarks`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  const holder = data.splits.find((split) => split.is_holding);
  return (
    <>
      <Problem text={error} />
      {holder && (
        <p class="lead">
          Event time stands at <b>{mark(holder.watermark_ms)}</b>, {lag(holder.watermark_ms, now)} behind: the slowest is split <b>{holder.split}</b> of{" "}
          <b>{holder.source}</b>, which last had rows {ago(holder.last_rows_ms, now)}. <a href={`#/${job.id}/windows`}>What waits for it</a>
        </p>
      )}
      <Card title="How far each split is">
        <Lanes splits={data.splits} now={now} />
      </Card>
      <Card title="Splits">
        <DataTable label="Splits" rows={data.splits} keyOf={(one) => `${one.source}/${one.split}`} rowClass={(one) => (one.is_holding ? "held" : "")} columns={[
          { title: "source", cell: (one) => <span class="strong">{one.source}</span> },
          { title: "split", cell: (one) => one.split },
          { title: "watermark (UTC)", cell: (one) => <>{mark(one.watermark_ms)}{one.is_idle ? " (idle)" : ""}</> },
          { title: "lag", isNumber: true, cell: (one) => lag(one.watermark_ms, now) },
          { title: "moved", cell: (one) => ago(one.moved_ms, now) },
          { title: "last rows", cell: (one) => ago(one.last_rows_ms, now) },
          { title: "rows", isNumber: true, cell: (one) => count(one.rows_in) },
          { title: "position", isNumber: true, cell: (one) => count(one.position) },
          { title: "taken", cell: (one) => data.strategies[one.source] ?? "" },
        ]} />
      </Card>
      <Card title="Steps">
        <DataTable label="Watermarks of steps" rows={data.steps} keyOf={(one) => one.uid} columns={[
          { title: "step", cell: (one) => <span class="strong">{one.uid}</span> },
          { title: "watermark (UTC)", cell: (one) => mark(one.watermark_ms) },
          { title: "lag", isNumber: true, cell: (one) => lag(one.watermark_ms, now) },
        ]} />
      </Card>
    </>
  );
}

function Lanes({ splits, now }: { splits: Split[]; now: number }) {
  const marks = splits.map((split) => split.watermark_ms).filter((one): one is number => typeof one === "number");
  if (marks.length === 0) return <p class="hint">No split has a watermark{splits.some((one) => one.watermark_ms === "end") ? " any more: the input has ended" : " yet"}.</p>;
  const from = Math.min(...marks), span = Math.max(now - from, 1000);
  const shown = [...splits].sort((a, b) => (typeof a.watermark_ms === "number" ? a.watermark_ms : Infinity) - (typeof b.watermark_ms === "number" ? b.watermark_ms : Infinity));
  return (
    <>
      <ul class="lanes">
        {shown.slice(0, MOST_LANES).map((one) => {
          const behind = typeof one.watermark_ms === "number" ? (now - one.watermark_ms) / span : one.watermark_ms === "end" ? 0 : 1;
          return (
            <li key={`${one.source}/${one.split}`} class={one.is_holding ? "held" : one.is_idle ? "idle" : ""}>
              <span class="name">{one.source} <b>{one.split}</b></span>
              <span class="lane"><i style={{ width: `${Math.max(2, 100 - behind * 96)}%` }} /></span>
              <span class="value">{typeof one.watermark_ms === "number" ? `${duration(Math.max(0, now - one.watermark_ms))} behind` : mark(one.watermark_ms)}{one.is_idle ? ", idle" : ""}</span>
            </li>
          );
        })}
      </ul>
      <p class="hint">From {moment(from)} to now, {moment(now)} UTC{shown.length > MOST_LANES ? `; the slowest ${MOST_LANES} of ${shown.length}` : ""}. A split that is idle holds nobody back.</p>
    </>
  );
}

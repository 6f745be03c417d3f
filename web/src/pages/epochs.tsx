import { useState } from "preact/hooks";
import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Fact, Loading, Problem } from "../parts/basics";
import { Bars, Legend } from "../parts/charts";
import { bytes, count, duration, moment } from "../text";
import type { Epoch, Epochs } from "../types";

const PHASES = ["compute", "manifest", "commit", "publish", "clean"];
const SHOWN = 100;

const parts = (epoch: Epoch) => {
  const known = PHASES.filter((name) => name in epoch.phases_ms);
  return known.length
    ? known.map((name) => ({ name, value: epoch.phases_ms[name]! }))
    : [{ name: "compute", value: epoch.duration_ms }];
};
const whole = (epoch: Epoch): number => parts(epoch).reduce((sum, one) => sum + one.value, 0);
const at = (sorted: number[], part: number): number | null => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;

export function EpochsPage({ job }: PageProps) {
  const [skip, setSkip] = useState(0);
  const { data, error } = usePage<Epochs>(`jobs/${job.id}/epochs?skip=${skip}&limit=${SHOWN}`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  const took = data.epochs.map(whole).sort((a, b) => a - b);
  const older = skip + SHOWN < data.total;
  return (
    <>
      <Problem text={error} />
      <Card title="How long epochs take" side={<Legend names={PHASES} />}>
        <dl class="facts">
          <Fact name="in the history" value={count(data.total)} />
          <Fact name="median" value={duration(at(took, 0.5))} />
          <Fact name="99 of 100 below" value={duration(at(took, 0.99))} />
          <Fact name="longest here" value={duration(took.at(-1))} />
        </dl>
        <Bars label={`Durations of ${data.epochs.length} epochs, by phase`} text={duration}
          bars={[...data.epochs].reverse().map((epoch) => ({ label: `${epoch.epoch}`, parts: parts(epoch) }))} />
      </Card>
      <Card title="History" side={
        <span class="line">
          <button disabled={skip === 0} onClick={() => setSkip(Math.max(0, skip - SHOWN))}>Newer</button>
          <span class="hint">{data.epochs.length ? `${data.epochs.at(-1)!.epoch} to ${data.epochs[0]!.epoch}` : "none"}</span>
          <button disabled={!older} onClick={() => setSkip(skip + SHOWN)}>Older</button>
        </span>
      }>
        <DataTable label="Epochs" rows={data.epochs} keyOf={(one) => one.epoch} columns={[
          { title: "epoch", isNumber: true, cell: (one) => <span class="strong">{count(one.epoch)}</span> },
          { title: "at (UTC)", cell: (one) => moment(one.time_ms) },
          { title: "took", isNumber: true, cell: (one) => duration(whole(one)) },
          ...PHASES.slice(0, 4).map((name) => ({ title: name, isNumber: true, cell: (one: Epoch) => duration(one.phases_ms[name]) })),
          { title: "rows", isNumber: true, cell: (one) => count(one.rows_in) },
          { title: "written", isNumber: true, cell: (one) => bytes(one.changelog_bytes) },
          { title: "to restore", isNumber: true, cell: (one) => bytes(one.stored_bytes) },
          { title: "late", isNumber: true, cell: (one) => count(one.late) },
          { title: "", cell: (one) => (one.is_published ? "published" : one.is_committed ? "committed" : "computed") },
        ]} />
      </Card>
    </>
  );
}

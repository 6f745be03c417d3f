import { useMemo, useState } from "preact/hooks";
import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Loading, Problem } from "../parts/basics";
import { bytes, count, inWords, lag, mark, percent, perSecond, short } from "../text";
import type { Graph, Step } from "../types";

const WIDE = 196, TALL = 74, GAP_X = 56, GAP_Y = 18;

/** How near a step is to holding all others up. */
export const pressure = (step: Step): string =>
  step.busy === null ? "none" : step.busy > 0.8 || step.in_flight > 0 ? "high" : step.busy > 0.4 ? "medium" : "low";

interface Placed { step: Step; x: number; y: number }

/** Steps from left to right as rows flow; within a column near the steps that they read. */
function place(steps: Step[]): { placed: Map<string, Placed>; width: number; height: number } {
  const known = new Map(steps.map((step) => [step.uid, step]));
  const depth = new Map<string, number>();
  for (const step of steps) // in the order of the graph: what a step reads comes before it
    depth.set(step.uid, Math.max(0, ...step.inputs.map((one) => (known.has(one.step) ? (depth.get(one.step) ?? 0) + 1 : 0))));
  const columns: Step[][] = [];
  for (const step of steps) (columns[depth.get(step.uid)!] ??= []).push(step);
  const placed = new Map<string, Placed>();
  columns.forEach((column, at) => {
    const wanted = (step: Step): number => {
      const above = step.inputs.map((one) => placed.get(one.step)?.y).filter((y): y is number => y !== undefined);
      return above.length ? above.reduce((a, b) => a + b, 0) / above.length : 0;
    };
    column.map((step) => ({ step, y: wanted(step) })).sort((a, b) => a.y - b.y)
      .forEach(({ step }, row) => placed.set(step.uid, { step, x: at * (WIDE + GAP_X) + 4, y: row * (TALL + GAP_Y) + 4 }));
  });
  const most = Math.max(1, ...columns.map((column) => column.length));
  return { placed, width: Math.max(1, columns.length) * (WIDE + GAP_X) - GAP_X + 8, height: most * (TALL + GAP_Y) - GAP_Y + 8 };
}

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function GraphPage({ job, now }: PageProps) {
  const { data, error } = usePage<Graph>(`jobs/${job.id}/graph`, job);
  const [chosen, choose] = useState<string | null>(null);
  const shape = data?.steps.map((step) => step.uid).join("\n");
  const layout = useMemo(() => (data ? place(data.steps) : null), [shape]);
  if (!data || !layout) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  if (data.steps.length === 0) return <Card title="Graph"><p class="hint">The job is starting: its steps are not known yet.</p></Card>;
  const current = new Map(data.steps.map((step) => [step.uid, step]));
  const step = chosen ? current.get(chosen) : undefined;
  const busiest = data.steps.filter((one) => one.time_share > 0).sort((a, b) => b.time_share - a.time_share);
  return (
    <>
      <Problem text={error} />
      <Card title="Graph" side={<span class="legend"><span><i class="key low" />free</span><span><i class="key medium" />busy</span><span><i class="key high" />back pressure</span></span>}>
        <div class="scroll graph" role="region" aria-label="Graph of steps" tabIndex={0}>
          <svg width={layout.width} height={layout.height} role="group" aria-label={`${data.steps.length} steps on ${data.levels} levels`}>
            {[...layout.placed.values()].flatMap(({ step: to, x, y }) => to.inputs.map((one) => {
              const from = layout.placed.get(one.step);
              if (!from) return null;
              const x1 = from.x + WIDE, y1 = from.y + TALL / 2, y2 = y + TALL / 2, mid = (x1 + x) / 2;
              return (
                <path key={`${one.step}>${to.uid}${one.tag ?? ""}`} class={`edge ${one.exchange ? "moves" : ""}`} d={`M${x1},${y1} C${mid},${y1} ${mid},${y2} ${x},${y2}`}>
                  <title>{`${one.step}${one.tag ? ` [${one.tag}]` : ""} to ${to.uid}${one.exchange ? `, by ${one.exchange}` : ""}`}</title>
                </path>
              );
            }))}
            {[...layout.placed.values()].map(({ step: { uid }, x, y }) => {
              const one = current.get(uid)!;
              return (
                <g key={uid} class={`node ${pressure(one)} ${chosen === uid ? "chosen" : ""}`} transform={`translate(${x} ${y})`} role="button" tabIndex={0}
                  aria-label={`${uid}, ${one.operation}, ${perSecond(one.in_per_s)} in`} aria-pressed={chosen === uid}
                  onClick={() => choose(chosen === uid ? null : uid)}
                  onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(chosen === uid ? null : uid))}>
                  <rect width={WIDE} height={TALL} rx={9} />
                  <rect class="mark" width={5} height={TALL - 16} x={0} y={8} rx={2.5} />
                  <text class="uid" x={15} y={22}>{cut(uid, 23)}</text>
                  <text class="sub" x={15} y={40}>{cut(inWords(one.window ?? one.operation), 18)}{one.is_stateful ? " · state" : ""}</text>
                  <text class="sub" x={15} y={60}>{one.is_sink ? "" : `${perSecond(one.in_per_s)} → ${perSecond(one.out_per_s)}`}</text>
                  <text class="level" x={WIDE - 10} y={22} text-anchor="end">{`L${one.level}`}</text>
                  {one.busy !== null && one.busy > 0 && <text class="sub" x={WIDE - 10} y={60} text-anchor="end">{percent(one.busy)}</text>}
                </g>
              );
            })}
          </svg>
        </div>
        {step && <StepFacts step={step} now={now} />}
        {!step && <p class="hint">Choose a step to see more of it. Solid lines stay on a subtask, dashed lines move rows to others; L is the level.</p>}
      </Card>
      {busiest.length > 0 && (
        <Card title="Where time goes" side={<span class="hint">of user code and state, over the last {data.epochs} epochs</span>}>
          <ul class="shares">
            {busiest.slice(0, 12).map((one) => (
              <li key={one.uid}><span class="name">{one.uid}</span><span class="bar"><i class={pressure(one)} style={{ width: `${Math.max(one.time_share * 100, 0.5)}%` }} /></span><span class="value">{percent(one.time_share)}</span></li>
            ))}
          </ul>
        </Card>
      )}
      <Card title="Steps">
        <DataTable label="Steps" rows={data.steps} keyOf={(one) => one.uid} columns={[
          { title: "step", cell: (one) => <span class="strong">{one.uid}</span> },
          { title: "operation", cell: (one) => one.operation },
          { title: "level", isNumber: true, cell: (one) => one.level },
          { title: "rows in", isNumber: true, cell: (one) => (one.is_sink ? "–" : count(one.rows_in)) },
          { title: "rows out", isNumber: true, cell: (one) => (one.is_sink ? "–" : count(one.rows_out)) },
          { title: "in", isNumber: true, cell: (one) => perSecond(one.in_per_s) },
          { title: "busy", isNumber: true, cell: (one) => <span class={`pressure ${pressure(one)}`}>{percent(one.busy)}</span> },
          { title: "watermark", cell: (one) => (one.is_sink ? "–" : mark(one.watermark_ms)) },
          { title: "lag", isNumber: true, cell: (one) => lag(one.watermark_ms, now) },
          { title: "state", isNumber: true, cell: (one) => (one.is_stateful ? short(one.state_entries) : "–") },
          { title: "late", isNumber: true, cell: (one) => count(one.late) },
        ]} />
      </Card>
    </>
  );
}

function StepFacts({ step, now }: { step: Step; now: number }) {
  const facts: [string, string][] = [
    ["reads", step.inputs.map((one) => one.step + (one.tag ? ` [${one.tag}]` : "") + (one.exchange ? ` by ${one.exchange}` : "")).join(", ")],
    ["is", [step.operation, inWords(step.window ?? ""), step.detail].filter(Boolean).join(", ")],
    ["gives", step.is_sink ? "" : step.schema],
    ["rows", step.is_sink ? "" : `${count(step.rows_in)} in, ${count(step.rows_out)} out`],
    ["event time", step.is_sink ? "" : `${mark(step.watermark_ms)}, ${lag(step.watermark_ms, now)} behind`],
    ["subtasks", step.subtasks ? `${step.subtasks}${step.skew ? `, the busiest has ${step.skew} times its share` : ""}` : ""],
    ["state", step.is_stateful ? `${count(step.state_entries)} entries, ${bytes(step.state_bytes)}` : ""],
    ["in flight", step.in_flight ? `${count(step.in_flight)} rows` : ""],
  ];
  return (
    <div class="chosen-step" role="status">
      <h3>{step.uid}</h3>
      <dl class="rows">{facts.filter(([, text]) => text).map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}</dl>
    </div>
  );
}

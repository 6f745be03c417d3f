// Why has this window not fired?
import { useState } from "preact/hooks";
import { get } from "../api";
import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Loading, Problem } from "../parts/basics";
import { ago, count, duration, mark, moment } from "../text";
import type { Firing, Holding, Job, Watermarks, Windows } from "../types";

const REASONS: Record<string, string> = {
  silent: "has no rows", "old rows": "has rows, none later", advancing: "moves", "no rows yet": "no row yet",
  "no event time": "no event time", "held by alignment": "waits for its group",
};
const VERDICTS = { waits: "waits", fired: "has fired", ended: "has fired", unknown: "goes by its trigger" };

export function WindowsPage({ job, now }: PageProps) {
  const [step, setStep] = useState<string | null>(null);
  const [end, setEnd] = useState<number | null>(null);
  const marks = usePage<Watermarks>(`jobs/${job.id}/watermarks`, job);
  const chosen = step ?? marks.data?.firings[0]?.step ?? null;
  const asked = end === null || chosen === null ? null : `jobs/${job.id}/firing?step=${encodeURIComponent(chosen)}&end_ms=${end}`;
  const one = usePage<Firing>(asked, job);
  if (!marks.data) return <>{marks.error ? <Problem text={marks.error} /> : <Loading />}</>;
  const { firings, splits } = marks.data;
  if (firings.length === 0 || chosen === null) return <Card title="Windows"><p class="hint">{job.committed < 0 && job.is_running ? "The job is starting: its steps are not known yet." : "No step of this job has windows."}</p></Card>;
  const firing = end === null ? firings.find((f) => f.step === chosen) : one.data;
  return (
    <>
      <h2 class="question">Why has this window not fired?</h2>
      <div class="tabs" role="group" aria-label="Steps with windows">
        {firings.map((f) => (
          <button key={f.step} aria-pressed={f.step === chosen} onClick={() => { setStep(f.step); setEnd(null); }}>
            <i class={`dot ${f.verdict === "waits" && f.holding[0] && f.holding[0].reason !== "advancing" ? "bad" : f.verdict === "waits" ? "warn" : "good"}`} />{f.step}
          </button>
        ))}
      </div>
      <Problem text={marks.error ?? one.error} />
      {firing ? <Answer firing={firing} splits={splits} now={now} isNext={end === null} /> : <Loading />}
      {end !== null && <p><button onClick={() => setEnd(null)}>Back to the next window</button></p>}
      <Ask onAsk={setEnd} />
      <OpenWindows key={chosen} job={job} step={chosen} watermark={firing?.watermark_ms ?? null} chosen={end} choose={setEnd} />
    </>
  );
}

function Answer({ firing, splits, now, isNext }: { firing: Firing; splits: Watermarks["splits"]; now: number; isNext: boolean }) {
  const first = firing.holding[0];
  const tone = firing.verdict === "waits" ? (first && first.reason !== "advancing" ? "bad" : "warn") : "good";
  return (
    <section class={`answer ${tone}`} aria-label="Answer">
      <p class="verdict">
        {firing.end_ms === null ? <>A window of <b>{firing.step}</b> </> : (
          <>{isNext ? "The next window" : "The window"} of <b>{firing.step}</b>, <span class="span">{firing.start_ms !== null ? `${moment(firing.start_ms)} – ` : "that ends "}{moment(firing.end_ms)}</span>, </>
        )}
        <b class="word">{VERDICTS[firing.verdict]}</b>
        {firing.verdict === "waits" ? <> because {firing.because}.</> : <>: {firing.because}.</>}
      </p>
      {first && firing.verdict === "waits" && (
        <p class="way-out">
          {first.since_ms !== null && <>It has stood for <b>{duration(Math.max(0, now - first.since_ms))}</b>, since {moment(first.since_ms)} UTC. </>}
          <b>What helps:</b> {first.way_out}.
        </p>
      )}
      {firing.verdict === "waits" && firing.end_ms !== null && <Timeline firing={firing} splits={splits} />}
      {firing.holding.length > 0 && (
        <DataTable label="Splits that hold it back" rows={firing.holding} keyOf={(h) => `${h.source}/${h.split}`} columns={[
          { title: "held back by", cell: (h: Holding) => <span class="strong">{h.source} {h.split}</span> },
          { title: "", cell: (h) => <span class={`badge ${h.reason === "advancing" ? "warn" : "bad"}`}>{REASONS[h.reason] ?? h.reason}</span> },
          { title: "watermark (UTC)", cell: (h) => mark(h.watermark_ms) },
          { title: "missing", isNumber: true, cell: (h) => (h.missing_ms === null ? "all" : duration(h.missing_ms)) },
          { title: "stands since", cell: (h) => (h.since_ms === null ? (h.reason === "advancing" ? "it moves" : "–") : `${moment(h.since_ms)} (${ago(h.since_ms, now)})`) },
          { title: "last rows", cell: (h) => ago(h.last_rows_ms, now) },
        ]} />
      )}
    </section>
  );
}

/** Event time from left to right: the window, and how far each split has come towards its end. */
function Timeline({ firing, splits }: { firing: Firing; splits: Watermarks["splits"] }) {
  const end = firing.end_ms!;
  const sources = new Set(firing.holding.map((h) => h.source));
  const rows = splits.filter((split) => sources.has(split.source) || typeof split.watermark_ms === "number").slice(0, 40);
  const marks = rows.map((row) => row.watermark_ms).filter((at): at is number => typeof at === "number");
  const start = firing.start_ms ?? Math.min(end - 1000, ...marks);
  const low = Math.min(start, ...marks), high = Math.max(end, ...marks.map((at) => Math.min(at, end + (end - low))));
  const room = Math.max((high - low) * 0.04, 1);
  const at = (ms: number): number => Math.min(100, Math.max(0, ((ms - low + room) / (high - low + 2 * room)) * 100));
  return (
    <div class="timeline" role="img" aria-label={`Event time: the window ends at ${moment(end)}; ${firing.holding.map((h) => `${h.source} ${h.split} at ${mark(h.watermark_ms)}`).join(", ")}`}>
      <div class="row head"><span class="name" /><span class="track"><span class="window" style={{ left: `${at(start)}%`, width: `${at(end) - at(start)}%` }}>window</span></span></div>
      {rows.map((row) => {
        const held = firing.holding.some((h) => h.source === row.source && h.split === row.split);
        const here = typeof row.watermark_ms === "number" ? at(row.watermark_ms) : row.watermark_ms === "end" ? 100 : 0;
        return (
          <div key={`${row.source}/${row.split}`} class={`row ${held ? "held" : row.is_idle ? "idle" : "past"}`}>
            <span class="name">{row.source} <b>{row.split}</b></span>
            <span class="track">
              <span class="end" style={{ left: `${at(end)}%` }} />
              <span class="come" style={{ width: `${here}%` }} />
              {held && <span class="missing" style={{ left: `${here}%`, width: `${Math.max(0, at(end) - here)}%` }} />}
            </span>
          </div>
        );
      })}
      <div class="row foot"><span class="name" /><span class="track"><span class="label" style={{ left: `${at(end)}%` }}>{moment(end)}</span></span></div>
    </div>
  );
}

function Ask({ onAsk }: { onAsk: (end: number) => void }) {
  const [problem, setProblem] = useState<string | null>(null);
  const ask = (event: Event): void => {
    event.preventDefault();
    const text = new FormData(event.currentTarget as HTMLFormElement).get("end") as string;
    const found = /^\d{10,15}$/.test(text.trim()) ? Number(text) : Date.parse(`${text.trim().replace(" ", "T").replace(/Z$/, "")}Z`);
    if (Number.isNaN(found)) return setProblem("Write a time in UTC, such as 2026-01-31 12:00:00, or milliseconds.");
    setProblem(null);
    onAsk(found);
  };
  return (
    <form class="line ask" onSubmit={ask}>
      <label for="end">Another window, by its end (UTC)</label>
      <input id="end" name="end" placeholder={new Date(Math.ceil(Date.now() / 60_000) * 60_000).toISOString().slice(0, 19).replace("T", " ")} required />
      <button type="submit">Ask</button>
      {problem && <span class="hint">{problem}</span>}
    </form>
  );
}

function OpenWindows({ job, step, watermark, chosen, choose }: { job: Job; step: string; watermark: Firing["watermark_ms"]; chosen: number | null; choose: (end: number) => void }) {
  const [found, setFound] = useState<Windows | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const look = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      setFound(await get<Windows>(`jobs/${job.id}/windows?step=${encodeURIComponent(step)}`));
    } catch (problem) {
      setError((problem as Error).message);
    }
    setBusy(false);
  };
  const late = (end: number): boolean => typeof watermark === "number" && watermark >= end - 1;
  return (
    <Card title="Windows that hold rows" side={<button disabled={busy || !job.is_running} onClick={look}>{busy ? "Looking…" : found ? "Look again" : "Look into the state"}</button>}>
      <Problem text={error} />
      {!found && <p class="hint">{job.is_running ? "The running job is asked for its open windows, as they were at its newest epoch." : "The job does not run, so it cannot be asked; look into a savepoint on the page State."}</p>}
      {found && found.number === 0 && <p class="hint">No window of this step holds rows at epoch {found.epoch}.</p>}
      {found && found.number > 0 && (
        <>
          <DataTable label="Open windows" rows={found.windows} keyOf={(one) => `${one.start_ms}-${one.end_ms}`} rowClass={(one) => (one.end_ms === chosen ? "held" : "")} columns={[
            { title: "from (UTC)", cell: (one) => moment(one.start_ms) },
            { title: "to", cell: (one) => moment(one.end_ms) },
            { title: "entries", isNumber: true, cell: (one) => count(one.entries) },
            { title: "missing", isNumber: true, cell: (one) => (late(one.end_ms) ? "–" : typeof watermark === "number" ? duration(one.end_ms - 1 - watermark) : "all") },
            { title: "", cell: (one) => (late(one.end_ms) ? <span class="hint">fired, kept for late rows</span> : <button class="small" onClick={() => choose(one.end_ms)}>Why?</button>) },
          ]} />
          <p class="hint">{count(found.number)} {found.number === 1 ? "window" : "windows"} at epoch {count(found.epoch)}{found.number > found.windows.length ? `; the ${found.windows.length} that end first` : ""}.</p>
        </>
      )}
    </Card>
  );
}

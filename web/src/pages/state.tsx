import { useState } from "preact/hooks";
import { post } from "../api";
import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Loading, Problem } from "../parts/basics";
import { Line } from "../parts/charts";
import { bytes, count, moment, short } from "../text";
import type { Job, Savepoints, States, Table, Value } from "../types";

export function StatePage({ job }: PageProps) {
  const { data, error } = usePage<States>(`jobs/${job.id}/state`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  return (
    <>
      <Problem text={error} />
      <Card title="Size" side={<span class="hint">forecasts go on as the newer half of this run went</span>}>
        {data.steps.length === 0 ? <p class="hint">No step of this job keeps state.</p> : (
          <DataTable label="State by step" rows={data.steps} keyOf={(one) => one.step} columns={[
            { title: "step", cell: (one) => <span class="strong">{one.step}</span> },
            { title: "states", cell: (one) => one.states.filter((state) => state.entries > 0 || !state.name.startsWith("@")).map((state) => `${state.name} ${short(state.entries)}`).join(", ") },
            { title: "entries", isNumber: true, cell: (one) => count(one.entries) },
            { title: "about", isNumber: true, cell: (one) => bytes(one.bytes) },
            { title: "an hour", isNumber: true, cell: (one) => (one.bytes_per_h === null ? "–" : `${one.bytes_per_h > 0 ? "+" : ""}${bytes(one.bytes_per_h)}`) },
            { title: "in a day", isNumber: true, cell: (one) => bytes(one.day_bytes) },
            { title: "in a week", isNumber: true, cell: (one) => bytes(one.week_bytes) },
            { title: "expired", isNumber: true, cell: (one) => count(one.expired) },
            { title: "largest subtask", isNumber: true, cell: (one) => count(one.largest_subtask) },
          ]} />
        )}
        {data.history.length > 1 && (
          <Line label="Entries of all steps over the newest epochs" text={(value) => short(Math.round(value))}
            points={data.history.map((one) => ({ x: one.time_ms, y: one.entries, label: moment(one.time_ms) }))} />
        )}
      </Card>
      {data.steps.length > 0 && <Look job={job} data={data} />}
    </>
  );
}

function Look({ job, data }: { job: Job; data: States }) {
  const places = data.steps.flatMap((step) => step.states.map((state) => ({ step: step.step, state: state.name })));
  const own = places.findIndex((place) => !place.state.startsWith("@"));
  const [at, setAt] = useState(Math.max(own, 0));
  const [savepoint, setSavepoint] = useState("");
  const saved = usePage<Savepoints>(`jobs/${job.id}/savepoints`, job);
  const place = places[Math.min(at, places.length - 1)]!;
  const from = savepoint ? { savepoint } : {};
  const names = saved.data?.savepoints.map((one) => one.name) ?? [];
  return (
    <Card title="Look into it" side={
      <span class="line">
        <select aria-label="State" value={at} onChange={(event) => setAt(Number(event.currentTarget.value))}>
          {places.map((one, index) => <option key={index} value={index}>{one.step} / {one.state}</option>)}
        </select>
        <select aria-label="Of" value={savepoint} onChange={(event) => setSavepoint(event.currentTarget.value)}>
          <option value="">{job.is_running ? "the running job" : "the job (it does not run)"}</option>
          {names.map((name) => <option key={name} value={name}>savepoint {name}</option>)}
        </select>
      </span>
    }>
      {!job.is_running && !savepoint && (
        <p class="hint">The job does not run: look into a savepoint, or with its program at its newest checkpoint, <code>headwater state show JOB STEP STATE --file JOB.py</code></p>
      )}
      <LookUp key={`k${at}${savepoint}`} path={`jobs/${job.id}/state/lookup`} what={{ ...place, ...from }} disabled={!job.is_running && !savepoint} />
      <Query key={`q${at}${savepoint}`} path={`jobs/${job.id}/state/query`} what={{ ...place, ...from }} disabled={!job.is_running && !savepoint} />
    </Card>
  );
}

interface Asking { path: string; what: object; disabled: boolean }

function useAsk<T>(path: string): { found: T | null; error: string | null; busy: boolean; ask: (body: object) => Promise<void> } {
  const [state, setState] = useState<{ found: T | null; error: string | null; busy: boolean }>({ found: null, error: null, busy: false });
  const ask = async (body: object): Promise<void> => {
    setState((before) => ({ ...before, busy: true, error: null }));
    try {
      setState({ found: await post<T>(path, body), error: null, busy: false });
    } catch (error) {
      setState({ found: null, error: (error as Error).message, busy: false });
    }
  };
  return { ...state, ask };
}

function LookUp({ path, what, disabled }: Asking) {
  const { found, error, busy, ask } = useAsk<Value>(path);
  const submit = (event: Event): void => {
    event.preventDefault();
    void ask({ ...what, key: new FormData(event.currentTarget as HTMLFormElement).get("key") });
  };
  return (
    <>
      <form class="line" onSubmit={submit}>
        <label for="key">By key</label>
        <input id="key" name="key" placeholder="ann, 17, or [&quot;ann&quot;, 17]" disabled={disabled} />
        <button type="submit" disabled={busy || disabled}>{busy ? "Looking…" : "Look up"}</button>
      </form>
      <Problem text={error} />
      {found && <div class="found" role="status">{found.found ? <pre>{JSON.stringify(found.value, null, 2)}</pre> : <p>Nothing is kept for this key.</p>}<p class="hint">At epoch {count(found.epoch)}, of {count(found.entries)} entries.</p></div>}
    </>
  );
}

function Query({ path, what, disabled }: Asking) {
  const { found, error, busy, ask } = useAsk<Table>(path);
  const submit = (event: Event): void => {
    event.preventDefault();
    void ask({ ...what, sql: new FormData(event.currentTarget as HTMLFormElement).get("sql") });
  };
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
  };
  return (
    <>
      <form class="sql" onSubmit={submit}>
        <label for="sql">By a query over the table <code>state</code>, in DuckDB's SQL; it reads and changes nothing</label>
        <textarea id="sql" name="sql" rows={3} spellcheck={false} disabled={disabled} onKeyDown={keyed}>SELECT * FROM state LIMIT 20</textarea>
        <button type="submit" disabled={busy || disabled}>{busy ? "Running…" : "Run"}</button>
      </form>
      <Problem text={error} />
      {found && (
        <div class="found" role="status">
          <DataTable label="What the query gave" rows={found.rows.map((row, at) => ({ row, at }))} keyOf={(one) => one.at}
            columns={found.columns.map((column, index) => ({ title: column.name, cell: ({ row }: { row: unknown[] }) => shown(row[index]), isNumber: /int|double|float|decimal/.test(column.type) }))} />
          <p class="hint">{count(found.rows.length)} rows at epoch {count(found.epoch)}{found.is_cut ? "; there are more" : ""}.</p>
        </div>
      )}
    </>
  );
}

const shown = (value: unknown): string => (value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value));

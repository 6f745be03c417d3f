import { useState } from "preact/hooks";
import { post } from "../api";
import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, DataTable, Loading, Problem } from "../parts/basics";
import { bytes, count, moment } from "../text";
import type { Savepoints, Verdict } from "../types";

export function SavepointsPage({ job }: PageProps) {
  const { data, error, reload } = usePage<Savepoints>(`jobs/${job.id}/savepoints`, job);
  const [name, setName] = useState(() => `${job.name.replace(/[^A-Za-z0-9_-]/g, "-").slice(0, 40)}-${new Date().toISOString().slice(0, 19).replace(/[:T]/g, "-")}`);
  const [doing, setDoing] = useState<string | null>(null);
  const [said, setSaid] = useState<{ text: string; isBad: boolean } | null>(null);
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [drain, setDrain] = useState(false);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  const act = async (what: string, work: () => Promise<string>): Promise<void> => {
    setDoing(what);
    setSaid(null);
    try {
      setSaid({ text: await work(), isBad: false });
    } catch (problem) {
      setSaid({ text: (problem as Error).message, isBad: true });
    }
    setDoing(null);
    reload();
  };
  const take = () => act("take", async () => `Saved as ${(await post<{ savepoint: string }>(`jobs/${job.id}/savepoints`, { name })).savepoint}; the job goes on.`);
  const stop = (savepoint: string | null) => {
    const how = savepoint ? ` and save its state as ${savepoint}` : "";
    if (!confirm(`Stop the job ${job.name}${how}?`)) return;
    void act("stop", async () => {
      await post(`jobs/${job.id}/stop`, { ...(savepoint ? { savepoint } : {}), drain });
      return savepoint ? `The job has stopped, and its state is saved as ${savepoint}.` : "The job has stopped; it can be started again from where it is.";
    });
  };
  const check = (of: string) => act(`check ${of}`, async () => {
    const found = await post<Verdict>(`jobs/${job.id}/savepoints/${of}/check`, {});
    setVerdict(found);
    return `${found.name}: ${found.text}`;
  });
  const off = !data.is_running || doing !== null;
  return (
    <>
      <Problem text={error} />
      <Card title="Take one">
        <form class="line" onSubmit={(event) => { event.preventDefault(); void take(); }}>
          <label for="name">Name</label>
          <input id="name" value={name} pattern="[A-Za-z0-9][A-Za-z0-9_\-]{0,63}" required size={34} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit" disabled={off}>{doing === "take" ? "Taking…" : "Take a savepoint"}</button>
          <button type="button" class="danger" disabled={off} onClick={() => stop(name)}>{doing === "stop" ? "Stopping…" : "Stop with it"}</button>
          <button type="button" class="danger" disabled={off} onClick={() => stop(null)}>Stop without</button>
        </form>
        <label class="check"><input type="checkbox" checked={drain} disabled={off} onChange={(event) => setDrain(event.currentTarget.checked)} /> end the input first, so that all windows fire; not for a job that is to go on</label>
        <p class="hint">{data.is_running ? <>It is put into <code class="path">{data.folder}</code>.</> : "The job does not run; savepoints are taken of running jobs."}</p>
        {said && <p class={`note ${said.isBad ? "bad" : "good"}`} role="status">{said.text}</p>}
      </Card>
      <Card title={`Savepoints (${data.savepoints.length})`}>
        {data.savepoints.length === 0 ? <p class="hint">None of this job in <code class="path">{data.folder}</code>.</p> : (
          <DataTable label="Savepoints" rows={data.savepoints} keyOf={(one) => one.name} columns={[
            { title: "name", cell: (one) => <span class="strong">{one.name}</span> },
            { title: "taken (UTC)", cell: (one) => moment(one.taken_ms) },
            { title: "epoch", isNumber: true, cell: (one) => count(one.epoch) },
            { title: "states", isNumber: true, cell: (one) => count(one.states) },
            { title: "entries", isNumber: true, cell: (one) => count(one.rows) },
            { title: "size", isNumber: true, cell: (one) => bytes(one.size_bytes) },
            { title: "", cell: (one) => <button class="small" disabled={doing !== null} onClick={() => void check(one.name)}>{doing === `check ${one.name}` ? "Checking…" : "Check"}</button> },
          ]} />
        )}
        {verdict && (
          <div class="found">
            <h3>{verdict.name}</h3>
            <p><span class={`badge ${verdict.is_whole ? "good" : "bad"}`}>{verdict.is_whole ? "whole" : "damaged"}</span> {verdict.text}</p>
            <dl class="rows">{Object.entries(verdict.steps).map(([step, fate]) => <div key={step}><dt>{step}</dt><dd>{fate}</dd></div>)}</dl>
            <p class="hint">Beside the program that the job last ran. For a new one: <code>headwater savepoint check PATH JOB.py</code></p>
          </div>
        )}
      </Card>
    </>
  );
}

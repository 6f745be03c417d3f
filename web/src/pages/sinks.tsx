import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, Fact, Loading, Problem } from "../parts/basics";
import { count } from "../text";
import type { Sinks } from "../types";

const tone = (guarantee: string): string => (/exactly|effectively/.test(guarantee) ? "good" : /least/.test(guarantee) ? "warn" : "bad");

export function SinksPage({ job }: PageProps) {
  const { data, error } = usePage<Sinks>(`jobs/${job.id}/sinks`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  const behind = Math.max(0, data.committed - data.published);
  const part = Math.min(1, data.waiting.length / data.most_waiting);
  return (
    <>
      <Problem text={error} />
      <Card title="How far sinks are">
        <dl class="facts">
          <Fact name="committed epoch" value={data.committed < 0 ? "none yet" : count(data.committed)} />
          <Fact name="published epoch" value={data.published < 0 ? "none yet" : count(data.published)} />
          <Fact name="behind" value={behind === 0 ? "nothing" : `${behind} ${behind === 1 ? "epoch" : "epochs"}`} />
        </dl>
        <div class="meter"><span class="bar"><i class={part > 0.7 ? "high" : part > 0.3 ? "medium" : "low"} style={{ width: `${Math.max(part * 100, 1)}%` }} /></span>
          <span class="hint">{data.waiting.length} of {data.most_waiting} epochs wait to be published; the job waits for its sinks when all places are taken</span></div>
      </Card>
      {data.sinks.length === 0 && <p class="hint">What sinks this job has is not known: it was run by an older Headwater.</p>}
      {data.sinks.map((sink) => (
        <Card key={sink.sink} title={sink.sink} side={<span class="hint">{count(sink.rows)} rows in this run</span>}>
          <p><code class="path">{sink.detail}</code></p>
          <ul class="paths">
            {sink.paths.map((path) => (
              <li key={path.source}>
                <details><summary><b>{path.source}</b> → {sink.sink} <span class={`badge ${tone(path.guarantee)}`}>{path.guarantee}</span></summary>
                  <ul>{path.reasons.map((reason) => <li key={reason}>{reason}</li>)}</ul></details>
              </li>
            ))}
          </ul>
        </Card>
      ))}
    </>
  );
}

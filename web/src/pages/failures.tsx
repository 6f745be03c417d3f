import type { PageProps } from "../app";
import { usePage } from "../live";
import { Badge, Card, Loading, Problem } from "../parts/basics";
import { duration, moment } from "../text";
import type { Failures } from "../types";

const first = (text: string): string => text.trim().split("\n")[0] ?? "";

export function FailuresPage({ job }: PageProps) {
  const { data, error } = usePage<Failures>(`jobs/${job.id}/failures`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  return (
    <>
      <Problem text={error} />
      <Card title="How it stands" side={<Badge state={data.state} />}>
        {data.error ? <pre class="trace">{data.error}</pre>
          : <p class="hint">{data.state === "dead" ? "The process that ran the job is gone and has left no word: it was killed, or the machine went down. Start it again, and it goes on from its last committed epoch." : "It has not failed."}</p>}
      </Card>
      <Card title={`Restarts (${data.restarts.length})`}>
        {data.restarts.length === 0 && <p class="hint">It was never started again after a failure.</p>}
        <ol class="restarts" reversed>
          {data.restarts.map((one, at) => (
            <li key={`${one.failed_ms}-${at}`}>
              <details open={at === 0}>
                <summary><b>{moment(one.failed_ms)} UTC</b> <span class="badge bad">{one.error}</span>{one.step ? <> in <b>{one.step}</b></> : null}: {first(one.message)}
                  <span class="hint"> started again after {duration(one.delay_ms)}</span></summary>
                <pre class="trace">{one.message.trim()}</pre>
              </details>
            </li>
          ))}
        </ol>
      </Card>
      {data.log.length > 0 && <Card title="Log" side={<span class="hint">its end</span>}><pre class="log" tabIndex={0} role="region" aria-label="Log">{data.log.join("\n")}</pre></Card>}
    </>
  );
}

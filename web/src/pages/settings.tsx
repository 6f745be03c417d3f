import type { PageProps } from "../app";
import { usePage } from "../live";
import { Card, Loading, Problem } from "../parts/basics";
import { moment } from "../text";
import type { Settings } from "../types";

export function SettingsPage({ job }: PageProps) {
  const { data, error } = usePage<Settings>(`jobs/${job.id}/settings`, job);
  if (!data) return <>{error ? <Problem text={error} /> : <Loading />}</>;
  const about: [string, string | null][] = [
    ["folder", data.folder], ["savepoints go to", data.savepoints], ["job id", data.job_id], ["process", job.process ?? "none"],
    ["engine", data.engine], ["Headwater", data.version], ["started", data.started_ms === null ? null : `${moment(data.started_ms)} UTC`],
  ];
  return (
    <>
      <Problem text={error} />
      <Card title="This run"><Rows rows={about.filter((one): one is [string, string] => one[1] !== null)} /></Card>
      <Card title="Settings">
        {Object.keys(data.settings).length ? <Rows rows={Object.entries(data.settings)} /> : <p class="hint">They are not known: an older Headwater has run the job.</p>}
      </Card>
    </>
  );
}

const Rows = ({ rows }: { rows: [string, string][] }) => (
  <dl class="rows">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd><code class="path">{value}</code></dd></div>)}</dl>
);

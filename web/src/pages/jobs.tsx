import { Badge, DataTable } from "../parts/basics";
import { ago, count, lag, perSecond } from "../text";
import type { Job } from "../types";

const clock = (job: Job): number => (job.is_running ? job.now_ms : (job.epoch_ms ?? job.now_ms));

export function JobsPage({ jobs }: { jobs: Job[] }) {
  const running = jobs.filter((job) => job.is_running).length;
  return (
    <>
      <h1>Jobs</h1>
      {jobs.length === 0 ? (
        <p class="hint">No job has a folder here yet. A job on Spark with a <code>job_dir</code> appears as soon as it starts.</p>
      ) : (
        <>
          <p class="hint">{running} of {jobs.length} {jobs.length === 1 ? "job runs" : "jobs run"}.</p>
          <DataTable label="Jobs" rows={jobs} keyOf={(job) => job.id} columns={[
            { title: "job", cell: (job) => <a class="strong" href={`#/${job.id}/graph`}>{job.name}</a> },
            { title: "state", cell: (job) => <Badge state={job.state} /> },
            { title: "epoch", isNumber: true, cell: (job) => (job.committed < 0 ? "–" : count(job.committed)) },
            { title: "newest", cell: (job) => ago(job.epoch_ms, job.now_ms) },
            { title: "rows", isNumber: true, cell: (job) => count(job.rows_in) },
            { title: "speed", isNumber: true, cell: (job) => (job.is_running ? perSecond(job.rows_per_s) : "–") },
            { title: "lag", isNumber: true, cell: (job) => lag(job.watermark_ms, clock(job)) },
            { title: "late", isNumber: true, cell: (job) => count(job.late) },
            { title: "restarts", isNumber: true, cell: (job) => count(job.restarts) },
            { title: "folder", cell: (job) => <code class="path">{job.folder}</code> },
          ]} />
        </>
      )}
    </>
  );
}

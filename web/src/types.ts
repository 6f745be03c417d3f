// What the API answers; src/headwater/web/schemas.py says the same.
export type Mark = number | "end" | null;

export interface Job {
  id: string; name: string; folder: string; state: string; is_running: boolean; process: string | null;
  planned: number; committed: number; published: number; rows_in: number; rows_per_s: number | null;
  watermark_ms: Mark; now_ms: number; epoch_ms: number | null; since_ms: number | null;
  late: number; dead_letters: number; restarts: number; error: string | null;
}
export interface Step {
  uid: string; operation: string; level: number; inputs: { step: string; tag: string | null; exchange: string | null }[];
  detail: string; schema: string; window: string | null; is_source: boolean; is_sink: boolean; is_stateful: boolean;
  rows_in: number; rows_out: number; in_per_s: number | null; out_per_s: number | null; in_flight: number;
  watermark_ms: Mark; subtasks: number | null; busy: number | null; skew: number | null;
  state_entries: number; state_bytes: number; late: number; dead_letters: number; time_share: number;
}
export interface Graph { levels: number; epochs: number; took_ms: number; steps: Step[] }
export interface Epoch {
  epoch: number; time_ms: number; duration_ms: number; phases_ms: Record<string, number>; rows_in: number;
  changelog_bytes: number; stored_bytes: number; late: number; dead_letters: number;
  is_committed: boolean; is_published: boolean;
}
export interface Epochs { total: number; skip: number; epochs: Epoch[] }
export interface Split {
  source: string; split: string; rows_in: number; position: number | null; watermark_ms: Mark; is_idle: boolean;
  last_rows_ms: number | null; moved_ms: number | null; is_holding: boolean;
}
export interface Holding {
  source: string; split: string; watermark_ms: number | null; missing_ms: number | null; since_ms: number | null;
  last_rows_ms: number | null; reason: string; way_out: string;
}
export interface Firing {
  step: string; window: string; start_ms: number | null; end_ms: number | null; watermark_ms: Mark;
  missing_ms: number | null; verdict: "fired" | "waits" | "ended" | "unknown"; because: string; holding: Holding[];
}
export interface Watermarks {
  now_ms: number; since_ms: number | null; strategies: Record<string, string>; splits: Split[];
  steps: { uid: string; watermark_ms: Mark }[]; firings: Firing[];
}
export interface Windows { step: string; epoch: number; number: number; windows: { start_ms: number; end_ms: number; entries: number }[] }
export interface StateStep {
  step: string; states: { name: string; entries: number; bytes: number }[]; entries: number; bytes: number; expired: number;
  largest_subtask: number | null; subtasks: number | null; bytes_per_h: number | null; day_bytes: number | null; week_bytes: number | null;
}
export interface States {
  is_running: boolean; steps: StateStep[];
  history: { epoch: number; time_ms: number; entries: number; bytes: number; stored_bytes: number }[];
}
export interface Value { epoch: number; entries: number; found: boolean; value: unknown }
export interface Table { epoch: number; columns: { name: string; type: string }[]; rows: unknown[][]; is_cut: boolean }
export interface LateRow {
  epoch: number; timestamp_ms: number | null; late_by_ms: number | null; key: string | null; row: string | null; rows: number;
}
export interface Late {
  steps: {
    step: string; late: number; dead_letters: number; rows_in: number; late_to: string | null; late_rows: LateRow[];
    counters: Record<string, number>; outputs: { tag: string; rows: number; read_by: string[] }[];
  }[];
  history: { epoch: number; late: number; dead_letters: number }[];
}
export interface Sinks {
  published: number; committed: number; waiting: number[]; most_waiting: number;
  sinks: { sink: string; detail: string; rows: number; paths: { source: string; guarantee: string; reasons: string[] }[] }[];
}
export interface Failures {
  state: string; error: string | null; log: string[];
  restarts: { attempt: number; failed_ms: number; delay_ms: number; error: string; message: string; step: string | null }[];
}
export interface Savepoints {
  is_running: boolean; folder: string;
  savepoints: { name: string; path: string; epoch: number; taken_ms: number; states: number; rows: number; size_bytes: number }[];
}
export interface Verdict { name: string; is_whole: boolean; text: string; steps: Record<string, string> }
export interface Settings {
  job_id: string; folder: string; savepoints: string; engine: string | null; version: string | null;
  started_ms: number | null; settings: Record<string, string>;
}

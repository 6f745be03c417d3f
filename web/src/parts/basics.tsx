import type { ComponentChildren } from "preact";

const TONES: Record<string, string> = {
  running: "good", finished: "calm", stopped: "calm", restarting: "warn", starting: "warn", failed: "bad", dead: "bad", unreadable: "bad",
};

export const Badge = ({ state }: { state: string }) => <span class={`badge ${TONES[state] ?? "calm"}`}>{state}</span>;

export const Fact = ({ name, value }: { name: string; value: ComponentChildren }) => (
  <div class="fact"><dt>{name}</dt><dd>{value}</dd></div>
);

export const Card = ({ title, children, side }: { title: string; children: ComponentChildren; side?: ComponentChildren }) => (
  <section class="card" aria-label={title}>
    <div class="card-head"><h2>{title}</h2>{side}</div>
    {children}
  </section>
);

export const Problem = ({ text }: { text: string | null }) => (text ? <p class="note bad" role="alert">{text}</p> : null);
export const Loading = () => <p class="hint">Loading…</p>;

export interface Column<T> { title: string; cell: (row: T) => ComponentChildren; isNumber?: boolean }

/** A table that scrolls inside itself where it is too wide. */
export function DataTable<T>({ label, columns, rows, rowClass, keyOf }: {
  label: string; columns: Column<T>[]; rows: T[]; rowClass?: (row: T) => string; keyOf: (row: T) => string | number;
}) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead><tr>{columns.map((one) => <th key={one.title} scope="col" class={one.isNumber ? "number" : undefined}>{one.title}</th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row)}>
              {columns.map((one) => <td key={one.title} class={one.isNumber ? "number" : undefined}>{one.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

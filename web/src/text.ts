// Numbers, sizes, times and durations as people read them.
import type { Mark } from "./types";

export const count = (value: number | null | undefined): string => (value == null ? "–" : value.toLocaleString("en"));

export function short(value: number | null | undefined): string {
  if (value == null) return "–";
  const size = Math.abs(value);
  for (const [unit, of] of [["G", 1e9], ["M", 1e6], ["k", 1e3]] as const)
    if (size >= of) return `${(value / of).toFixed(size >= 100 * of ? 0 : 1)} ${unit}`;
  return size >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
}

export const perSecond = (value: number | null): string => (value === null ? "–" : `${short(value)}/s`);

export function bytes(value: number | null | undefined): string {
  if (value == null) return "–";
  const size = Math.abs(value);
  for (const [unit, of] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const)
    if (size >= of) return `${(value / of).toFixed(1)} ${unit}`;
  return `${value.toFixed(0)} B`;
}

export function duration(ms: number | null | undefined): string {
  if (ms == null) return "–";
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 && ms % 1000 ? 1 : 0)} s`;
  const units: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];
  const at = units.findIndex(([, of]) => ms >= of);
  const [unit, of] = units[at]!;
  const [smaller, by] = units[Math.min(at + 1, 3)]!;
  const rest = Math.floor((ms % of) / by);
  return `${Math.floor(ms / of)} ${unit}${rest && smaller !== unit ? ` ${rest} ${smaller}` : ""}`;
}

/** Milliseconds within a text, as people say them. */
export const inWords = (text: string): string => text.replace(/(\d+) ms/g, (_, ms: string) => duration(Number(ms)));

const pad = (value: number): string => String(value).padStart(2, "0");

/** A time of day in UTC, as jobs tell time; with the date if it is not today. */
export function moment(ms: number | null | undefined, millis = false): string {
  if (ms == null) return "–";
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return String(ms);
  const today = new Date().toISOString().slice(0, 10);
  const day = at.toISOString().slice(0, 10);
  const time = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
  const fine = millis ? `.${String(at.getUTCMilliseconds()).padStart(3, "0")}` : "";
  return `${day === today ? "" : `${day} `}${time}${fine}`;
}

export const mark = (value: Mark): string => (value === null ? "none yet" : value === "end" ? "end of input" : moment(value));
export const lag = (value: Mark, now: number): string => (typeof value === "number" ? duration(Math.max(0, now - value)) : "–");
export const ago = (ms: number | null, now: number): string =>
  ms === null ? "never" : now - ms < 1500 ? "just now" : `${duration(now - ms)} ago`;
export const percent = (part: number | null): string =>
  part === null ? "–" : `${(part * 100).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;

import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { hasToken, setToken } from "./api";
import { useLive, useNow } from "./live";
import { EpochsPage } from "./pages/epochs";
import { FailuresPage } from "./pages/failures";
import { GraphPage } from "./pages/graph";
import { JobsPage } from "./pages/jobs";
import { LatePage } from "./pages/late";
import { SavepointsPage } from "./pages/savepoints";
import { SettingsPage } from "./pages/settings";
import { SinksPage } from "./pages/sinks";
import { StatePage } from "./pages/state";
import { WatermarksPage } from "./pages/watermarks";
import { WindowsPage } from "./pages/windows";
import { Badge, Fact } from "./parts/basics";
import { count, lag, perSecond } from "./text";
import { switchTheme } from "./theme";
import type { Job } from "./types";

export type PageProps = { job: Job; now: number };

const PAGES: { name: string; title: string; key: string; page: FunctionComponent<PageProps> }[] = [
  { name: "graph", title: "Graph", key: "1", page: GraphPage },
  { name: "epochs", title: "Epochs", key: "2", page: EpochsPage },
  { name: "watermarks", title: "Watermarks", key: "3", page: WatermarksPage },
  { name: "windows", title: "Windows", key: "4", page: WindowsPage },
  { name: "state", title: "State", key: "5", page: StatePage },
  { name: "late", title: "Late rows", key: "6", page: LatePage },
  { name: "sinks", title: "Sinks", key: "7", page: SinksPage },
  { name: "failures", title: "Failures", key: "8", page: FailuresPage },
  { name: "savepoints", title: "Savepoints", key: "9", page: SavepointsPage },
  { name: "settings", title: "Settings", key: "0", page: SettingsPage },
];

function routeNow(): string[] {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
}

function useRoute(): string[] {
  const [route, setRoute] = useState(routeNow);
  useEffect(() => {
    const changed = (): void => setRoute(routeNow());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export function App() {
  const [asked, setAsked] = useState(0);
  const live = useLive(asked);
  const [id, name] = useRoute();
  const job = live.jobs?.find((one) => one.id === id);
  useShortcuts();
  useEffect(() => {
    const page = PAGES.find((one) => one.name === name);
    document.title = job ? `${job.name} · ${page?.title ?? "Graph"} · Headwater` : "Headwater";
  }, [job?.name, name]);
  if (live.needsToken || (!hasToken() && live.jobs === null)) return <AskForToken done={() => setAsked((n) => n + 1)} />;
  return (
    <>
      <a class="skip" href="#main">Skip to content</a>
      <header class="top">
        <a class="brand" href="#/">
          <img src="./icon.svg" alt="" width="26" height="26" />
          <span>Headwater</span>
        </a>
        {job && <JobSwitch jobs={live.jobs ?? []} job={job} page={name ?? "graph"} />}
        <span class="grow" />
        {live.problem && <span class="offline" role="status">not connected: {live.problem}</span>}
        <Help />
        <button class="quiet" onClick={switchTheme} aria-label="Switch between light and dark (t)" title="Light or dark (t)">◐</button>
      </header>
      {live.jobs === null ? (
        <main id="main" class="page"><p class="hint">Looking for jobs…</p></main>
      ) : id === undefined ? (
        <main id="main" class="page"><JobsPage jobs={live.jobs} /></main>
      ) : job === undefined ? (
        <main id="main" class="page"><h1>No such job</h1><p>It is not in the folders that this server looks at. <a href="#/">All jobs</a></p></main>
      ) : (
        <OfJob job={job} name={name ?? "graph"} />
      )}
    </>
  );
}

function OfJob({ job, name }: { job: Job; name: string }) {
  const now = useNow(job);
  const found = PAGES.find((one) => one.name === name) ?? PAGES[0]!;
  const Page = found.page;
  const current = useRef<HTMLAnchorElement>(null);
  useEffect(() => current.current?.scrollIntoView({ block: "nearest", inline: "center" }), [found]);
  return (
    <div class="of-job">
      <nav aria-label="Pages of the job" class="side">
        {PAGES.map((one) => (
          <a key={one.name} ref={one === found ? current : undefined} href={`#/${job.id}/${one.name}`} aria-current={one === found ? "page" : undefined} title={`${one.title} (${one.key})`}>
            {one.title}
            {one.name === "failures" && job.state === "failed" ? <i class="dot bad" /> : null}
            {one.name === "late" && job.late + job.dead_letters > 0 ? <i class="dot warn" /> : null}
          </a>
        ))}
      </nav>
      <main id="main" class="page" tabIndex={-1}>
        <div class="job-head">
          <h1>{job.name}</h1>
          <Badge state={job.state} />
          <dl class="facts">
            <Fact name="epoch" value={job.committed < 0 ? "none yet" : count(job.committed)} />
            <Fact name="published" value={job.published < 0 ? "none yet" : count(job.published)} />
            <Fact name="rows" value={count(job.rows_in)} />
            {job.is_running && <Fact name="speed" value={perSecond(job.rows_per_s)} />}
            <Fact name="event time lags" value={lag(job.watermark_ms, now)} />
          </dl>
        </div>
        {job.state === "unreadable" ? <p class="note bad" role="alert">{job.error}</p> : <Page key={job.id + found.name} job={job} now={now} />}
      </main>
    </div>
  );
}

function JobSwitch({ jobs, job, page }: { jobs: Job[]; job: Job; page: string }) {
  return (
    <select aria-label="Job" class="switch" value={job.id} onChange={(event) => (location.hash = `#/${event.currentTarget.value}/${page}`)}>
      {jobs.map((one) => <option key={one.id} value={one.id}>{one.name} – {one.state}</option>)}
    </select>
  );
}

function AskForToken({ done }: { done: () => void }) {
  const given = useRef<HTMLInputElement>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    setToken(given.current!.value.trim());
    done();
  };
  return (
    <main id="main" class="page narrow">
      <h1>Headwater</h1>
      <p>This server asks for its token: it is the end of the address that <code>headwater ui</code> printed.</p>
      <form class="line" onSubmit={submit}>
        <input ref={given} type="password" aria-label="Token" autoComplete="off" required />
        <button type="submit">Open</button>
      </form>
    </main>
  );
}

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const open = (): void => dialog.current?.showModal();
    addEventListener("headwater-help", open);
    return () => removeEventListener("headwater-help", open);
  }, []);
  const row = (key: string, text: ComponentChildren) => <tr><td><kbd>{key}</kbd></td><td>{text}</td></tr>;
  return (
    <>
      <button class="quiet" onClick={() => dialog.current?.showModal()} aria-label="Keyboard shortcuts (?)" title="Keyboard (?)">?</button>
      <dialog ref={dialog} aria-label="Keyboard shortcuts">
        <h2>Keyboard</h2>
        <table class="plain">
          <tbody>
            {row("j", "all jobs")}
            {PAGES.map((one) => row(one.key, one.title))}
            {row("t", "light or dark")}
            {row("?", "this list")}
          </tbody>
        </table>
        <form method="dialog"><button>Close</button></form>
      </dialog>
    </>
  );
}

function useShortcuts(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      const page = PAGES.find((one) => one.key === event.key);
      const [job] = routeNow();
      if (page && job) location.hash = `#/${job}/${page.name}`;
      else if (event.key === "j") location.hash = "#/";
      else if (event.key === "t") switchTheme();
      else if (event.key === "?") dispatchEvent(new Event("headwater-help"));
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

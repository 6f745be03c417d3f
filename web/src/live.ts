// What pages show, kept up to date: the list of jobs as the server tells it, and what a page asks for when its job moves.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, listen } from "./api";
import type { Job } from "./types";

const AGAIN_MS = 1500;
const TICK_MS = 2000;

export interface Live {
  jobs: Job[] | null;
  /** Why nothing is heard from the server; null while something is. */
  problem: string | null;
  needsToken: boolean;
}

export function useLive(asked: number): Live {
  const [live, setLive] = useState<Live>({ jobs: null, problem: null, needsToken: false });
  useEffect(() => {
    const end = new AbortController();
    let timer = 0;
    const connect = async (): Promise<void> => {
      try {
        await listen((text) => setLive({ jobs: (JSON.parse(text) as { jobs: Job[] }).jobs, problem: null, needsToken: false }), end.signal);
        throw new Error("the server has ended");
      } catch (error) {
        if (end.signal.aborted) return;
        const needsToken = error instanceof ApiError && error.status === 401;
        setLive((before) => ({ ...before, problem: (error as Error).message, needsToken }));
        if (!needsToken) timer = window.setTimeout(connect, AGAIN_MS);
      }
    };
    void connect();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [asked]);
  return live;
}

export interface Loaded<T> {
  data: T | null;
  error: string | null;
}

/** Ask for something, and again whenever the job has moved; running jobs are asked now and then in any case. */
export function usePage<T>(path: string | null, job: Job): Loaded<T> & { reload: () => void } {
  const [loaded, setLoaded] = useState<Loaded<T> & { path: string | null }>({ data: null, error: null, path: null });
  const [asked, setAsked] = useState(0);
  const busy = useRef(false);
  const stamp = `${job.state} ${job.committed} ${job.published} ${job.restarts}`;
  useEffect(() => {
    if (!job.is_running) return;
    const timer = setInterval(() => !busy.current && setAsked((n) => n + 1), TICK_MS);
    return () => clearInterval(timer);
  }, [job.is_running]);
  useEffect(() => {
    if (path === null) return;
    const end = new AbortController();
    busy.current = true;
    get<T>(path, end.signal)
      .then((data) => setLoaded({ data, error: null, path }))
      .catch((error: Error) => {
        if (!end.signal.aborted) setLoaded((before) => ({ data: before.path === path ? before.data : null, error: error.message, path }));
      })
      .finally(() => (busy.current = false));
    return () => end.abort();
  }, [path, stamp, asked]);
  const fits = loaded.path === path;
  return { data: fits ? loaded.data : null, error: fits ? loaded.error : null, reload: () => setAsked((n) => n + 1) };
}

/** The clock of the server, as it goes on between two things it said. */
export function useNow(job: Job): number {
  const [, tick] = useState(0);
  const offset = useRef(0);
  useEffect(() => {
    offset.current = job.now_ms - Date.now();
  }, [job]);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return job.is_running ? Date.now() + offset.current : (job.epoch_ms ?? job.now_ms);
}

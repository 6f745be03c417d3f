// The server, as pages ask it: with the token of this tab, in JSON.
const KEY = "headwater-token";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Take the token out of the address, so that it is neither shown nor kept in the history. */
export function takeToken(): void {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given === null) return;
  sessionStorage.setItem(KEY, given);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

export const hasToken = (): boolean => sessionStorage.getItem(KEY) !== null;
export const setToken = (token: string): void => sessionStorage.setItem(KEY, token);

async function asked(path: string, more: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
  if (more.body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(`./api/${path}`, { ...more, headers, cache: "no-store" });
  if (!response.ok) {
    const said = (await response.json().catch(() => ({}))) as { error?: string };
    throw new ApiError(response.status, said.error ?? `the server answered ${response.status}`);
  }
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await asked(path, signal ? { signal } : {})).json() as Promise<T>;
}

export async function post<T>(path: string, body: object): Promise<T> {
  return (await asked(path, { method: "POST", body: JSON.stringify(body) })).json() as Promise<T>;
}

/** What the server tells, until the signal ends it; fetch can show the token, which EventSource cannot. */
export async function listen(tell: (content: string) => void, signal: AbortSignal): Promise<void> {
  const response = await asked("events", { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    let end: number;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const data = text.slice(0, end).split("\n").find((line) => line.startsWith("data: "));
      if (data) tell(data.slice(6));
      text = text.slice(end + 2);
    }
  }
}

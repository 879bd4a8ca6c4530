/**
 * Requests to the hub, with a token that lives in memory alone.
 *
 * The refresh token is a cookie that no script sees. Only one exchange is under way at a time, over all tabs where the
 * browser has locks: two at once would look like a theft.
 */
import type { Problem, Success, Tokens } from '../generated/api';
import { text } from '../text';

let accessToken: string | undefined;
let onSignedOut: () => void = () => undefined;

export class RequestProblem extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly fields: Record<string, string>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.error ?? text.unanswered);
    this.status = status;
    this.code = problem.code;
    this.fields = Object.fromEntries((problem.fields ?? []).map(({ field, message }) => [field, message]));
  }
}

export function setToken(token: string | undefined): void {
  accessToken = token;
}

export function whenSignedOut(told: () => void): void {
  onSignedOut = told;
}

/** The token of now; without one it is asked for. `undefined` when nobody is signed in. */
export async function token(): Promise<string | undefined> {
  return accessToken ?? (await refresh());
}

let exchange: Promise<string | undefined> | undefined;

/** Exchanges the cookie for a new token. Throws when the hub cannot be reached. */
export function refresh(): Promise<string | undefined> {
  exchange ??= locked(async () => {
    const answer = await fetch('/api/auth/refresh', { method: 'POST' });
    if (answer.status === 401) {
      accessToken = undefined;
      return undefined;
    }
    accessToken = (await read<Success<Tokens>>(answer)).data.accessToken;
    return accessToken;
  }).finally(() => {
    exchange = undefined;
  });
  return exchange;
}

function locked<T>(work: () => Promise<T>): Promise<T> {
  // Absent where the page is not secure, which a hub on a local network may be.
  if (!('locks' in navigator)) return work();
  return navigator.locks.request('parlor-refresh', work) as Promise<T>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Asks for something; the answer is the whole body. */
export async function apiRequest<T>(method: Method, path: string, body?: unknown): Promise<T> {
  return read<T>(await answered(method, path, body));
}

async function answered(method: Method, path: string, body?: unknown): Promise<Response> {
  const answer = await send(method, path, body, await token());
  if (answer.status !== 401 || accessToken === undefined) return answer;
  // Run out, most likely: once more with a new one.
  const renewed = await refresh();
  if (renewed !== undefined) return send(method, path, body, renewed);
  onSignedOut();
  return answer;
}

/** Asks for something; the answer is its `data`. */
export async function apiResult<T>(method: Method, path: string, body?: unknown): Promise<T> {
  return (await apiRequest<Success<T>>(method, path, body)).data;
}

/** For those who are not signed in yet. */
export async function postAnonymous<T>(path: string, body: unknown): Promise<T> {
  return (await read<Success<T>>(await send('POST', path, body, undefined))).data;
}

/** A file of the hub, as something that can be shown. */
export async function file(url: string): Promise<Blob> {
  const answer = await answered('GET', url);
  if (!answer.ok) throw new RequestProblem(answer.status, {});
  return answer.blob();
}

function send(method: Method, path: string, body: unknown, bearer: string | undefined): Promise<Response> {
  const headers = new Headers();
  if (bearer !== undefined) headers.set('Authorization', `Bearer ${bearer}`);
  if (body instanceof FormData) return fetch(path, { method, headers, body });
  if (body === undefined) return fetch(path, { method, headers });
  headers.set('Content-Type', 'application/json');
  return fetch(path, { method, headers, body: JSON.stringify(body) });
}

async function read<T>(answer: Response): Promise<T> {
  const body: unknown = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new RequestProblem(answer.status, body as Partial<Problem>);
  return body as T;
}

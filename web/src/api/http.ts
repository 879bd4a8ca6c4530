/**
 * Authenticated requests to the hub. The access token is kept in memory only.
 *
 * The refresh token is an HttpOnly cookie. Only one refresh runs at a time, across all tabs if the browser
 * supports locks: the hub takes two concurrent uses of a refresh token for a theft.
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
    super(problem.error ?? text.noResponse);
    this.status = status;
    this.code = problem.code;
    this.fields = Object.fromEntries((problem.fields ?? []).map(({ field, message }) => [field, message]));
  }
}

export function setToken(token: string | undefined): void {
  accessToken = token;
}

export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

/** Current access token, refreshed if there is none. `undefined` when no user is signed in. */
export async function token(): Promise<string | undefined> {
  return accessToken ?? (await refresh());
}

let pendingRefresh: Promise<string | undefined> | undefined;

/** Gets a new access token with the refresh cookie. Throws when the hub cannot be reached. */
export function refresh(): Promise<string | undefined> {
  pendingRefresh ??= withRefreshLock(async () => {
    const response = await fetch('/api/auth/refresh', { method: 'POST' });
    if (response.status === 401) {
      accessToken = undefined;
      return undefined;
    }
    accessToken = (await parseResponse<Success<Tokens>>(response)).data.accessToken;
    return accessToken;
  }).finally(() => {
    pendingRefresh = undefined;
  });
  return pendingRefresh;
}

function withRefreshLock<T>(work: () => Promise<T>): Promise<T> {
  // `navigator.locks` does not exist without TLS, as on a hub in a local network.
  if (!('locks' in navigator)) return work();
  return navigator.locks.request('parlor-refresh', work) as Promise<T>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Sends a request and returns the response body. */
export async function apiRequest<T>(method: Method, path: string, body?: unknown): Promise<T> {
  return parseResponse<T>(await authorizedFetch(method, path, body));
}

async function authorizedFetch(method: Method, path: string, body?: unknown): Promise<Response> {
  const response = await send(method, path, body, await token());
  if (response.status !== 401 || accessToken === undefined) return response;
  // The token has probably expired: retry once with a new one.
  const renewed = await refresh();
  if (renewed !== undefined) return send(method, path, body, renewed);
  onSignedOut();
  return response;
}

/** Sends a request and returns the `data` field of the response body. */
export async function apiResult<T>(method: Method, path: string, body?: unknown): Promise<T> {
  return (await apiRequest<Success<T>>(method, path, body)).data;
}

/** Sends a POST request without an access token, and returns the `data` field of the response. */
export async function postAnonymous<T>(path: string, body: unknown): Promise<T> {
  return (await parseResponse<Success<T>>(await send('POST', path, body, undefined))).data;
}

/** Downloads a file that needs an access token. */
export async function file(url: string): Promise<Blob> {
  const response = await authorizedFetch('GET', url);
  if (!response.ok) throw new RequestProblem(response.status, {});
  return response.blob();
}

function send(method: Method, path: string, body: unknown, bearer: string | undefined): Promise<Response> {
  const headers = new Headers();
  if (bearer !== undefined) headers.set('Authorization', `Bearer ${bearer}`);
  if (body instanceof FormData) return fetch(path, { method, headers, body });
  if (body === undefined) return fetch(path, { method, headers });
  headers.set('Content-Type', 'application/json');
  return fetch(path, { method, headers, body: JSON.stringify(body) });
}

async function parseResponse<T>(response: Response): Promise<T> {
  const body: unknown = await response.json().catch(() => ({}));
  if (!response.ok) throw new RequestProblem(response.status, body as Partial<Problem>);
  return body as T;
}

/** Session of this tab: the signed-in user and their chat client. */
import { create } from 'zustand';
import { apiRequest, apiResult, postAnonymous, refresh, RequestProblem, setToken, whenSignedOut } from '../api/http';
import type { LoginAnswer, SignedIn, User } from '../generated/api';
import { ChatClient } from '../live/client';
import { prepareRichText } from '../markdown/MessageText';

export type Session =
  | { state: 'unknown' }
  | { state: 'unreachable' }
  | { state: 'out' }
  | { state: 'in'; user: User; client: ChatClient };

export const useSession = create<Session>(() => ({ state: 'unknown' }));

/** Chat client of the signed-in user. Throws in components that are rendered without a session. */
export function useClient(): ChatClient {
  const session = useSession();
  if (session.state !== 'in') throw new Error('useClient requires a signed-in user');
  return session.client;
}

export function useIsAdmin(): boolean {
  const session = useSession();
  return session.state === 'in' && session.user.role === 'admin';
}

/** Restores the session with the refresh cookie, if there is one. */
export async function resume(): Promise<void> {
  try {
    const token = await refresh();
    if (token === undefined) return endSession();
    prepareRichText();
    startSession(await apiResult<User>('GET', '/api/users/me'));
  } catch (problem) {
    if (problem instanceof RequestProblem && problem.status === 401) endSession();
    else useSession.setState({ state: 'unreachable' }, true);
  }
}

export async function login(username: string, password: string): Promise<{ totpToken: string } | undefined> {
  const response = await postAnonymous<LoginAnswer>('/api/auth/login', { username, password });
  if ('totpToken' in response) return { totpToken: response.totpToken };
  acceptSignIn(response);
  return undefined;
}

export async function verifyCode(totpToken: string, code: string): Promise<void> {
  acceptSignIn(await postAnonymous<SignedIn>('/api/auth/verify-totp', { totpToken, code }));
}

export interface NewAccount {
  token: string;
  username: string;
  displayName?: string;
  password: string;
}

export async function setUp(account: NewAccount): Promise<void> {
  acceptSignIn(await postAnonymous<SignedIn>('/api/setup', account));
}

export async function register(account: NewAccount): Promise<void> {
  acceptSignIn(await postAnonymous<SignedIn>('/api/auth/register', account));
}

export async function signOut(): Promise<void> {
  await apiRequest('POST', '/api/auth/logout').catch(() => undefined);
  endSession();
}

export function userChanged(user: User): void {
  const session = useSession.getState();
  if (session.state === 'in') useSession.setState({ ...session, user }, true);
}

function acceptSignIn(signedIn: SignedIn): void {
  setToken(signedIn.accessToken);
  startSession(signedIn.user);
}

function startSession(user: User): void {
  const client = new ChatClient(user, endSession);
  useSession.setState({ state: 'in', user, client }, true);
  client.start();
}

function endSession(): void {
  const session = useSession.getState();
  setToken(undefined);
  useSession.setState({ state: 'out' }, true);
  if (session.state === 'in') session.client.stop();
}

whenSignedOut(endSession);

/** Who is signed in, in this tab, and the house that is theirs. */
import { create } from 'zustand';
import { apiRequest, apiResult, postAnonymous, refresh, RequestProblem, setToken, whenSignedOut } from '../api/http';
import type { LoginAnswer, SignedIn, User } from '../generated/api';
import { ChatClient } from '../live/client';
import { prepareRichText } from '../markdown/MessageText';

export type Session =
  | { state: 'unknown' }
  | { state: 'unreachable' }
  | { state: 'out' }
  | { state: 'in'; user: User; house: ChatClient };

export const useSession = create<Session>(() => ({ state: 'unknown' }));

/** The house of whoever is signed in; parts that only they see may ask for it. */
export function useClient(): ChatClient {
  const session = useSession();
  if (session.state !== 'in') throw new Error('only shown to who is signed in');
  return session.house;
}

export function useIsAdmin(): boolean {
  const session = useSession();
  return session.state === 'in' && session.user.role === 'admin';
}

/** Comes back with the cookie, if there is one. */
export async function resume(): Promise<void> {
  try {
    const token = await refresh();
    if (token === undefined) return leave();
    prepareRichText();
    startSession(await apiResult<User>('GET', '/api/users/me'));
  } catch (problem) {
    if (problem instanceof RequestProblem && problem.status === 401) leave();
    else useSession.setState({ state: 'unreachable' }, true);
  }
}

export async function login(username: string, password: string): Promise<{ totpToken: string } | undefined> {
  const answer = await postAnonymous<LoginAnswer>('/api/auth/login', { username, password });
  if ('totpToken' in answer) return { totpToken: answer.totpToken };
  take(answer);
  return undefined;
}

export async function verifyCode(totpToken: string, code: string): Promise<void> {
  take(await postAnonymous<SignedIn>('/api/auth/verify-totp', { totpToken, code }));
}

export interface NewAccount {
  token: string;
  username: string;
  displayName?: string;
  password: string;
}

export async function setUp(account: NewAccount): Promise<void> {
  take(await postAnonymous<SignedIn>('/api/setup', account));
}

export async function register(account: NewAccount): Promise<void> {
  take(await postAnonymous<SignedIn>('/api/auth/register', account));
}

export async function signOut(): Promise<void> {
  await apiRequest('POST', '/api/auth/logout').catch(() => undefined);
  leave();
}

export function userChanged(user: User): void {
  const session = useSession.getState();
  if (session.state === 'in') useSession.setState({ ...session, user }, true);
}

function take(signedIn: SignedIn): void {
  setToken(signedIn.accessToken);
  startSession(signedIn.user);
}

function startSession(user: User): void {
  const house = new ChatClient(user, leave);
  useSession.setState({ state: 'in', user, house }, true);
  house.start();
}

function leave(): void {
  const session = useSession.getState();
  setToken(undefined);
  useSession.setState({ state: 'out' }, true);
  if (session.state === 'in') session.house.stop();
}

whenSignedOut(leave);

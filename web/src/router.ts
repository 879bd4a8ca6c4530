/** Routes of the app, which are below `/app`, and navigation between them. */
import { useSyncExternalStore } from 'react';

export type Route =
  | { name: 'setup' | 'register'; token: string }
  | { name: 'home' }
  | { name: 'room'; roomId: string; messageId?: string }
  | { name: 'tasks'; roomId: string }
  | { name: 'missions'; roomId?: string }
  | { name: 'agents'; agentId?: string }
  | { name: 'search'; query: string }
  | { name: 'settings'; section: string };

export function parseRoute(path: string, query: string, hash: string): Route {
  const token = new URLSearchParams(hash.replace(/^#/, '')).get('token') ?? '';
  if (path === '/setup') return { name: 'setup', token };
  if (path === '/register') return { name: 'register', token };
  const [app, area, first, second, third] = path.split('/').filter((part) => part !== '').map(decoded);
  if (app !== 'app') return { name: 'home' };
  if (area === 'rooms' && first !== undefined && second === 'tasks') return { name: 'tasks', roomId: first };
  if (area === 'rooms' && first !== undefined) {
    return { name: 'room', roomId: first, ...(second === 'messages' && third !== undefined && { messageId: third }) };
  }
  if (area === 'missions') return { name: 'missions', roomId: first };
  if (area === 'agents') return { name: 'agents', agentId: first };
  if (area === 'search') return { name: 'search', query };
  if (area === 'settings') return { name: 'settings', section: first ?? 'account' };
  return { name: 'home' };
}

export function roomPath(roomId: string, messageId?: string): string {
  const room = `/app/rooms/${encodeURIComponent(roomId)}`;
  return messageId === undefined ? room : `${room}/messages/${encodeURIComponent(messageId)}`;
}

export function tasksPath(roomId: string): string {
  return `${roomPath(roomId)}/tasks`;
}

export const MISSIONS_PATH = '/app/missions';

export function missionPath(roomId: string): string {
  return `${MISSIONS_PATH}/${encodeURIComponent(roomId)}`;
}

export const AGENTS_PATH = '/app/agents';

export function agentPath(agentId: string): string {
  return `${AGENTS_PATH}/${encodeURIComponent(agentId)}`;
}

/** `query` is a query string, as `toQueryString` returns it. */
export function searchPath(query: string): string {
  return `/app/search?${query}`;
}

export function settingsPath(section: string): string {
  return `/app/settings/${section}`;
}

export function navigate(path: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', path);
  else history.replaceState(null, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
}

export function useRoute(): Route {
  const address = useSyncExternalStore(
    (changed) => {
      addEventListener('popstate', changed);
      return () => removeEventListener('popstate', changed);
    },
    () => location.href,
  );
  const { pathname, search, hash } = new URL(address);
  return parseRoute(pathname, search, hash);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

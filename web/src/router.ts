/** Addresses: the page's own live under `/app`; what a link means is read from it and from nowhere else. */
import { useSyncExternalStore } from 'react';

export type Route =
  | { name: 'setup' | 'register'; token: string }
  | { name: 'home' }
  | { name: 'room'; roomId: string; messageId?: string }
  | { name: 'settings'; section: string };

export function parseRoute(path: string, hash: string): Route {
  const token = new URLSearchParams(hash.replace(/^#/, '')).get('token') ?? '';
  if (path === '/setup') return { name: 'setup', token };
  if (path === '/register') return { name: 'register', token };
  const [app, area, first, second, third] = path.split('/').filter((part) => part !== '').map(decoded);
  if (app !== 'app') return { name: 'home' };
  if (area === 'rooms' && first !== undefined) {
    return { name: 'room', roomId: first, ...(second === 'messages' && third !== undefined && { messageId: third }) };
  }
  if (area === 'settings') return { name: 'settings', section: first ?? 'account' };
  return { name: 'home' };
}

export function roomPath(roomId: string, messageId?: string): string {
  const room = `/app/rooms/${encodeURIComponent(roomId)}`;
  return messageId === undefined ? room : `${room}/messages/${encodeURIComponent(messageId)}`;
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
    () => location.pathname + location.hash,
  );
  const [path = '/', hash = ''] = address.split(/(?=#)/);
  return parseRoute(path, hash);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

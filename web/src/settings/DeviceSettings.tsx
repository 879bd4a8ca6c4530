import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Laptop } from 'lucide-react';
import { apiRequest, apiResult } from '../api/http';
import type { Session } from '../generated/api';
import { text } from '../text';
import { Button } from '../ui/button';
import { shortTime } from '../ui/time';
import { Block } from './Block';

export function DeviceSettings() {
  const queries = useQueryClient();
  const { data: sessions } = useQuery({
    queryKey: ['sessions'],
    queryFn: () => apiResult<Session[]>('GET', '/api/auth/sessions'),
  });
  const end = async (path: string) => {
    await apiRequest('DELETE', path);
    await queries.invalidateQueries({ queryKey: ['sessions'] });
  };
  return (
    <Block title={text.settings.devices}>
      <ul className="divide-y rounded-xl border">
        {sessions?.map((session) => (
          <li key={session.id} className="flex items-center gap-3 px-4 py-3">
            <Laptop size={18} className="shrink-0 text-faint" />
            <div className="min-w-0 flex-1">
              <p className="truncate text-sm font-medium" title={session.device}>
                {deviceName(session.device)}{' '}
                {session.current && <span className="font-normal text-accent">({text.settings.thisDevice})</span>}
              </p>
              <p className="text-xs text-faint">
                {session.address} · {text.settings.lastUsed(shortTime(Date.parse(session.lastUsedAt), Date.now()))}
              </p>
            </div>
            {!session.current && (
              <Button size="small" variant="danger" onClick={() => void end(`/api/auth/sessions/${session.id}`)}>
                {text.settings.endSession}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {sessions?.some((session) => !session.current) === true && (
        <Button className="mt-3" variant="danger" onClick={() => void end('/api/auth/sessions')}>
          {text.settings.endOtherSessions}
        </Button>
      )}
    </Block>
  );
}

const BROWSERS = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'];
const SYSTEMS = ['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS X', 'Linux'];

/** Browser and system from a user agent string. */
export function deviceName(device: string): string {
  const browser = BROWSERS.find((name) => device.includes(name));
  const system = SYSTEMS.find((name) => device.includes(name));
  return browser === undefined ? device.slice(0, 60) : [browser, system].filter(Boolean).join(' · ');
}

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Laptop } from 'lucide-react';
import { apiRequest, apiResult } from '../api/http';
import type { Gateway } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { shortTime } from '../ui/time';

/** Machines that run the user's agents, each with its gateway. */
export function Gateways() {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const { data: gateways } = useQuery({
    queryKey: ['gateways'],
    queryFn: () => apiResult<Gateway[]>('GET', '/api/agents/gateways/list'),
  });
  if (gateways === undefined || gateways.length === 0) return null;
  const remove = (id: string) =>
    attempt(async () => {
      await apiRequest('DELETE', `/api/agents/gateways/${encodeURIComponent(id)}`);
      await Promise.all(['gateways', 'agents'].map((key) => queries.invalidateQueries({ queryKey: [key] })));
    });
  return (
    <section>
      <h2 className="font-semibold tracking-tight">{text.agents.machines}</h2>
      <p className="mb-2 text-sm text-soft">{text.agents.machinesLead}</p>
      <ul className="divide-y rounded-xl border">
        {gateways.map((gateway) => (
          <li key={gateway.id} className="flex items-center gap-3.5 px-4 py-3">
            <Laptop size={18} aria-hidden className="shrink-0 text-faint" />
            <div className="min-w-0 flex-1">
              <p className="truncate text-sm font-medium">{gateway.hostname || gateway.name}</p>
              <p className="truncate text-xs text-faint">
                {[gateway.platform, gateway.arch].filter(Boolean).join(' · ')}
                {' · '}
                {gateway.online ? text.details.online : text.agents.lastSeenAt(lastSeen(gateway))}
              </p>
            </div>
            {!gateway.online && (
              <Button size="small" variant="danger" disabled={isBusy} onClick={() => void remove(gateway.id)}>
                {text.remove}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <Problem>{problem}</Problem>
    </section>
  );
}

function lastSeen({ disconnectedAt, connectedAt }: Gateway): string {
  return shortTime(Date.parse(disconnectedAt ?? connectedAt), Date.now());
}

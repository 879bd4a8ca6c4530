import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { CreatedInvitation, Invitation } from '../generated/api';
import { text } from '../text';
import { Button } from '../ui/button';
import { ShownOnce } from '../ui/shown-once';
import { shortTime } from '../ui/time';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

/** Creates invite links and lists the pending invitations. */
export function Invitations() {
  const queries = useQueryClient();
  const [url, setUrl] = useState<string>();
  const { attempt, problem, isBusy } = useSubmit();
  const { data: open = [] } = useQuery({
    queryKey: ['invitations'],
    queryFn: () => apiResult<Invitation[]>('GET', '/api/invites'),
  });
  const refresh = () => queries.invalidateQueries({ queryKey: ['invitations'] });
  const create = () =>
    attempt(async () => {
      setUrl((await apiResult<CreatedInvitation>('POST', '/api/invites', {})).url);
      await refresh();
    });
  const revoke = (id: string) =>
    attempt(async () => {
      await apiRequest('DELETE', `/api/invites/${id}`);
      setUrl(undefined);
      await refresh();
    });
  return (
    <Block title={text.settings.invite} lead={text.settings.inviteLead}>
      {url !== undefined && <ShownOnce words={url} />}
      <Button variant={url === undefined ? 'primary' : 'quiet'} disabled={isBusy} onClick={() => void create()}>
        {url === undefined ? text.settings.inviteSubmit : text.settings.inviteMore}
      </Button>
      <Problem>{problem}</Problem>
      {open.length > 0 && (
        <ul aria-label={text.settings.invitesOpen} className="divide-y rounded-xl border">
          {open.map((invitation) => (
            <li key={invitation.id} className="flex items-center gap-3 px-4 py-2.5 text-sm">
              <span className="min-w-0 flex-1">
                {invitation.note ?? text.settings.inviteFor(invitation.role)}{' '}
                <span className="text-xs text-faint">
                  {text.settings.inviteUntil(shortTime(Date.parse(invitation.expiresAt), Date.now()))}
                </span>
              </span>
              <Button size="small" variant="danger" disabled={isBusy} onClick={() => void revoke(invitation.id)}>
                {text.settings.revoke}
              </Button>
            </li>
          ))}
        </ul>
      )}
    </Block>
  );
}

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import { useChat } from '../chat/store';
import type { Agent } from '../generated/api';
import { Badge } from '../mail/Badge';
import { Sessions } from '../mail/Sessions';
import { Turns } from '../mail/Turns';
import { AGENTS_PATH, navigate } from '../router';
import { Block, Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Boundary } from '../ui/boundary';
import { Button } from '../ui/button';
import { ConfirmDialog } from '../ui/dialog';
import { EmptyState, Page } from '../ui/page';
import { fullTime } from '../ui/time';
import { AddToRoom } from './AddToRoom';
import { Sharing } from './Sharing';
import { AgentRuns } from './AgentRuns';
import { SessionRuns } from './SessionRuns';
import { kindName, presence } from './labels';

export function AgentDetails({ agentId, isWide }: { agentId: string; isWide: boolean }) {
  const { data: agent, isError } = useQuery({
    queryKey: ['agents', agentId],
    queryFn: () => apiResult<Agent>('GET', `/api/agents/${encodeURIComponent(agentId)}`),
    retry: false,
  });
  const me = useChat((state) => state.me?.id);
  return (
    <Page title={agent?.name ?? text.agents.heading} back={AGENTS_PATH} isWide={isWide}>
      {isError && <EmptyState title={text.agents.notFound} />}
      {agent !== undefined && (
        <div className="space-y-10">
          <Facts agent={agent} />
          {agent.ownerId === me && (
            <Boundary>
              <SessionRuns agentId={agent.id} />
            </Boundary>
          )}
          <AgentRuns agentId={agent.id} />
          {agent.ownerId === me && (
            <Boundary>
              <Sessions agentId={agent.id} />
            </Boundary>
          )}
          {agent.ownerId === me && (
            <Boundary>
              <Turns agentId={agent.id} />
            </Boundary>
          )}
          <AddToRoom agent={agent} />
          {agent.ownerId === me && <Ownership agent={agent} />}
        </div>
      )}
    </Page>
  );
}

function Facts({ agent }: { agent: Agent }) {
  const live = useChat((state) => state.agents[agent.id]);
  const state = presence(live?.status ?? agent.status);
  const queued = live?.queueDepth ?? 0;
  const device = agent.deviceInfo;
  const facts: [string, string | null | undefined][] = [
    [text.agents.kind, kindName(agent)],
    [text.agents.model, live?.model ?? agent.model],
    [text.agents.machine, device && [device.hostname, device.platform, device.arch].filter(Boolean).join(' · ')],
    [text.agents.folder, agent.workingDirectory],
    [text.agents.owner, agent.ownerName],
    [text.agents.lastSeen, state !== 'offline' || agent.lastSeenAt === null ? undefined : fullTime(Date.parse(agent.lastSeenAt))],
    [text.agents.capabilities, agent.capabilities.join(', ')],
  ];
  return (
    <section>
      <div className="flex items-center gap-4">
        <Avatar id={agent.id} name={agent.name} kind="agent" size={56} state={state} />
        <div className="min-w-0">
          <p className="text-lg leading-tight font-semibold tracking-tight">{agent.name}</p>
          <p className="text-sm text-soft">
            {text.details[state]}
            {queued > 0 && ` · ${text.runs.queue(queued)}`}
          </p>
        </div>
      </div>
      {agent.missing === true && (
        <p className="mt-4 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm text-soft">
          <Badge tone="warn">{text.agents.missing}</Badge>
          {text.agents.missingLead}
        </p>
      )}
      {agent.description !== '' && <p className="mt-4 text-sm whitespace-pre-wrap">{agent.description}</p>}
      <dl className="mt-5 grid gap-x-6 gap-y-2 text-sm sm:grid-cols-[8rem_1fr]">
        {facts
          .filter(([, value]) => value !== undefined && value !== null && value !== '')
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-faint max-sm:mt-1">{name}</dt>
              <dd className="min-w-0 break-words">{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}

function Ownership({ agent }: { agent: Agent }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [isRemoving, setRemoving] = useState(false);
  const remove = () =>
    attempt(async () => {
      await apiRequest('DELETE', `/api/agents/${encodeURIComponent(agent.id)}`);
      navigate(AGENTS_PATH, 'replace');
      await queries.invalidateQueries({ queryKey: ['agents'] });
    });
  return (
    <Block title={text.agents.sharing} lead={text.agents.sharingLead}>
      <Sharing agent={agent} />
      <Problem>{problem}</Problem>
      <Button variant="danger" size="small" onClick={() => setRemoving(true)}>
        {text.agents.remove}
      </Button>
      {isRemoving && (
        <ConfirmDialog
          title={text.agents.remove}
          lead={text.agents.removeConfirm(agent.name)}
          isBusy={isBusy}
          onConfirm={() => void remove()}
          onClose={() => setRemoving(false)}
        />
      )}
    </Block>
  );
}

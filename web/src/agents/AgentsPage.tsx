import { useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { apiResult } from '../api/http';
import { useChat } from '../chat/store';
import type { Agent } from '../generated/api';
import { agentPath } from '../router';
import { useIsAdmin } from '../session/session';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Button } from '../ui/button';
import { DialogBoundary } from '../ui/dialog';
import { Link } from '../ui/link';
import { EmptyState, Page } from '../ui/page';
import { Badge } from '../mail/Badge';
import { AddAgent } from './AddAgent';
import { AgentDetails } from './AgentDetails';
import { Gateways } from './Gateways';
import { Services } from './Services';
import { kindName, machine, presence } from './labels';

export default function AgentsPage({ agentId, isWide }: { agentId: string | undefined; isWide: boolean }) {
  const [isAdding, setAdding] = useState(false);
  const isAdmin = useIsAdmin();
  const own = useQuery({ queryKey: ['agents'], queryFn: () => apiResult<Agent[]>('GET', '/api/agents') });
  const shared = useQuery({ queryKey: ['agents', 'shared'], queryFn: () => apiResult<Agent[]>('GET', '/api/agents/shared') });
  if (agentId !== undefined) return <AgentDetails agentId={agentId} isWide={isWide} />;
  const add = (
    <Button variant="primary" onClick={() => setAdding(true)}>
      <Plus size={16} />
      {text.agents.add}
    </Button>
  );
  return (
    <Page title={text.agents.heading} isWide={isWide} actions={add}>
      <div className="space-y-10">
        {own.data?.length === 0 ? (
          <EmptyState title={text.agents.none} lead={text.agents.noneLead} />
        ) : (
          <AgentList label={text.agents.own} agents={own.data ?? []} />
        )}
        <AgentList label={text.agents.shared} agents={shared.data ?? []} isShared />
        <Gateways />
        {isAdmin && <Services />}
      </div>
      {isAdding && (
        <DialogBoundary onClose={() => setAdding(false)}>
          <AddAgent agents={own.data ?? []} onClose={() => setAdding(false)} />
        </DialogBoundary>
      )}
    </Page>
  );
}

function AgentList({ label, agents, isShared }: { label: string; agents: Agent[]; isShared?: boolean }) {
  if (agents.length === 0) return null;
  return (
    <section>
      <h2 className="mb-2 font-semibold tracking-tight">{label}</h2>
      <ul className="divide-y rounded-xl border">
        {agents.map((agent) => (
          <AgentRow key={agent.id} agent={agent} isShared={isShared === true} />
        ))}
      </ul>
    </section>
  );
}

function AgentRow({ agent, isShared }: { agent: Agent; isShared: boolean }) {
  // Live status frames are newer than the REST response.
  const live = useChat((state) => state.agents[agent.id]);
  const state = presence(live?.status ?? agent.status);
  const facts = [kindName(agent), live?.model ?? agent.model, machine(agent), isShared ? text.agents.ownedBy(agent.ownerName) : ''];
  return (
    <li>
      <Link href={agentPath(agent.id)} className="flex items-center gap-3.5 px-4 py-3 hover:bg-hover">
        <Avatar id={agent.id} name={agent.name} kind="agent" size={36} state={state} />
        <span className="min-w-0 flex-1">
          <span className="block truncate text-sm font-semibold">{agent.name}</span>
          <span className="block truncate text-xs text-faint">{facts.filter(Boolean).join(' · ')}</span>
        </span>
        {agent.missing === true && <Badge tone="warn">{text.agents.missing}</Badge>}
        <span className="shrink-0 text-xs text-soft">{text.details[state]}</span>
      </Link>
    </li>
  );
}

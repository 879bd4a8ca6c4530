import { useQuery } from '@tanstack/react-query';
import { ChevronRight, Plus, Settings2 } from 'lucide-react';
import { useId, useState, type ReactNode } from 'react';
import { useChat } from '../chat/store';
import type { AgentSession, AgentSessions, MailboxSummary } from '../generated/api';
import { Block, Problem } from '../settings/Block';
import { text } from '../text';
import { Boundary } from '../ui/boundary';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { fullTime, shortTime } from '../ui/time';
import { Badge } from './Badge';
import { Conversation } from './Conversation';
import { Inbox } from './Inbox';
import { hasAutomaticTurns, sessionsOf } from './mail';
import { NewSession } from './NewSession';
import { SessionSettings } from './SessionSettings';
import { StartTurn } from './StartTurn';

/** Sessions of an agent with their conversations and inboxes, for its owner. */
export function Sessions({ agentId }: { agentId: string }) {
  const [isAdding, setAdding] = useState(false);
  const { data, error } = useQuery(sessionsOf(agentId));
  return (
    <Block title={text.sessions.heading} lead={text.sessions.lead}>
      <Problem>{error?.message}</Problem>
      {data !== undefined && (
        <ul aria-label={text.sessions.heading} className="divide-y overflow-hidden rounded-xl border">
          <MailboxRow agentId={agentId} mailbox={data.mailbox} title={text.sessions.direct} />
          {data.sessions.map((session) => (
            <SessionRow key={session.id} agentId={agentId} session={session} ofAgent={data.autoRun} />
          ))}
        </ul>
      )}
      {data !== undefined && !isAdding && (
        <Button size="small" onClick={() => setAdding(true)}>
          <Plus size={14} />
          {text.sessions.add}
        </Button>
      )}
      {data !== undefined && isAdding && (
        <Boundary>
          <NewSession agentId={agentId} taken={data.sessions.map(({ id }) => id)} onClose={() => setAdding(false)} />
        </Boundary>
      )}
    </Block>
  );
}

function SessionRow({ agentId, session, ofAgent }: { agentId: string; session: AgentSession; ofAgent: AgentSessions['autoRun'] }) {
  const [isEditing, setEditing] = useState(false);
  const room = useChat((state) => (session.roomId === null ? undefined : (state.rooms[session.roomId]?.name ?? text.sessions.otherRoom)));
  const badges = (
    <>
      {hasAutomaticTurns(session.autoRun, ofAgent) && <Badge>{text.sessions.automaticTurns}</Badge>}
      {room !== undefined && <Badge>{text.sessions.postsIn(room)}</Badge>}
    </>
  );
  return (
    <MailboxRow
      agentId={agentId}
      mailbox={session.mailbox}
      session={session.id}
      title={session.title}
      lastUsedAt={session.lastUsedAt}
      badges={badges}
    >
      {isEditing ? (
        <SessionSettings
          agentId={agentId}
          session={session}
          isOnForAgent={ofAgent?.enabled ?? false}
          onClose={() => setEditing(false)}
        />
      ) : (
        <Button size="small" onClick={() => setEditing(true)}>
          <Settings2 size={14} />
          {text.sessions.change}
        </Button>
      )}
      <Part title={text.sessions.conversation}>
        <Conversation agentId={agentId} session={session.id} label={text.sessions.conversationOf(session.title)} />
      </Part>
      <Boundary>
        <StartTurn agentId={agentId} session={session.id} />
      </Boundary>
    </MailboxRow>
  );
}

interface MailboxRowProps {
  agentId: string;
  mailbox: MailboxSummary;
  /** Absent for the agent's own mailbox. */
  session?: string;
  title: string;
  lastUsedAt?: string | null;
  badges?: ReactNode;
  children?: ReactNode;
}

function MailboxRow({ agentId, mailbox, session, title, lastUsedAt, badges, children }: MailboxRowProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return (
    <li>
      <button
        type="button"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-2.5 px-3 py-2.5 text-left hover:bg-hover"
      >
        <ChevronRight size={16} aria-hidden className={classes('shrink-0 text-faint transition-transform', isOpen && 'rotate-90')} />
        <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 truncate text-sm font-medium">{title}</span>
          {session !== undefined && session !== title && <span className="truncate font-mono text-xs text-faint">{session}</span>}
          {mailbox.pending > 0 && <Badge tone="accent">{text.sessions.pending(mailbox.pending)}</Badge>}
          {mailbox.leased > 0 && <Badge tone="warn">{text.sessions.leased(mailbox.leased)}</Badge>}
          {badges}
        </span>
        {typeof lastUsedAt === 'string' && (
          <time dateTime={lastUsedAt} title={fullTime(Date.parse(lastUsedAt))} className="shrink-0 text-xs text-faint">
            {shortTime(Date.parse(lastUsedAt), Date.now())}
          </time>
        )}
      </button>
      {isOpen && (
        <div id={id} className="space-y-3 border-t bg-ground/40 px-3 py-3">
          <Subscriptions patterns={mailbox.subscriptions} />
          {children}
          <Part title={text.sessions.inbox}>
            <Inbox agentId={agentId} session={session} label={text.sessions.inboxOf(title)} />
          </Part>
        </div>
      )}
    </li>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="space-y-2 pt-1">
      <h3 className="text-sm font-medium text-soft">{title}</h3>
      <Boundary>{children}</Boundary>
    </section>
  );
}

function Subscriptions({ patterns }: { patterns: string[] }) {
  if (patterns.length === 0) return <p className="text-xs text-faint">{text.sessions.noSubscriptions}</p>;
  return (
    <ul aria-label={text.sessions.subscriptions} className="flex flex-wrap gap-1.5">
      {patterns.map((pattern) => (
        <li key={pattern} className="max-w-full truncate rounded-md border bg-raised px-1.5 py-0.5 font-mono text-xs">
          {pattern}
        </li>
      ))}
    </ul>
  );
}

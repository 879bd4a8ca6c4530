import { ArrowLeft, ListChecks, PanelRight, Snowflake, Square, Target } from 'lucide-react';
import { apiRequest } from '../api/http';
import { isStreaming } from '../chat/message';
import type { RoomChat, RoomEntry } from '../chat/state';
import { missionPath, navigate, tasksPath } from '../router';
import { useClient } from '../session/session';
import { text } from '../text';
import { Button, IconButton } from '../ui/button';
import { toggleDetails, usePanel } from '../view';

interface Props {
  room: RoomEntry;
  chat: RoomChat;
  isWide: boolean;
}

export function RoomHeader({ room, chat, isWide }: Props) {
  const client = useClient();
  const isOpen = usePanel(room.id)?.kind === 'details';
  const answering = new Map(
    chat.messages.filter(isStreaming).map((message) => [message.from, message.senderName]),
  );
  const hasAgents = room.members.some((member) => member.memberType === 'agent');
  return (
    <header className="flex h-14 shrink-0 items-center gap-1.5 border-b px-2 md:px-5">
      {!isWide && (
        <IconButton label={text.rooms.showRooms} onClick={() => navigate('/app/')}>
          <ArrowLeft size={18} />
        </IconButton>
      )}
      <div className="min-w-0 flex-1">
        <h1 className="truncate leading-tight font-semibold tracking-tight">{room.name}</h1>
        <p className="truncate text-xs text-faint">
          {room.members.length > 0 ? text.rooms.members(room.members.length) : ' '}
        </p>
      </div>
      {[...answering].map(([agentId, name]) => (
        <Button
          key={agentId}
          size="small"
          variant="danger"
          aria-label={text.runs.stopAgent(name)}
          onClick={() => client.sendFrame({ type: 'client:stop_generation', roomId: room.id, agentId })}
        >
          <Square size={11} fill="currentColor" />
          <span className="max-w-24 truncate md:max-w-40">{text.runs.stopAgent(name)}</span>
        </Button>
      ))}
      {hasAgents && room.frozenAt === undefined && (
        <IconButton label={text.rooms.freeze} onClick={() => void apiRequest('POST', `/api/rooms/${room.id}/freeze`)}>
          <Snowflake size={17} />
        </IconButton>
      )}
      {hasAgents && isWide && (
        <IconButton label={text.missions.titleFor(room.name)} onClick={() => navigate(missionPath(room.id))}>
          <Target size={18} />
        </IconButton>
      )}
      <IconButton label={text.tasks.heading} onClick={() => navigate(tasksPath(room.id))}>
        <ListChecks size={18} />
      </IconButton>
      <IconButton
        label={text.details.heading}
        aria-pressed={isOpen}
        className={isOpen ? 'bg-hover text-ink' : undefined}
        onClick={() => toggleDetails(room.id)}
      >
        <PanelRight size={18} />
      </IconButton>
    </header>
  );
}

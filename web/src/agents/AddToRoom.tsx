import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { Agent } from '../generated/api';
import { navigate, roomPath } from '../router';
import { Block, Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { Choice } from '../ui/field';
import { roomsOf } from './rooms';

/** Into a room that one runs. */
export function AddToRoom({ agent }: { agent: Agent }) {
  const rooms = useChat((state) => state.rooms);
  const [chosen, setChosen] = useState('');
  const { attempt, problem, isBusy } = useSubmit();
  const { data: there } = useQuery(roomsOf(agent.id));
  const mine = Object.values(rooms).filter(
    (room) => room.role !== 'member' && there?.some((other) => other.id === room.id) !== true,
  );
  const roomId = mine.some((room) => room.id === chosen) ? chosen : (mine[0]?.id ?? '');
  if (mine.length === 0) return null;
  const bring = () =>
    attempt(async () => {
      await apiRequest('POST', `/api/rooms/${roomId}/members`, { memberId: agent.id, memberType: 'agent' });
      navigate(roomPath(roomId));
    });
  return (
    <Block title={text.agents.bringIn} lead={text.agents.bringInLead(agent.name)}>
      <div className="flex items-end gap-3">
        <div className="min-w-0 flex-1">
          <Choice
            label={text.search.room}
            value={roomId}
            options={mine.map((room) => ({ value: room.id, label: room.name }))}
            onChange={setChosen}
          />
        </div>
        <Button look="primary" className="h-10" disabled={isBusy} onClick={() => void bring()}>
          {text.agents.bringInGo}
        </Button>
      </div>
      <Problem>{problem}</Problem>
    </Block>
  );
}

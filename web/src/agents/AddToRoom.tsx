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

/** Adds an agent to a room of which the user is owner or admin. */
export function AddToRoom({ agent }: { agent: Agent }) {
  const rooms = useChat((state) => state.rooms);
  const [chosen, setChosen] = useState('');
  const { attempt, problem, isBusy } = useSubmit();
  const { data: joined } = useQuery(roomsOf(agent.id));
  const available = Object.values(rooms).filter(
    (room) => room.role !== 'member' && joined?.some((other) => other.id === room.id) !== true,
  );
  const roomId = available.some((room) => room.id === chosen) ? chosen : (available[0]?.id ?? '');
  if (available.length === 0) return null;
  const add = () =>
    attempt(async () => {
      await apiRequest('POST', `/api/rooms/${roomId}/members`, { memberId: agent.id, memberType: 'agent' });
      navigate(roomPath(roomId));
    });
  return (
    <Block title={text.agents.addToRoom} lead={text.agents.addToRoomLead(agent.name)}>
      <div className="flex items-end gap-3">
        <div className="min-w-0 flex-1">
          <Choice
            label={text.search.room}
            value={roomId}
            options={available.map((room) => ({ value: room.id, label: room.name }))}
            onChange={setChosen}
          />
        </div>
        <Button variant="primary" className="h-10" disabled={isBusy} onClick={() => void add()}>
          {text.agents.addToRoomSubmit}
        </Button>
      </div>
      <Problem>{problem}</Problem>
    </Block>
  );
}

import { Snowflake } from 'lucide-react';
import { apiRequest } from '../api/http';
import type { RoomEntry } from '../chat/state';
import { text } from '../text';
import { Button } from '../ui/button';

export function FrozenBanner({ room }: { room: RoomEntry }) {
  if (room.frozenAt === undefined) return null;
  const by = room.members.find((member) => member.memberId === room.frozenBy)?.displayName ?? '';
  return (
    <div role="status" className="flex items-center gap-3 border-b bg-warn-soft px-5 py-2 text-sm text-warn">
      <Snowflake size={15} className="shrink-0" />
      <span className="flex-1">{text.rooms.frozenBy(by)}</span>
      <Button size="small" onClick={() => void apiRequest('DELETE', `/api/rooms/${room.id}/freeze`)}>
        {text.rooms.unfreeze}
      </Button>
    </div>
  );
}

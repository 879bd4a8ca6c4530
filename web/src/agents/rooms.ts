/** Query for the rooms of an agent. */
import { queryOptions } from '@tanstack/react-query';
import { apiResult } from '../api/http';
import type { RoomOfMember } from '../generated/api';

export function roomsOf(agentId: string) {
  return queryOptions({
    queryKey: ['agents', agentId, 'rooms'],
    queryFn: () => apiResult<RoomOfMember[]>('GET', `/api/agents/${encodeURIComponent(agentId)}/rooms`),
    // Always refetched: the user may have added the agent to a room on another page.
    staleTime: 0,
  });
}

/** Where an agent is. */
import { queryOptions } from '@tanstack/react-query';
import { apiResult } from '../api/http';
import type { RoomOfMember } from '../generated/api';

export function roomsOf(agentId: string) {
  return queryOptions({
    queryKey: ['agents', agentId, 'rooms'],
    queryFn: () => apiResult<RoomOfMember[]>('GET', `/api/agents/${encodeURIComponent(agentId)}/rooms`),
    // Whoever comes back may just have brought it somewhere.
    staleTime: 0,
  });
}

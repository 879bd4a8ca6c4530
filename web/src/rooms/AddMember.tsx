import { apiRequest, apiResult } from '../api/http';
import { peopleNamed } from '../api/people';
import type { RoomEntry } from '../chat/state';
import type { Agent } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Finder, type Candidate } from '../ui/finder';

/** Finds people and agents by name and adds them to the room. */
export function AddMember({ room }: { room: RoomEntry }) {
  const { attempt, problem } = useSubmit();
  const isInside = (id: string) => room.members.some((member) => member.memberId === id);
  const add = ({ id, kind }: Candidate) =>
    void attempt(() => apiRequest('POST', `/api/rooms/${room.id}/members`, { memberId: id, memberType: kind }));
  return (
    <>
      <Finder label={text.details.add} queryName="candidates" find={candidates} isExcluded={isInside} onSelect={add} />
      <Problem>{problem}</Problem>
    </>
  );
}

async function candidates(words: string): Promise<Candidate[]> {
  const [people, own, shared] = await Promise.all([
    peopleNamed(words),
    apiResult<Agent[]>('GET', '/api/agents'),
    apiResult<Agent[]>('GET', '/api/agents/shared'),
  ]);
  const named = [...own, ...shared].filter((agent) => agent.name.toLowerCase().includes(words.toLowerCase()));
  return [...named.map(({ id, name }) => ({ id, name, kind: 'agent' as const, hint: text.agent })), ...people];
}

import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { ask, data } from '../api/http';
import type { RoomEntry } from '../chat/state';
import type { Agent, MemberType, Person } from '../generated/api';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { SearchField } from '../ui/field';

interface Candidate {
  id: string;
  name: string;
  kind: MemberType;
  hint: string;
}

/** Finds people and agents by name, and brings them in. */
export function AddMember({ room }: { room: RoomEntry }) {
  const [written, setWritten] = useState('');
  const [problem, setProblem] = useState<string>();
  const query = useDeferredValue(written.trim());
  const { data: found } = useQuery({
    queryKey: ['candidates', query],
    queryFn: () => candidates(query),
    enabled: query.length >= 2,
  });
  const isInside = (id: string) => room.members.some((member) => member.memberId === id);
  const shown = query.length < 2 ? [] : (found ?? []).filter((candidate) => !isInside(candidate.id));
  const add = async ({ id, kind }: Candidate) => {
    try {
      await ask('POST', `/api/rooms/${room.id}/members`, { memberId: id, memberType: kind });
      setWritten('');
      setProblem(undefined);
    } catch (failure) {
      setProblem(failure instanceof Error ? failure.message : text.failed);
    }
  };
  return (
    <div className="relative">
      <SearchField label={text.details.add} value={written} onChange={setWritten} />
      {problem !== undefined && (
        <p role="alert" className="mt-1 text-sm text-danger">
          {problem}
        </p>
      )}
      {query.length >= 2 && found !== undefined && (
        <ul className="absolute inset-x-0 top-full z-10 mt-1 rounded-xl border bg-raised p-1 shadow-float">
          {shown.length === 0 && <li className="px-2 py-1.5 text-sm text-faint">{text.details.addNothing}</li>}
          {shown.map((candidate) => (
            <li key={candidate.id}>
              <button
                type="button"
                onClick={() => void add(candidate)}
                className="flex w-full items-center gap-2.5 rounded-lg px-2 py-1.5 text-left text-sm hover:bg-hover"
              >
                <Avatar id={candidate.id} name={candidate.name} kind={candidate.kind} size={24} />
                <span className="font-medium">{candidate.name}</span>
                <span className="truncate text-faint">{candidate.hint}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

async function candidates(query: string): Promise<Candidate[]> {
  const [people, own, shared] = await Promise.all([
    data<Person[]>('GET', `/api/users/search?${new URLSearchParams({ q: query })}`),
    data<Agent[]>('GET', '/api/agents'),
    data<Agent[]>('GET', '/api/agents/shared'),
  ]);
  const named = [...own, ...shared].filter((agent) => agent.name.toLowerCase().includes(query.toLowerCase()));
  return [
    ...named.map((agent) => ({ id: agent.id, name: agent.name, kind: 'agent' as const, hint: text.agent })),
    ...people.map((one) => ({ id: one.id, name: one.displayName, kind: 'user' as const, hint: one.username })),
  ];
}

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import { peopleNamed } from '../api/people';
import { useChat } from '../chat/store';
import type { Agent, AgentChanges, AgentVisibility, RoomWithMembers, User } from '../generated/api';
import { useIsAdmin } from '../session/session';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { IconButton } from '../ui/button';
import { Choice } from '../ui/field';
import { Finder } from '../ui/finder';

const OPTIONS: { value: AgentVisibility; label: string }[] = [
  { value: 'private', label: text.agents.visibility.private },
  { value: 'all', label: text.agents.visibility.all },
  { value: 'whitelist', label: text.agents.visibility.whitelist },
];

/** Who besides its owner may bring an agent into rooms. */
export function Sharing({ agent }: { agent: Agent }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const change = (changes: AgentChanges) =>
    void attempt(async () => {
      await apiRequest('PUT', `/api/agents/${encodeURIComponent(agent.id)}`, changes);
      await queries.invalidateQueries({ queryKey: ['agents'] });
    });
  // The hub forgets them with the choice; whoever only looked around gets them back.
  const [people, setPeople] = useState(agent.visibilityList);
  const share = (named: string[]) => {
    setPeople(named);
    change({ visibility: 'whitelist', visibilityList: named });
  };
  return (
    <>
      <Choice
        label={text.agents.whoMay}
        value={agent.visibility}
        options={OPTIONS}
        disabled={isBusy}
        onChange={(visibility) => (visibility === 'whitelist' ? share(people) : change({ visibility }))}
      />
      {agent.visibility === 'whitelist' && <People people={agent.visibilityList} onChange={share} />}
      <Problem>{problem}</Problem>
    </>
  );
}

function People({ people, onChange }: { people: string[]; onChange: (people: string[]) => void }) {
  const [found, setFound] = useState<Record<string, string>>({});
  const rooms = useChat((state) => Object.keys(state.rooms).slice(0, MOST_ROOMS).join());
  const isAdmin = useIsAdmin();
  const isAsked = people.some((id) => found[id] === undefined);
  const { data: known } = useQuery({
    queryKey: ['names', isAdmin, rooms],
    queryFn: () => (isAdmin ? everybody() : membersOf(rooms.split(','))),
    enabled: isAsked && (isAdmin || rooms !== ''),
  });
  // Of somebody whom one shares no room with, the id is all there is.
  const nameOf = (id: string) => found[id] ?? known?.[id] ?? id;
  return (
    <>
      {people.length > 0 && (
        <ul aria-label={text.agents.visibility.whitelist} className="flex flex-wrap gap-2">
          {people.map((id) => (
            <li key={id} className="flex items-center gap-1 rounded-lg border py-1 pr-1 pl-3 text-sm">
              <span className="max-w-56 truncate">{nameOf(id)}</span>
              <IconButton
                label={text.agents.unshare(nameOf(id))}
                className="size-6"
                onClick={() => onChange(people.filter((one) => one !== id))}
              >
                <X size={13} />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      <Finder
        label={text.agents.shareWith}
        among="people"
        find={peopleNamed}
        isLeftOut={(id) => people.includes(id)}
        onTake={({ id, name }) => {
          setFound({ ...found, [id]: name });
          onChange([...people, id]);
        }}
      />
    </>
  );
}

/** In so many rooms people are looked for. */
const MOST_ROOMS = 20;

/** What people are called, by their ids. */
type Names = Record<string, string>;

async function everybody(): Promise<Names> {
  const people = await apiResult<User[]>('GET', '/api/users?limit=200');
  return Object.fromEntries(people.map((one) => [one.id, one.displayName]));
}

async function membersOf(roomIds: string[]): Promise<Names> {
  const rooms = await Promise.all(roomIds.map((id) => apiResult<RoomWithMembers>('GET', `/api/rooms/${id}`)));
  return Object.fromEntries(rooms.flatMap(({ members }) => members.map((one) => [one.memberId, one.displayName])));
}

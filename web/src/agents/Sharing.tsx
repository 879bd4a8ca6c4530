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

/** Users, besides the owner, who can add an agent to rooms. */
export function Sharing({ agent }: { agent: Agent }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const change = (changes: AgentChanges) =>
    void attempt(async () => {
      await apiRequest('PUT', `/api/agents/${encodeURIComponent(agent.id)}`, changes);
      await queries.invalidateQueries({ queryKey: ['agents'] });
    });
  // The hub deletes the list when another visibility is chosen. Kept here to restore it when the user changes
  // back.
  const [people, setPeople] = useState(agent.visibilityList);
  const share = (userIds: string[]) => {
    setPeople(userIds);
    change({ visibility: 'whitelist', visibilityList: userIds });
  };
  return (
    <>
      <Choice
        label={text.agents.visibilityLabel}
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
  const rooms = useChat((state) => Object.keys(state.rooms).slice(0, MAX_ROOMS).join());
  const isAdmin = useIsAdmin();
  const hasUnknown = people.some((id) => found[id] === undefined);
  const { data: known } = useQuery({
    queryKey: ['names', isAdmin, rooms],
    queryFn: () => (isAdmin ? allUsers() : membersOf(rooms.split(','))),
    enabled: hasUnknown && (isAdmin || rooms !== ''),
  });
  // The name of a user without a common room is unknown: the id is shown.
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
                onClick={() => onChange(people.filter((other) => other !== id))}
              >
                <X size={13} />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      <Finder
        label={text.agents.shareWith}
        queryName="people"
        find={peopleNamed}
        isExcluded={(id) => people.includes(id)}
        onSelect={({ id, name }) => {
          setFound({ ...found, [id]: name });
          onChange([...people, id]);
        }}
      />
    </>
  );
}

/** Maximum number of rooms whose members are loaded to resolve names. */
const MAX_ROOMS = 20;

/** Display names by user id. */
type Names = Record<string, string>;

async function allUsers(): Promise<Names> {
  const people = await apiResult<User[]>('GET', '/api/users?limit=200');
  return Object.fromEntries(people.map((user) => [user.id, user.displayName]));
}

async function membersOf(roomIds: string[]): Promise<Names> {
  const rooms = await Promise.all(roomIds.map((id) => apiResult<RoomWithMembers>('GET', `/api/rooms/${id}`)));
  return Object.fromEntries(rooms.flatMap(({ members }) => members.map((member) => [member.memberId, member.displayName])));
}

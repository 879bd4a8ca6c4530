import { MoreHorizontal } from 'lucide-react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { ChatState, RoomEntry } from '../chat/state';
import type { MemberFrame } from '../generated/api';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { IconButton } from '../ui/button';
import { Menu, MenuItem, MenuLine } from '../ui/menu';
import { AddMember } from './AddMember';
import { Section } from './Section';

const ROLES = { owner: text.details.owner, admin: text.details.admin, member: '' };

export function MemberList({ room }: { room: RoomEntry }) {
  const people = room.members.filter((member) => member.memberType === 'user');
  const agents = room.members.filter((member) => member.memberType === 'agent');
  return (
    <Section title={text.details.members}>
      {room.role !== 'member' && <AddMember room={room} />}
      <ul className="mt-2 space-y-0.5">
        {[...people, ...agents].map((member) => (
          <MemberRow key={member.memberId} room={room} member={member} />
        ))}
      </ul>
    </Section>
  );
}

function MemberRow({ room, member }: { room: RoomEntry; member: MemberFrame }) {
  const { memberId, displayName, memberType, role } = member;
  const state = useChat((chat) => stateOf(chat, member));
  const me = useChat((chat) => chat.me?.id);
  const path = `/api/rooms/${room.id}/members/${encodeURIComponent(memberId)}`;
  const isMe = memberId === me;
  const mayRemove = isMe ? role !== 'owner' : room.role !== 'member' && role !== 'owner';
  const mayPromote = room.role === 'owner' && !isMe && memberType === 'user';
  return (
    <li className="group/member -mx-2 flex items-center gap-2.5 rounded-lg px-2 py-1.5 hover:bg-hover">
      <Avatar id={memberId} name={displayName} kind={memberType} size={30} state={state} />
      <div className="min-w-0 flex-1 leading-tight">
        <p className="truncate text-sm font-medium">
          {displayName} {isMe && <span className="font-normal text-faint">({text.you})</span>}
        </p>
        <p className="truncate text-xs text-faint">
          {[ROLES[role], stripDirectionMarks(member.roleDescription ?? ''), state === undefined ? '' : text.details[state]]
            .filter((word) => word !== undefined && word !== '')
            .join(' · ')}
        </p>
      </div>
      {(mayRemove || mayPromote) && (
        <Menu
          trigger={
            <IconButton
              label={`${text.more}: ${displayName}`}
              className="size-7 opacity-0 group-hover/member:opacity-100 focus-visible:opacity-100 data-[state=open]:opacity-100 pointer-coarse:opacity-100"
            >
              <MoreHorizontal size={15} />
            </IconButton>
          }
        >
          {mayPromote && (
            <>
              <MenuItem onSelect={() => void apiRequest('PUT', path, { role: role === 'admin' ? 'member' : 'admin' })}>
                {role === 'admin' ? text.details.makeMember : text.details.makeAdmin}
              </MenuItem>
              <MenuLine />
            </>
          )}
          {mayRemove && (
            <MenuItem danger onSelect={() => void apiRequest('DELETE', path)}>
              {isMe ? text.details.leave : text.remove}
            </MenuItem>
          )}
        </Menu>
      )}
    </li>
  );
}

function stateOf(chat: ChatState, member: MemberFrame): 'online' | 'busy' | 'offline' | undefined {
  if (member.memberId === chat.me?.id) return 'online';
  if (member.memberType === 'user') return toWord(chat.online[member.memberId]);
  const status = chat.agents[member.memberId]?.status;
  if (status === undefined) return undefined;
  return status === 'online' || status === 'busy' ? status : 'offline';
}

function toWord(isOnline: boolean | undefined): 'online' | 'offline' | undefined {
  return isOnline === undefined ? undefined : isOnline ? 'online' : 'offline';
}

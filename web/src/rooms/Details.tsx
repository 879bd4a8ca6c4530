import type { RoomChat, RoomEntry } from '../chat/state';
import { text } from '../text';
import { Panel } from './Panel';
import { MemberList } from './MemberList';
import { PinnedList } from './PinnedList';
import { ProjectRoot } from './ProjectRoot';
import { RoomSettings } from './RoomSettings';
import { RuleList } from './RuleList';

interface Props {
  room: RoomEntry;
  chat: RoomChat;
  isWide: boolean;
}

/** Panel with the members, pins, approval rules, project folder and settings of a room. */
export function Details({ room, chat, isWide }: Props) {
  return (
    <Panel title={text.details.heading} isWide={isWide}>
      <div className="flex-1 space-y-7 overflow-y-auto px-5 py-5">
        <MemberList room={room} />
        <PinnedList chat={chat} />
        <RuleList room={room} />
        <ProjectRoot room={room} />
        <RoomSettings key={room.updatedAt} room={room} />
      </div>
    </Panel>
  );
}

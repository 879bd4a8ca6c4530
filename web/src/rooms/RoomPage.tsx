import { useState } from 'react';
import { useChat } from '../chat/store';
import { emptyChat } from '../chat/state';
import { Composer } from '../composer/Composer';
import { useDropTarget } from '../composer/uploads';
import { PermissionList } from '../runs/PermissionCard';
import { QueueBanner } from '../runs/QueueBanner';
import { Terminals } from '../runs/Terminals';
import { text } from '../text';
import { Boundary } from '../ui/boundary';
import { Timeline } from '../timeline/Timeline';
import { usePanel } from '../view';
import { Details } from './Details';
import { FrozenBanner } from './FrozenBanner';
import { RoomHeader } from './RoomHeader';
import { ThreadPanel } from './ThreadPanel';

interface Props {
  roomId: string;
  messageId?: string;
  isWide: boolean;
}

/** Mode of the message field: reply to a message, edit of a message, or a new message if both are unset. */
export interface Writing {
  replyTo?: string;
  editing?: string;
}

export function RoomPage({ roomId, messageId, isWide }: Props) {
  const room = useChat((state) => state.rooms[roomId]);
  const isLoaded = useChat((state) => state.roomsLoaded);
  const chat = useChat((state) => state.chats[roomId]) ?? emptyChat;
  const panel = usePanel(roomId);
  const [writing, setWriting] = useState<Writing>({});
  const { isOver, files, takeFiles, ...drop } = useDropTarget();
  if (room === undefined) {
    return (
      <main className="flex flex-1 items-center justify-center bg-surface text-soft">
        {isLoaded && <p>{text.rooms.notFound}</p>}
      </main>
    );
  }
  const isPanelAlone = !isWide && panel !== undefined;
  return (
    <>
      {!isPanelAlone && (
        <main className="relative flex min-w-0 flex-1 flex-col bg-surface" {...drop}>
          <Boundary className="border-b">
            <RoomHeader room={room} chat={chat} isWide={isWide} />
            <FrozenBanner room={room} />
          </Boundary>
          <Boundary className="min-h-0 flex-1">
            <Timeline room={room} chat={chat} target={messageId} onWrite={setWriting} />
          </Boundary>
          <div className="mx-auto w-full max-w-3xl px-3 pb-3 md:px-5 md:pb-4">
            <Boundary>
              <Terminals terminals={chat.terminals} />
            </Boundary>
            <Boundary>
              <PermissionList permissions={chat.permissions} />
            </Boundary>
            <Boundary>
              <QueueBanner roomId={roomId} queue={chat.queue} />
            </Boundary>
            <Boundary className="rounded-2xl border">
              <Composer
                room={room}
                chat={chat}
                writing={writing}
                onWritten={() => setWriting({})}
                dropped={files}
                onTaken={takeFiles}
              />
            </Boundary>
          </div>
          {isOver && (
            <div className="pointer-events-none absolute inset-3 z-30 flex items-center justify-center rounded-2xl border-2 border-dashed border-accent bg-accent-soft/90 font-medium text-accent">
              {text.composer.drop}
            </div>
          )}
        </main>
      )}
      {panel !== undefined && (
        <Boundary key={panel.kind} className={isWide ? 'w-84 shrink-0 border-l' : 'w-full'}>
          {panel.kind === 'details' && <Details room={room} chat={chat} isWide={isWide} />}
          {panel.kind === 'thread' && <ThreadPanel room={room} chat={chat} rootId={panel.messageId} isWide={isWide} />}
        </Boundary>
      )}
    </>
  );
}

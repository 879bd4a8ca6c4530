import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import { isStored, repliedToId } from '../chat/message';
import { merge } from '../chat/messages';
import type { RoomChat, RoomEntry } from '../chat/state';
import type { Thread } from '../generated/api';
import { fromMessage } from '../live/messages';
import { useClient } from '../session/session';
import { text } from '../text';
import { MessageRow } from '../timeline/MessageRow';
import { Button } from '../ui/button';
import { INPUT } from '../ui/field';
import { classes } from '../ui/classes';
import { Panel } from './Panel';

interface Props {
  room: RoomEntry;
  chat: RoomChat;
  rootId: string;
  isWide: boolean;
}

/** A message and its replies, updated live. */
export function ThreadPanel({ room, chat, rootId, isWide }: Props) {
  const client = useClient();
  const [content, setContent] = useState('');
  const { data: earlier } = useQuery({
    queryKey: ['thread', rootId],
    queryFn: async () => (await apiRequest<Thread>('GET', `/api/messages/${rootId}/thread?limit=200`)).data.map(fromMessage),
  });
  const root = chat.messages.find((message) => message.id === rootId);
  const live = chat.messages.filter((message) => (isStored(message) && message.threadId === rootId) || repliedToId(message) === rootId);
  const replies = merge(earlier ?? [], live);
  const row = { isContinued: false, isMarked: false, isPinned: false, repliedTo: undefined, roomRole: room.role };
  return (
    <Panel title={text.thread.heading} isWide={isWide}>
      <div className="flex-1 overflow-y-auto py-2">
        {root !== undefined && <MessageRow message={root} {...row} onWrite={() => undefined} />}
        <hr className="mx-5 my-3" />
        {replies.length === 0 && <p className="px-5 text-sm text-faint">{text.thread.none}</p>}
        {replies.map((message) => (
          <MessageRow
            key={message.id}
            message={'replyToId' in message ? { ...message, replyToId: undefined } : message}
            {...row}
            onWrite={() => undefined}
          />
        ))}
      </div>
      <form
        className="flex gap-2 border-t p-3"
        onSubmit={(event) => {
          event.preventDefault();
          client.outbox.send(room.id, { content: content.trim(), replyToId: rootId, attachments: [] });
          setContent('');
        }}
      >
        <input
          required
          aria-label={text.thread.placeholder}
          placeholder={text.thread.placeholder}
          className={classes(INPUT, 'h-9')}
          value={content}
          onChange={(event) => setContent(event.target.value)}
        />
        <Button variant="primary" type="submit" disabled={content.trim() === ''}>
          {text.composer.send}
        </Button>
      </form>
    </Panel>
  );
}

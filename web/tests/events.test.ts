import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ChatAction } from '../src/chat/actions';
import type { ChatMessage } from '../src/chat/message';
import type { ChatState } from '../src/chat/state';
import type { Message, Task } from '../src/generated/api';
import type { ServerFrame } from '../src/live/frames';
import { fromMessage } from '../src/live/messages';
import { after, AGENT, chunk, receive, message, messagesOf, NOW, reply, room, ROOM, signedIn } from './factories';

/** Kinds of random changes that the simulated hub makes in one room. */
const KINDS = ['post', 'post', 'reply', 'edit', 'delete', 'react', 'pin', 'unpin', 'task', 'removeTask', 'rename'] as const;
interface Step {
  kind: (typeof KINDS)[number];
  pick: number;
}
const steps = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), pick: fc.nat(50) }), { maxLength: 60 });

/** Room as stored by the simulated hub, which REST requests would return. */
interface StoredRoom {
  messages: Message[];
  pins: string[];
  tasks: Task[];
  name: string;
}

interface Simulation {
  /** Frames that the hub sends for each step. */
  frames: ServerFrame[][];
  stored: StoredRoom;
}

function simulate(history: Step[]): Simulation {
  const frames: ServerFrame[][] = [];
  const stored: StoredRoom = { messages: [], pins: [], tasks: [], name: 'Kitchen' };
  history.forEach((step, index) => frames.push(applyStep(step, index, stored)));
  return { frames, stored };
}

function applyStep({ kind, pick }: Step, index: number, stored: StoredRoom): ServerFrame[] {
  const position = `e-${index + 1}`;
  const at = new Date(NOW + index * 1000).toISOString();
  const chosen = stored.messages[pick % Math.max(1, stored.messages.length)];
  switch (kind) {
    case 'reply': {
      const logged = reply({ id: `r${index}`, seq: index + 1, chunks: chunks(pick), content: 'One two three' });
      stored.messages.push(logged);
      const text = ['One ', 'two ', 'three'].map((words) => chunk(logged.id, 'text', words));
      const steps = chunks(pick).map((part) => chunk(logged.id, part.type, part.content, { metadata: part.metadata }));
      const [first, ...others] = [...steps, ...text];
      const started = first !== undefined && first.type === 'server:message_chunk' ? [{ ...first, first: true as const }] : [];
      return [...started, ...others, { type: 'server:message_complete', message: logged, position }];
    }
    case 'task': {
      const created = { createdById: 'ada', createdByType: 'user', createdAt: at, updatedAt: at } as const;
      const task: Task = { id: `t${pick % 5}`, roomId: ROOM, title: `Task of ${index}`, status: 'pending', ...created };
      stored.tasks = [...stored.tasks.filter((other) => other.id !== task.id), task];
      return [{ type: 'server:task_update', roomId: ROOM, task, position }];
    }
    case 'removeTask': {
      const task = stored.tasks[pick % Math.max(1, stored.tasks.length)];
      if (task === undefined) return [];
      stored.tasks = stored.tasks.filter((other) => other !== task);
      return [{ type: 'server:task_update', roomId: ROOM, task, removed: true, position }];
    }
    case 'rename':
      stored.name = `Room of ${index}`;
      return [{ type: 'server:room_update', room: roomFrame(stored.name), position }];
    default:
  }
  if (kind === 'post' || chosen === undefined) {
    const logged = message({ id: `m${index}`, seq: index + 1 });
    stored.messages.push(logged);
    return [{ type: 'server:new_message', message: logged, position }];
  }
  const { id: messageId } = chosen;
  const change = (changed: Message) => {
    stored.messages = stored.messages.map((other) => (other === chosen ? changed : other));
    return changed;
  };
  switch (kind) {
    case 'delete':
      stored.messages = stored.messages.filter((other) => other !== chosen);
      stored.pins = stored.pins.filter((id) => id !== messageId);
      return [
        { type: 'server:message_unpinned', roomId: ROOM, messageId, position },
        { type: 'server:message_deleted', roomId: ROOM, messageId, position },
      ];
    case 'edit': {
      const edited = change({ ...chosen, content: `edited at ${index}`, editedAt: new Date(NOW).toISOString() });
      return [{ type: 'server:message_edited', message: edited, position }];
    }
    case 'react': {
      const reactions = [{ emoji: '👍', userIds: ['ada'], usernames: [`ada ${index}`] }];
      change({ ...chosen, reactions });
      return [{ type: 'server:reaction_update', roomId: ROOM, messageId, reactions, position }];
    }
    case 'pin':
      stored.pins = [...stored.pins.filter((id) => id !== messageId), messageId];
      return [{ type: 'server:message_pinned', roomId: ROOM, messageId, pinnedById: 'ada', pinnedAt: at, position }];
    case 'unpin':
      stored.pins = stored.pins.filter((id) => id !== messageId);
      return [{ type: 'server:message_unpinned', roomId: ROOM, messageId, position }];
  }
}

function chunks(pick: number): Message['chunks'] {
  const thinking = { type: 'thinking', content: 'Hm', metadata: {} };
  const metadata = { toolName: 'Read', toolId: 't' };
  const tool = [
    { type: 'tool_use', content: '{}', metadata },
    { type: 'tool_result', content: 'done', metadata },
  ];
  return [...(pick % 2 === 0 ? [thinking] : []), ...(pick % 3 === 0 ? tool : [])];
}

function roomFrame(name: string) {
  const { notificationPref: _, role: __, members: ___, unread: ____, mentions: _____, ...rest } = room({ name });
  return rest;
}

/** Actions that load the stored room through REST. */
function load({ messages, pins, tasks, name }: StoredRoom): ChatAction[] {
  return [
    { type: 'ROOM_UPDATED', room: roomFrame(name) },
    { type: 'HISTORY_LOADED', roomId: ROOM, messages: messages.map(fromMessage), replace: true },
    { type: 'PINS_LOADED', roomId: ROOM, messageIds: pins },
    { type: 'TASKS_LOADED', roomId: ROOM, tasks },
  ];
}

/** Visible state of the room. Without durations and activity, which only live clients have. */
function visible(state: ChatState) {
  const chat = state.chats[ROOM];
  return {
    name: state.rooms[ROOM]?.name,
    messages: messagesOf(state).map(withoutLiveFields),
    pinned: Object.keys(chat?.pinned ?? {}).sort(),
    tasks: Object.values(chat?.tasks ?? {}).sort((a, b) => a.id.localeCompare(b.id)),
  };
}

function withoutLiveFields(message: ChatMessage): Partial<ChatMessage> {
  const { durationMs: _, activitySummary: __, ...logged } = { durationMs: 0, activitySummary: '', ...message };
  return logged;
}

const open = after(signedIn, ...load({ messages: [], pins: [], tasks: [], name: 'Kitchen' }));

test('a state built from frames equals a loaded one, wherever the loading happens', () => {
  fc.assert(
    fc.property(steps, fc.nat(60), (history, cut) => {
      const { frames, stored } = simulate(history);
      const reloaded = visible(after(signedIn, ...load(stored)));
      expect(visible(receive(open, ...frames.flat()))).toEqual(reloaded);
      const from = after(signedIn, ...load(simulate(history.slice(0, cut)).stored));
      expect(visible(receive(from, ...frames.slice(cut).flat()))).toEqual(reloaded);
    }),
  );
});

test('frames repeated by a resume change nothing', () => {
  fc.assert(
    fc.property(steps, fc.nat(10), (history, overlap) => {
      const { frames, stored } = simulate(history);
      // A resume repeats frames in order, without those of deleted messages.
      const existing = new Set(stored.messages.map(({ id }) => id));
      const again = frames.slice(Math.max(0, frames.length - overlap)).flat();
      const repeated = again.filter((frame) => {
        if (frame.type === 'server:message_chunk') return existing.has(frame.messageId);
        return !('message' in frame) || typeof frame.message !== 'object' || existing.has(frame.message.id);
      });
      expect(visible(receive(open, ...frames.flat(), ...repeated))).toEqual(visible(after(signedIn, ...load(stored))));
    }),
  );
});

test('loading the history during a streaming reply keeps the reply', () => {
  fc.assert(
    fc.property(steps, fc.nat(3), (history, received) => {
      const { frames, stored } = simulate(history);
      const last: Step = { kind: 'reply', pick: 6 };
      const replyFrames = applyStep(last, history.length, stored);
      const before = receive(open, ...frames.flat(), ...replyFrames.slice(0, received + 1));
      const reread = after(before, ...load({ ...stored, messages: stored.messages.slice(0, -1) }));
      expect(messagesOf(reread).filter(({ from, state }) => from === AGENT && state === 'streaming')).toHaveLength(1);
      expect(visible(receive(reread, ...replyFrames.slice(received + 1)))).toEqual(visible(after(signedIn, ...load(stored))));
    }),
  );
});

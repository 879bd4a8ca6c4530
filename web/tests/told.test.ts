import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ChatAction } from '../src/chat/actions';
import type { ChatMessage, ChatState } from '../src/chat/state';
import type { Message, Task } from '../src/generated/api';
import type { ServerFrame } from '../src/live/frames';
import { fromMessage } from '../src/live/messages';
import { after, AGENT, chunk, hears, message, messagesOf, NOW, reply, room, ROOM, signedIn } from './made';

/** What a hub does in one room, step by step. */
const KINDS = ['post', 'post', 'speak', 'edit', 'delete', 'react', 'pin', 'unpin', 'task', 'untask', 'rename'] as const;
interface Step {
  kind: (typeof KINDS)[number];
  pick: number;
}
const steps = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), pick: fc.nat(50) }), { maxLength: 60 });

/** What a hub keeps of it, and would answer to whoever asks now. */
interface Kept {
  messages: Message[];
  pins: string[];
  tasks: Task[];
  name: string;
}

interface Played {
  /** What was told with each step. */
  told: ServerFrame[][];
  kept: Kept;
}

function play(history: Step[]): Played {
  const told: ServerFrame[][] = [];
  const kept: Kept = { messages: [], pins: [], tasks: [], name: 'Kitchen' };
  history.forEach((step, index) => told.push(act(step, index, kept)));
  return { told, kept };
}

function act({ kind, pick }: Step, index: number, kept: Kept): ServerFrame[] {
  const position = `e-${index + 1}`;
  const at = new Date(NOW + index * 1000).toISOString();
  const chosen = kept.messages[pick % Math.max(1, kept.messages.length)];
  switch (kind) {
    case 'speak': {
      const said = reply({ id: `r${index}`, seq: index + 1, chunks: pieces(pick), content: 'One two three' });
      kept.messages.push(said);
      const text = ['One ', 'two ', 'three'].map((words) => chunk(said.id, 'text', words));
      const steps = pieces(pick).map((piece) => chunk(said.id, piece.type, piece.content, { metadata: piece.metadata }));
      const [first, ...others] = [...steps, ...text];
      const begun = first !== undefined && first.type === 'server:message_chunk' ? [{ ...first, first: true }] : [];
      return [...begun, ...others, { type: 'server:message_complete', message: said, position }];
    }
    case 'task': {
      const made = { createdById: 'ada', createdByType: 'user', createdAt: at, updatedAt: at } as const;
      const task: Task = { id: `t${pick % 5}`, roomId: ROOM, title: `Task of ${index}`, status: 'pending', ...made };
      kept.tasks = [...kept.tasks.filter((one) => one.id !== task.id), task];
      return [{ type: 'server:task_update', roomId: ROOM, task, position }];
    }
    case 'untask': {
      const task = kept.tasks[pick % Math.max(1, kept.tasks.length)];
      if (task === undefined) return [];
      kept.tasks = kept.tasks.filter((one) => one !== task);
      return [{ type: 'server:task_update', roomId: ROOM, task, removed: true, position }];
    }
    case 'rename':
      kept.name = `Room of ${index}`;
      return [{ type: 'server:room_update', room: frame(kept.name), position }];
    default:
  }
  if (kind === 'post' || chosen === undefined) {
    const said = message({ id: `m${index}`, seq: index + 1 });
    kept.messages.push(said);
    return [{ type: 'server:new_message', message: said, position }];
  }
  const { id: messageId } = chosen;
  const change = (changed: Message) => {
    kept.messages = kept.messages.map((one) => (one === chosen ? changed : one));
    return changed;
  };
  switch (kind) {
    case 'delete':
      kept.messages = kept.messages.filter((one) => one !== chosen);
      kept.pins = kept.pins.filter((id) => id !== messageId);
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
      kept.pins = [...kept.pins.filter((id) => id !== messageId), messageId];
      return [{ type: 'server:message_pinned', roomId: ROOM, messageId, position }];
    case 'unpin':
      kept.pins = kept.pins.filter((id) => id !== messageId);
      return [{ type: 'server:message_unpinned', roomId: ROOM, messageId, position }];
  }
}

function pieces(pick: number): Message['chunks'] {
  const thought = { type: 'thinking', content: 'Hm', metadata: {} };
  const metadata = { toolName: 'Read', toolId: 't' };
  const tool = [
    { type: 'tool_use', content: '{}', metadata },
    { type: 'tool_result', content: 'done', metadata },
  ];
  return [...(pick % 2 === 0 ? [thought] : []), ...(pick % 3 === 0 ? tool : [])];
}

function frame(name: string) {
  const { notificationPref: _, role: __, members: ___, unread: ____, mentions: _____, ...told } = room({ name });
  return told;
}

/** What is asked of the hub when nothing is known. */
function read({ messages, pins, tasks, name }: Kept): ChatAction[] {
  return [
    { type: 'ROOM_UPDATED', room: frame(name) },
    { type: 'HISTORY_LOADED', roomId: ROOM, messages: messages.map(fromMessage), anew: true },
    { type: 'PINS_LOADED', roomId: ROOM, messageIds: pins },
    { type: 'TASKS_LOADED', roomId: ROOM, tasks },
  ];
}

/** What is on the screen of it, but for how long replies took, which only who was there knows. */
function seen(state: ChatState) {
  const chat = state.chats[ROOM];
  return {
    name: state.rooms[ROOM]?.name,
    messages: messagesOf(state).map(shown),
    pinned: Object.keys(chat?.pinned ?? {}).sort(),
    tasks: Object.values(chat?.tasks ?? {}).sort((a, b) => a.id.localeCompare(b.id)),
  };
}

function shown({ durationMs: _, activitySummary: __, ...said }: ChatMessage) {
  return said;
}

const open = after(signedIn, ...read({ messages: [], pins: [], tasks: [], name: 'Kitchen' }));

test('a state that was told equals one that is read anew, wherever the reading begins', () => {
  fc.assert(
    fc.property(steps, fc.nat(60), (history, cut) => {
      const { told, kept } = play(history);
      const anew = seen(after(signedIn, ...read(kept)));
      expect(seen(hears(open, ...told.flat()))).toEqual(anew);
      const from = after(signedIn, ...read(play(history.slice(0, cut)).kept));
      expect(seen(hears(from, ...told.slice(cut).flat()))).toEqual(anew);
    }),
  );
});

test('what a resume tells once more changes nothing', () => {
  fc.assert(
    fc.property(steps, fc.nat(10), (history, overlap) => {
      const { told, kept } = play(history);
      // In order, from where one was; what is gone by then is not told again.
      const there = new Set(kept.messages.map(({ id }) => id));
      const again = told.slice(Math.max(0, told.length - overlap)).flat();
      const lawful = again.filter((one) => {
        if (one.type === 'server:message_chunk') return there.has(one.messageId);
        return !('message' in one) || typeof one.message !== 'object' || there.has(one.message.id);
      });
      expect(seen(hears(open, ...told.flat(), ...lawful))).toEqual(seen(after(signedIn, ...read(kept))));
    }),
  );
});

test('a history that is read in the middle of a reply leaves it whole', () => {
  fc.assert(
    fc.property(steps, fc.nat(3), (history, heard) => {
      const { told, kept } = play(history);
      const last: Step = { kind: 'speak', pick: 6 };
      const frames = act(last, history.length, kept);
      const before = hears(open, ...told.flat(), ...frames.slice(0, heard + 1));
      const reread = after(before, ...read({ ...kept, messages: kept.messages.slice(0, -1) }));
      expect(messagesOf(reread).filter(({ from, isGenerating }) => from === AGENT && isGenerating)).toHaveLength(1);
      expect(seen(hears(reread, ...frames.slice(heard + 1)))).toEqual(seen(after(signedIn, ...read(kept))));
    }),
  );
});

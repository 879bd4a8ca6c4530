import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { emptyState, type ChatMessage, type ChatState } from '../src/chat/state';
import type { History } from '../src/generated/api';
import type { ServerFrame } from '../src/live/frames';
import { fromMessage } from '../src/live/messages';
import { after, hears, message, room } from './made';

const ROOM = 'welcome';

function lines(path: string): Record<string, unknown>[] {
  const text = readFileSync(resolve(import.meta.dirname, path), 'utf8');
  return text.trim().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Recorded from a hub by `npm run record`, with what it has of the room in the end. */
const recorded = lines('fixtures/everything.jsonl');
const frames = recorded.filter((line) => 'type' in line) as unknown as ServerFrame[];
const { history } = recorded.find((line) => 'history' in line) as { history: History };

const signedIn = after(
  emptyState,
  { type: 'SIGNED_IN', id: 'ada', names: ['ada'] },
  { type: 'ROOMS_LOADED', rooms: [room({ id: ROOM, name: ROOM })] },
);

function messagesIn(state: ChatState): ChatMessage[] {
  return state.chats[ROOM]?.messages ?? [];
}

const CARDS = ['plan', 'askUser', 'changeReport', 'modelFallback', 'usage', 'subagentTree', 'contextTokens', 'messageCount'];

/** What the history has of a message: neither its cards nor how long it took. */
function told(message: ChatMessage): Record<string, unknown> {
  const besides = new Set([...CARDS, 'durationMs', 'activitySummary', 'activityEntries', 'toolCount']);
  return Object.fromEntries(Object.entries(message).filter(([name, value]) => !besides.has(name) && value !== undefined));
}

test('what a hub told is what it has, message by message', () => {
  const first = frames.flatMap((frame) => (frame.type === 'server:new_message' ? [frame.message.seq] : []))[0] ?? 0;
  const before = history.items.filter((message) => message.seq < first).map(fromMessage);
  const read = after(signedIn, { type: 'HISTORY_LOADED', roomId: ROOM, messages: before, anew: true });
  const heard = messagesIn(hears(read, ...frames));
  const anew = messagesIn(after(signedIn, { type: 'HISTORY_LOADED', roomId: ROOM, messages: history.items.map(fromMessage), anew: true }));
  const withoutBlocks = ({ content: _, ...rest }: Record<string, unknown>) => rest;
  expect(heard.map(told).map(withoutBlocks)).toEqual(anew.map(told).map(withoutBlocks));
});

test('every card of the guide is on its one reply', () => {
  const state = hears(signedIn, ...frames);
  const [reply, ...others] = messagesIn(state).filter(({ text }) => text.includes('That was everything.'));
  expect(others).toEqual([]);
  for (const card of CARDS) expect(reply, card).toHaveProperty(card);
  expect(reply?.askUser?.end?.chosen).toEqual(['Tea', 'Now']);
  expect(reply?.plan?.status).toBe('completed');
  expect(reply?.isGenerating).toBe(false);
  expect(reply?.senderName).toBe('guide');
  expect(reply?.content?.filter((block) => block.type === 'tool' && block.isRunning)).toEqual([]);
  expect(state.chats[ROOM]?.permissions).toMatchObject([{ decision: 'allow' }]);
  expect(Object.keys(state.chats[ROOM]?.terminals ?? {})).toEqual(['guide']);
});

test('frames that the hub is proved to send are understood', () => {
  // The same file that the tests of the hub replay: ours have every field of these, and more.
  const session = lines('../../crates/parlor/tests/fixtures/agentim-web.jsonl').flatMap(({ heard }) => heard ?? []);
  const whole = (session as Record<string, object>[]).map((frame) =>
    'message' in frame ? { ...frame, message: { ...message({ id: 'm', seq: 1 }), ...frame['message'] }, position: 'e-1' } : frame,
  );
  const kitchen = after(signedIn, { type: 'ROOMS_LOADED', rooms: [room({ id: '<room>' })] });
  const state = hears(kitchen, ...(whole as unknown as ServerFrame[]));
  expect(state.online['<user>']).toBe(true);
  expect(state.chats['<room>']?.messages.map(({ text }) => text)).toEqual([expect.stringContaining('@webbot hello')]);
});

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { isReply, type ChatMessage } from '../src/chat/message';
import { emptyState, type ChatState } from '../src/chat/state';
import type { History } from '../src/generated/api';
import type { ServerFrame } from '../src/live/frames';
import { fromMessage } from '../src/live/messages';
import { after, receive, message, room } from './factories';

const ROOM = 'welcome';

function lines(path: string): Record<string, unknown>[] {
  const text = readFileSync(resolve(import.meta.dirname, path), 'utf8');
  return text.trim().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Frames recorded from a hub by `npm run record`, followed by the history of the room at the end. */
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

/** Fields of a message that are also in the history: without cards, duration and activity. */
function loggedFields(message: ChatMessage): Record<string, unknown> {
  const liveOnly = new Set([...CARDS, 'durationMs', 'activitySummary']);
  return Object.fromEntries(Object.entries(message).filter(([name, value]) => !liveOnly.has(name) && value !== undefined));
}

test('replaying the recorded frames yields the messages of the history', () => {
  const first = frames.flatMap((frame) => (frame.type === 'server:new_message' ? [frame.message.seq] : []))[0] ?? 0;
  const before = history.items.filter((message) => message.seq < first).map(fromMessage);
  const loaded = after(signedIn, { type: 'HISTORY_LOADED', roomId: ROOM, messages: before, replace: true });
  const received = messagesIn(receive(loaded, ...frames));
  const reloaded = messagesIn(after(signedIn, { type: 'HISTORY_LOADED', roomId: ROOM, messages: history.items.map(fromMessage), replace: true }));
  const withoutBlocks = ({ content: _, ...rest }: Record<string, unknown>) => rest;
  expect(received.map(loggedFields).map(withoutBlocks)).toEqual(reloaded.map(loggedFields).map(withoutBlocks));
});

test('all cards of the guide are on one reply', () => {
  const state = receive(signedIn, ...frames);
  const [reply, ...others] = messagesIn(state).filter(isReply).filter(({ text }) => text.includes('That was everything.'));
  expect(others).toEqual([]);
  for (const card of CARDS) expect(reply, card).toHaveProperty(card);
  expect(reply?.askUser?.end?.chosen).toEqual(['Tea', 'Now']);
  expect(reply?.plan?.status).toBe('completed');
  expect(reply?.state).toBe('stored');
  expect(reply?.senderName).toBe('guide');
  expect(reply?.content?.filter((block) => block.type === 'tool' && block.isRunning)).toEqual([]);
  expect(state.chats[ROOM]?.permissions).toMatchObject([{ decision: 'allow' }]);
  expect(Object.keys(state.chats[ROOM]?.terminals ?? {})).toEqual(['guide']);
});

test('the frames of the recorded AgentIM session are applied', () => {
  // The tests of the hub replay the same file. Its messages lack some fields, which are filled in here.
  const session = lines('../../crates/parlor/tests/fixtures/agentim-web.jsonl').flatMap(({ heard }) => heard ?? []);
  const complete = (session as Record<string, object>[]).map((frame) =>
    'message' in frame ? { ...frame, message: { ...message({ id: 'm', seq: 1 }), ...frame['message'] }, position: 'e-1' } : frame,
  );
  const kitchen = after(signedIn, { type: 'ROOMS_LOADED', rooms: [room({ id: '<room>' })] });
  const state = receive(kitchen, ...(complete as unknown as ServerFrame[]));
  expect(state.online['<user>']).toBe(true);
  expect(state.chats['<room>']?.messages.map(({ text }) => text)).toEqual([expect.stringContaining('@webbot hello')]);
});

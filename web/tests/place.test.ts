import { expect, test } from 'vitest';
import { isReply } from '../src/chat/message';
import { placeOf, sessionKey, sessionOf } from '../src/chat/place';
import { emptyState, type ChatState } from '../src/chat/state';
import type { ServerFrame, UiEvent } from '../src/live/frames';
import { badgeCount, notices } from '../src/notify';
import { AGENT, NOW, receive, ROOM } from './factories';

const SESSION = { agentId: AGENT, sessionId: 'slack' };
const KEY = sessionKey(SESSION);

test('a run is kept under its room or, without one, under its session', () => {
  expect(placeOf({ ...SESSION, roomId: ROOM })).toBe(ROOM);
  expect(placeOf(SESSION)).toBe(KEY);
  expect(placeOf({ agentId: AGENT })).toBeUndefined();
  expect(sessionOf(sessionKey({ agentId: 'a/b', sessionId: 'main' }))).toEqual({ agentId: 'a/b', sessionId: 'main' });
  expect(sessionOf(ROOM)).toBeUndefined();
});

function chunkOf(messageId: string, content: string): ServerFrame {
  const part = { type: 'text', content };
  return { type: 'server:message_chunk', ...SESSION, agentName: 'Coder', messageId, chunk: part };
}

function event(id: number, fields: object): ServerFrame {
  const common = { id: `e${id}`, seq: id, rev: 1, ts_ms: NOW, agent_id: AGENT, agent_session_id: 'slack' };
  return { type: 'server:event', event: { ...common, ...fields } as unknown as UiEvent };
}

function texts(state: ChatState): string[] {
  return (state.chats[KEY]?.messages ?? []).filter(isReply).map((message) => `${message.state}: ${message.text}`);
}

test('text, questions and the end of a run without a room reach the chat of its session', () => {
  const begun = [chunkOf('r1', 'Reading '), chunkOf('r1', 'the mail')].reduce((state, frame) => receive(state, frame), emptyState);
  expect(texts(begun)).toEqual(['streaming: Reading the mail']);
  const questions = [{ question: 'Which?', header: 'Pick', multi_select: false, options: [{ label: 'A' }] }];
  const asked = receive(begun, event(1, { kind: 'ask_user', data: { question_id: 'q', questions } }));
  expect(badgeCount(asked)).toBe(1);
  expect(notices(asked, begun, NOW).map(({ roomId, body }) => [roomId, body])).toEqual([[KEY, 'Which?']]);
  const ended = receive(asked, event(2, { kind: 'turn_complete', data: { duration_ms: 5 } }));
  expect(texts(ended)).toEqual(['ended: Reading the mail']);
});

test('an approval of a run without a room is kept with its session until it is decided', () => {
  const request = { requestId: 'p', agentName: 'Coder', toolName: 'Bash', inputDigest: 'd', expiresAt: '2026-01-02T13:00:00Z' };
  const asked = receive(emptyState, { type: 'server:permission_request', ...SESSION, ...request });
  expect(asked.chats[KEY]?.permissions.map(({ requestId, roomId }) => [requestId, roomId])).toEqual([['p', KEY]]);
  expect(badgeCount(asked)).toBe(1);
  const decided = receive(asked, { type: 'server:permission_resolved', requestId: 'p', sessionId: 'slack', decision: 'deny' });
  expect(badgeCount(decided)).toBe(0);
});

test('only the newest replies of a session are kept', () => {
  let state: ChatState = emptyState;
  for (let turn = 0; turn < 50; turn++) {
    state = receive(state, chunkOf(`r${turn}`, `turn ${turn}`));
    state = receive(state, event(turn, { kind: 'turn_complete', data: {} }));
  }
  expect(texts(state)).toHaveLength(20);
  expect(texts(state).at(-1)).toBe('ended: turn 49');
});

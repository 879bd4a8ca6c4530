import { describe, expect, test } from 'vitest';
import type { ChatAction } from '../src/chat/actions';
import type { SendingMessage } from '../src/chat/message';
import type { ServerFrame } from '../src/live/frames';
import { after, receive, message, messagesOf, newMessage, NOW, room, ROOM, signedIn } from './factories';

function unsent(clientMessageId: string): SendingMessage {
  const { id, roomId, content, createdAt } = message({ id: clientMessageId, seq: 0 });
  const sender = { role: 'user', senderType: 'user', from: 'ada', senderName: 'Ada Lovelace' } as const;
  const written = { text: content, timestamp: createdAt, timestampMs: Date.parse(createdAt), attachments: [] };
  return { state: 'sending', id, roomId, clientMessageId, ...sender, ...written };
}

describe('a sent message', () => {
  const waiting = after(signedIn, { type: 'SEND_STARTED', message: unsent('c1') });
  const ack: ServerFrame = { type: 'server:message_ack', clientMessageId: 'c1', messageId: 'm', seq: 5, epoch: 'e' };
  const frame = newMessage(message({ id: 'm', seq: 5, senderId: 'ada', clientMessageId: 'c1' }));

  test('is shown once, whether the acknowledgement or the message arrives first', () => {
    for (const frames of [[ack, frame], [frame, ack], [frame], [ack]]) {
      const [only, ...others] = messagesOf(receive(waiting, ...frames));
      expect(others).toEqual([]);
      expect(only).toMatchObject({ id: 'm', seq: 5, state: 'stored' });
    }
  });

  test('is the preview of its room and not unread', () => {
    for (const frames of [[ack, frame], [frame, ack]]) {
      const { recent, unread } = receive(waiting, ...frames).rooms[ROOM] ?? {};
      expect({ recent, unread }).toMatchObject({ recent: { content: 'text of m' }, unread: 0 });
    }
    // A repeated older message does not replace the preview.
    const later = receive(waiting, ack, frame, newMessage(message({ id: 'n', seq: 6 })), frame);
    expect(later.rooms[ROOM]?.recent?.content).toBe('text of n');
  });

  test('can be rejected and retried', () => {
    const error: ServerFrame = { type: 'server:error', code: 'RATE_LIMITED', message: 'Too fast', clientMessageId: 'c1' };
    const rejected = receive(waiting, error);
    expect(messagesOf(rejected)[0]).toMatchObject({ state: 'rejected', failure: 'Too fast' });
    const again = after(rejected, { type: 'RETRY_SEND', roomId: ROOM, clientMessageId: 'c1' });
    expect(messagesOf(again)[0]).toMatchObject({ state: 'sending' });
    expect(messagesOf(again)[0]).not.toHaveProperty('failure');
  });
});

describe('the list of rooms', () => {
  test('clears the fields that a room update frame omits', () => {
    const { notificationPref: _, role: __, members: ___, unread: ____, mentions: _____, ...frame } = room();
    const roomUpdate = (more: object): ServerFrame => ({ type: 'server:room_update', room: { ...frame, ...more }, position: 'e-1' });
    const set = receive(signedIn, roomUpdate({ projectRoot: '/srv/mill', frozenAt: 'now', systemPrompt: 'Be kind' }));
    expect(set.rooms[ROOM]).toMatchObject({ projectRoot: '/srv/mill', frozenAt: 'now', systemPrompt: 'Be kind' });
    const { projectRoot, frozenAt, systemPrompt } = receive(set, roomUpdate({})).rooms[ROOM] ?? {};
    expect([projectRoot, frozenAt, systemPrompt]).toEqual([undefined, undefined, undefined]);
  });

  test('counts unread messages and mentions of other users', () => {
    const state = receive(
      signedIn,
      newMessage(message({ id: 'a', seq: 1 })),
      newMessage(message({ id: 'b', seq: 2, mentions: ['Ada Lovelace'] })),
      newMessage(message({ id: 'c', seq: 3, senderId: 'ada' })),
    );
    expect(state.rooms[ROOM]).toMatchObject({ unread: 2, mentions: 1, recent: { content: 'text of c' } });
    expect(after(state, { type: 'ROOM_OPENED', roomId: ROOM }).rooms[ROOM]).toMatchObject({ unread: 0, mentions: 0 });
  });

  test('counts a repeated message once', () => {
    const frame = newMessage(message({ id: 'a', seq: 1 }));
    expect(receive(signedIn, frame, frame).rooms[ROOM]?.unread).toBe(1);
  });

  test('does not count messages again that the loaded list includes', () => {
    const [first, second] = [message({ id: 'a', seq: 1 }), message({ id: 'b', seq: 2 })];
    const { content, senderName, createdAt } = first;
    const rooms = [room({ unread: 1, recent: { content, senderName, createdAt } })];
    const list: ChatAction = { type: 'ROOMS_LOADED', rooms };
    expect(receive(after(signedIn, list), newMessage(first), newMessage(second)).rooms[ROOM]?.unread).toBe(2);
    const state = after(receive(signedIn, newMessage(first), newMessage(second)), list);
    expect(state.rooms[ROOM]).toMatchObject({ unread: 2, recent: { createdAt: second.createdAt } });
  });

  test('takes unread counts from the loaded list, except for the open room', () => {
    const list: ChatAction = { type: 'ROOMS_LOADED', rooms: [room({ unread: 2, mentions: 1 })] };
    expect(after(signedIn, list).rooms[ROOM]).toMatchObject({ unread: 2, mentions: 1 });
    const open = after(signedIn, { type: 'ROOM_OPENED', roomId: ROOM });
    expect(after(open, list).rooms[ROOM]).toMatchObject({ unread: 0, mentions: 0 });
  });

  test('counts no unread messages in the open room', () => {
    const open = after(signedIn, { type: 'ROOM_OPENED', roomId: ROOM });
    expect(receive(open, newMessage(message({ id: 'a', seq: 1 }))).rooms[ROOM]?.unread).toBe(0);
  });

  test('clears the fields that a room update action omits', () => {
    const frozen = after(signedIn, { type: 'ROOM_UPDATED', room: room({ frozenAt: 'then', systemPrompt: 'Be brief' }) });
    const { frozenAt: _, systemPrompt: __, ...thawed } = room();
    const state = after(frozen, { type: 'ROOM_UPDATED', room: thawed });
    expect(state.rooms[ROOM]?.frozenAt).toBeUndefined();
    expect(state.rooms[ROOM]?.systemPrompt).toBeUndefined();
  });
});

test('a permission request that is sent twice is shown once, with its decision', () => {
  const request: ServerFrame = {
    type: 'server:permission_request',
    requestId: 'p',
    agentId: 'coder',
    agentName: 'Coder',
    roomId: ROOM,
    toolName: 'Bash',
    toolInput: { command: 'ls' },
    inputDigest: 'd',
    expiresAt: new Date(NOW + 60_000).toISOString(),
  };
  // The hub repeats open requests when a room is joined again.
  const state = receive(signedIn, request, request);
  expect(state.chats[ROOM]?.permissions).toHaveLength(1);
  const decided = receive(state, {
    type: 'server:permission_resolved',
    requestId: 'p',
    roomId: ROOM,
    decision: 'deny',
    decidedByName: 'Grace',
    reason: 'no',
  });
  expect(decided.chats[ROOM]?.permissions[0]).toMatchObject({ decision: 'deny', decidedByName: 'Grace', reason: 'no' });
});

test('a position never moves backwards, except to another epoch', () => {
  const at = (...positions: string[]) =>
    after(signedIn, ...positions.map((position) => ({ type: 'POSITION' as const, position }))).position;
  expect(at('e-5', 'e-12', 'e-9')).toBe('e-12');
  expect(at('e-12', 'f-1')).toBe('f-1');
});

test('a resync marks all rooms as stale and forgets the position', () => {
  const loaded = ['attic', 'cellar'].map((roomId): ChatAction => ({ type: 'HISTORY_LOADED', roomId, messages: [], replace: true }));
  const typing: ChatAction = { type: 'TYPING', roomId: 'never read', userId: 'u', name: 'U', until: NOW };
  const state = after(signedIn, ...loaded, { type: 'POSITION', position: 'e-5' }, typing, { type: 'RESYNC' });
  expect(Object.entries(state.chats).map(([id, chat]) => [id, chat.history])).toEqual([
    ['attic', 'stale'],
    ['cellar', 'stale'],
    ['never read', 'unread'],
  ]);
  expect(state.position).toBeUndefined();
  // The hub continues from a lower position of the same epoch.
  expect(receive(state, { type: 'server:following', position: 'e-2' }).position).toBe('e-2');
});

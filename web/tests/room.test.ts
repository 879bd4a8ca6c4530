import { describe, expect, test } from 'vitest';
import type { ChatAction } from '../src/chat/actions';
import type { ChatMessage } from '../src/chat/state';
import type { ServerFrame } from '../src/live/frames';
import { fromMessage } from '../src/live/messages';
import { after, hears, message, messagesOf, newMessage, NOW, room, ROOM, signedIn } from './made';

function unsent(clientMessageId: string): ChatMessage {
  const said = fromMessage(message({ id: clientMessageId, seq: 0, senderId: 'ada', clientMessageId }));
  const { seq: _, ...rest } = said;
  return { ...rest, sending: 'waiting' };
}

describe('what one sends', () => {
  const waiting = after(signedIn, { type: 'PUSH_MESSAGE', message: unsent('c1'), isNews: false });
  const ack: ServerFrame = { type: 'server:message_ack', clientMessageId: 'c1', messageId: 'm', seq: 5, epoch: 'e' };
  const told = newMessage(message({ id: 'm', seq: 5, senderId: 'ada', clientMessageId: 'c1' }));

  test('is there once, whichever of acknowledgement and message comes first', () => {
    for (const frames of [[ack, told], [told, ack], [told], [ack]]) {
      const [only, ...others] = messagesOf(hears(waiting, ...frames));
      expect(others).toEqual([]);
      expect(only).toMatchObject({ id: 'm', seq: 5 });
      expect(only?.sending).toBeUndefined();
    }
  });

  test('is what its room shows in the list, and not unread', () => {
    for (const frames of [[ack, told], [told, ack]]) {
      const { recent, unread } = hears(waiting, ...frames).rooms[ROOM] ?? {};
      expect({ recent, unread }).toMatchObject({ recent: { content: 'text of m' }, unread: 0 });
    }
    // What is told again shows nothing older.
    const later = hears(waiting, ack, told, newMessage(message({ id: 'n', seq: 6 })), told);
    expect(later.rooms[ROOM]?.recent?.content).toBe('text of n');
  });

  test('can be refused, and tried again', () => {
    const error: ServerFrame = { type: 'server:error', code: 'RATE_LIMITED', message: 'Too fast', clientMessageId: 'c1' };
    const refused = hears(waiting, error);
    expect(messagesOf(refused)[0]).toMatchObject({ sending: 'failed', failure: 'Too fast' });
    const again = after(refused, { type: 'SEND_AGAIN', roomId: ROOM, clientMessageId: 'c1' });
    expect(messagesOf(again)[0]).toMatchObject({ sending: 'waiting' });
    expect(messagesOf(again)[0]?.failure).toBeUndefined();
  });
});

describe('the list of rooms', () => {
  test('forgets of a room what is not told of it any more', () => {
    const { notificationPref: _, role: __, members: ___, unread: ____, mentions: _____, ...frame } = room();
    const told = (more: object): ServerFrame => ({ type: 'server:room_update', room: { ...frame, ...more }, position: 'e-1' });
    const set = hears(signedIn, told({ projectRoot: '/srv/mill', frozenAt: 'now', systemPrompt: 'Be kind' }));
    expect(set.rooms[ROOM]).toMatchObject({ projectRoot: '/srv/mill', frozenAt: 'now', systemPrompt: 'Be kind' });
    const { projectRoot, frozenAt, systemPrompt } = hears(set, told({})).rooms[ROOM] ?? {};
    expect([projectRoot, frozenAt, systemPrompt]).toEqual([undefined, undefined, undefined]);
  });

  test('counts what others say elsewhere, and mentions apart', () => {
    const state = hears(
      signedIn,
      newMessage(message({ id: 'a', seq: 1 })),
      newMessage(message({ id: 'b', seq: 2, mentions: ['Ada Lovelace'] })),
      newMessage(message({ id: 'c', seq: 3, senderId: 'ada' })),
    );
    expect(state.rooms[ROOM]).toMatchObject({ unread: 2, mentions: 1, recent: { content: 'text of c' } });
    expect(after(state, { type: 'ROOM_OPENED', roomId: ROOM }).rooms[ROOM]).toMatchObject({ unread: 0, mentions: 0 });
  });

  test('counts a message that is told twice once', () => {
    const frame = newMessage(message({ id: 'a', seq: 1 }));
    expect(hears(signedIn, frame, frame).rooms[ROOM]?.unread).toBe(1);
  });

  test('counts once what is told before or after the list that counts it already', () => {
    const [first, second] = [message({ id: 'a', seq: 1 }), message({ id: 'b', seq: 2 })];
    const { content, senderName, createdAt } = first;
    const rooms = [room({ unread: 1, recent: { content, senderName, createdAt } })];
    const list: ChatAction = { type: 'ROOMS_LOADED', rooms };
    expect(hears(after(signedIn, list), newMessage(first), newMessage(second)).rooms[ROOM]?.unread).toBe(2);
    const told = after(hears(signedIn, newMessage(first), newMessage(second)), list);
    expect(told.rooms[ROOM]).toMatchObject({ unread: 2, recent: { createdAt: second.createdAt } });
  });

  test('has the mentions that the list counts, but for the room that is open', () => {
    const list: ChatAction = { type: 'ROOMS_LOADED', rooms: [room({ unread: 2, mentions: 1 })] };
    expect(after(signedIn, list).rooms[ROOM]).toMatchObject({ unread: 2, mentions: 1 });
    const open = after(signedIn, { type: 'ROOM_OPENED', roomId: ROOM });
    expect(after(open, list).rooms[ROOM]).toMatchObject({ unread: 0, mentions: 0 });
  });

  test('counts nothing in the room that is open', () => {
    const open = after(signedIn, { type: 'ROOM_OPENED', roomId: ROOM });
    expect(hears(open, newMessage(message({ id: 'a', seq: 1 }))).rooms[ROOM]?.unread).toBe(0);
  });

  test('loses what a frame of a room leaves out', () => {
    const frozen = after(signedIn, { type: 'ROOM_UPDATED', room: room({ frozenAt: 'then', systemPrompt: 'Be brief' }) });
    const { frozenAt: _, systemPrompt: __, ...thawed } = room();
    const state = after(frozen, { type: 'ROOM_UPDATED', room: thawed });
    expect(state.rooms[ROOM]?.frozenAt).toBeUndefined();
    expect(state.rooms[ROOM]?.systemPrompt).toBeUndefined();
  });
});

test('a permission is decided once for everyone to see', () => {
  const asked: ServerFrame = {
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
  // Told again to who joins anew.
  const state = hears(signedIn, asked, asked);
  expect(state.chats[ROOM]?.permissions).toHaveLength(1);
  const decided = hears(state, {
    type: 'server:permission_resolved',
    requestId: 'p',
    roomId: ROOM,
    decision: 'deny',
    decidedByName: 'Grace',
    reason: 'no',
  });
  expect(decided.chats[ROOM]?.permissions[0]).toMatchObject({ decision: 'deny', decidedByName: 'Grace', reason: 'no' });
});

test('a position never goes back, except into another epoch', () => {
  const at = (...positions: string[]) =>
    after(signedIn, ...positions.map((position) => ({ type: 'POSITION' as const, roomId: ROOM, position }))).chats[ROOM]
      ?.position;
  expect(at('e-5', 'e-12', 'e-9')).toBe('e-12');
  expect(at('e-12', 'f-1')).toBe('f-1');
});

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RejectedMessage } from '../src/chat/message';
import { dispatch, useChat } from '../src/chat/store';
import type { User } from '../src/generated/api';
import type { ClientFrame, ServerFrame } from '../src/live/frames';
import { Outbox } from '../src/live/outbox';
import { message, messagesOf, newMessage, ROOM } from './factories';

const ada = { id: 'ada', username: 'ada', displayName: 'Ada Lovelace' } as User;

let sent: ClientFrame[];
let stored: Map<string, string>;

beforeEach(() => {
  sent = [];
  stored = new Map();
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  dispatch({ type: 'SIGNED_OUT' });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

function outboxOf(user: User): Outbox {
  return new Outbox(user, (frame) => sent.push(frame) > 0);
}

function sentIds(): string[] {
  return sent.flatMap((frame) => (frame.type === 'client:send_message' ? (frame.clientMessageId ?? []) : []));
}

function firstId(): string {
  const [id] = sentIds();
  if (id === undefined) throw new Error('no message was sent');
  return id;
}

function shown() {
  return messagesOf(useChat.getState());
}

function rejected(): RejectedMessage {
  const [first] = shown();
  if (first?.state !== 'rejected') throw new Error('the message is not rejected');
  return first;
}

function ack(clientMessageId: string): ServerFrame {
  return { type: 'server:message_ack', clientMessageId, messageId: 'm', seq: 1, epoch: 'e' };
}

const draft = { content: 'Soup?', attachments: [] };

test('a message is shown and sent at once', () => {
  outboxOf(ada).send(ROOM, { ...draft, replyToId: 'q' });
  expect(sent).toMatchObject([{ type: 'client:send_message', roomId: ROOM, content: 'Soup?', replyToId: 'q' }]);
  expect(shown()).toMatchObject([{ id: firstId(), text: 'Soup?', senderName: 'Ada Lovelace', state: 'sending' }]);
});

test('a message that is not acknowledged is sent again with the same client message id', () => {
  const outbox = outboxOf(ada);
  outbox.send(ROOM, draft);
  outbox.resend();
  expect(sentIds()).toEqual([firstId(), firstId()]);
  expect(shown()).toHaveLength(1);
});

test('an acknowledged message is not sent again, whichever frame acknowledges it', () => {
  const acknowledge: ((id: string) => ServerFrame)[] = [
    ack,
    (clientMessageId) => newMessage(message({ id: 'm', seq: 1, senderId: 'ada', clientMessageId })),
  ];
  for (const frame of acknowledge) {
    sent = [];
    const outbox = outboxOf(ada);
    outbox.send(ROOM, draft);
    outbox.onFrame(frame(firstId()));
    outbox.resend();
    expect(sentIds()).toHaveLength(1);
    expect(stored.size).toBe(0);
  }
});

test('an acknowledgement of another message changes nothing', () => {
  const outbox = outboxOf(ada);
  outbox.send(ROOM, draft);
  outbox.onFrame(ack('another'));
  outbox.onFrame(newMessage(message({ id: 'n', seq: 2 })));
  outbox.resend();
  expect(sentIds()).toHaveLength(2);
});

test('unsent messages survive a reload, for their own user only', () => {
  outboxOf(ada).send(ROOM, draft);
  const id = firstId();
  dispatch({ type: 'SIGNED_OUT' });
  const others = outboxOf({ ...ada, id: 'grace' });
  others.restore();
  others.resend();
  expect(shown()).toEqual([]);
  const own = outboxOf(ada);
  own.restore();
  own.resend();
  expect(shown()).toMatchObject([{ id, state: 'sending' }]);
  expect(sentIds()).toEqual([id, id]);
});

test('a rejected message is sent again only when the user retries it', () => {
  const outbox = outboxOf(ada);
  outbox.send(ROOM, draft);
  dispatch({ type: 'SEND_FAILED', clientMessageId: firstId(), failure: 'Too fast' });
  outbox.resend();
  expect(sentIds()).toHaveLength(1);
  outbox.retry(rejected());
  expect(sentIds()).toEqual([firstId(), firstId()]);
  expect(shown()).toMatchObject([{ state: 'sending' }]);
});

test('a discarded message is neither shown nor sent again', () => {
  const outbox = outboxOf(ada);
  outbox.send(ROOM, draft);
  dispatch({ type: 'SEND_FAILED', clientMessageId: firstId(), failure: 'Too fast' });
  const message = rejected();
  outbox.discard(message);
  outbox.retry(message);
  outbox.resend();
  expect(shown()).toEqual([]);
  expect(sentIds()).toHaveLength(1);
});

test('a message is sent although the storage is full', () => {
  vi.stubGlobal('localStorage', {
    getItem: () => null,
    setItem: () => {
      throw new Error('QuotaExceededError');
    },
  });
  outboxOf(ada).send(ROOM, draft);
  expect(sentIds()).toHaveLength(1);
});

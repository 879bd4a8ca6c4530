import { expect, test } from 'vitest';
import { notices } from '../src/notify';
import { AGENT, after, chunk, receive, message, newMessage, NOW, reply, room, ROOM, signedIn } from './factories';

const streaming = receive(signedIn, chunk('r', 'text', 'Let me see', { first: true }));
const done = receive(streaming, newMessage(reply({ id: 'r', seq: 1, content: 'Done' })));

test('a mention creates a notification, and other messages do not', () => {
  const mentioned = receive(signedIn, newMessage(message({ id: 'a', seq: 1, content: '@ada soup?', mentions: ['ada'] })));
  expect(notices(mentioned, signedIn, NOW).map(({ title }) => title)).toEqual(['Grace · Kitchen']);
  const others = receive(signedIn, newMessage(message({ id: 'a', seq: 1, content: 'soup' })));
  expect(notices(others, signedIn, NOW)).toEqual([]);
});

test('the end of a long reply creates a notification, and that of a short one does not', () => {
  expect(notices(done, streaming, NOW + 60_000).map(({ title }) => title)).toEqual(['Coder is done · Kitchen']);
  expect(notices(done, streaming, NOW + 2000)).toEqual([]);
  const muted = (state: typeof done) => after(state, { type: 'ROOMS_LOADED', rooms: [room({ notificationPref: 'none' })] });
  expect(notices(muted(done), muted(streaming), NOW + 60_000)).toEqual([]);
});

test('an open question or approval creates one notification', () => {
  const withQuestion = after(streaming, {
    type: 'SET_ASK_USER',
    roomId: ROOM,
    agentId: AGENT,
    askUser: { questionId: 'q', questions: [{ question: 'Which soup?', header: 'Soup', options: [], multiSelect: false }] },
  });
  expect(notices(withQuestion, streaming, NOW).map(({ body }) => body)).toEqual(['Which soup?']);
  expect(notices(receive(withQuestion, chunk('r', 'text', '…')), withQuestion, NOW)).toEqual([]);
  const permission = {
    requestId: 'p',
    roomId: ROOM,
    agentId: AGENT,
    agentName: 'Coder',
    toolName: 'Bash',
    toolInput: {},
    inputDigest: '',
    expiresAt: '2026-01-02T12:05:00Z',
  };
  const withPermission = after(withQuestion, { type: 'PERMISSION_REQUESTED', permission });
  expect(notices(withPermission, withQuestion, NOW).map(({ title }) => title)).toEqual(['Coder wants to use Bash']);
  const resolved = after(withPermission, { type: 'PERMISSION_RESOLVED', requestId: 'p', decision: 'deny' });
  expect(notices(resolved, withPermission, NOW)).toEqual([]);
});

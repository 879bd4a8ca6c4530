import { expect, test } from 'vitest';
import { news } from '../src/notify';
import { AGENT, after, chunk, hears, message, newMessage, NOW, reply, room, ROOM, signedIn } from './made';

const speaking = hears(signedIn, chunk('r', 'text', 'Let me see', { first: true }));
const done = hears(speaking, newMessage(reply({ id: 'r', seq: 1, content: 'Done' })));

test('who is not looking is called for a mention, and for nothing that was said to others', () => {
  const called = hears(signedIn, newMessage(message({ id: 'a', seq: 1, content: '@ada soup?', mentions: ['ada'] })));
  expect(news(called, signedIn, NOW).map(({ title }) => title)).toEqual(['Grace · Kitchen']);
  const others = hears(signedIn, newMessage(message({ id: 'a', seq: 1, content: 'soup' })));
  expect(news(others, signedIn, NOW)).toEqual([]);
});

test('a reply that took long is told when it is there, a quick one is not', () => {
  expect(news(done, speaking, NOW + 60_000).map(({ title }) => title)).toEqual(['Coder is done · Kitchen']);
  expect(news(done, speaking, NOW + 2000)).toEqual([]);
  const quiet = (state: typeof done) => after(state, { type: 'ROOMS_LOADED', rooms: [room({ notificationPref: 'none' })] });
  expect(news(quiet(done), quiet(speaking), NOW + 60_000)).toEqual([]);
});

test('an agent that waits for an answer calls once', () => {
  const asked = after(speaking, {
    type: 'SET_ASK_USER',
    roomId: ROOM,
    agentId: AGENT,
    askUser: { questionId: 'q', questions: [{ question: 'Which soup?', header: 'Soup', options: [], multiSelect: false }] },
  });
  expect(news(asked, speaking, NOW).map(({ body }) => body)).toEqual(['Which soup?']);
  expect(news(hears(asked, chunk('r', 'text', '…')), asked, NOW)).toEqual([]);
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
  const wanting = after(asked, { type: 'PERMISSION_ASKED', permission });
  expect(news(wanting, asked, NOW).map(({ title }) => title)).toEqual(['Coder wants to use Bash']);
  const resolved = after(wanting, { type: 'PERMISSION_RESOLVED', requestId: 'p', decision: 'deny' });
  expect(news(resolved, wanting, NOW)).toEqual([]);
});

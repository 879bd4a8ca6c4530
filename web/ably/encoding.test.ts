/** Data in every encoding, from each encoding of the connection to each other one, and to the history. */
import { createHash } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { Ably, FORMATS, PAIRS, channelName, connected, errorOf, rest, subscribed } from './clients';

const LARGE = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7) % 256));

/** Data as it is published and as it is received. */
const CASES: [name: string, data: unknown, received?: unknown][] = [
  ['text', 'plain text'],
  ['unicode', 'héllo wörld ✓ 😀 \u0000 \u2028 "quoted" \\ /'],
  ['empty text', ''],
  ['an object', { a: 1, b: [true, null, 'x', 1.5, -7], c: { d: 'é' } }],
  ['an array', [1, 'two', { three: 3 }, null]],
  ['an empty object', {}],
  ['an empty array', []],
  ['a large number in an object', { n: 9007199254740991, small: 1e-300 }],
  ['binary', Buffer.from([0, 1, 2, 127, 128, 250, 255])],
  ['empty binary', Buffer.alloc(0)],
  ['binary that is text', Buffer.from('plain text')],
  ['large binary', LARGE],
  ['a typed array', new Uint8Array([3, 2, 1]), Buffer.from([3, 2, 1])],
  ['an array buffer', new Uint8Array([9, 8]).buffer, Buffer.from([9, 8])],
  ['text like base64', 'AQL6'],
];

describe.each(PAIRS)('from %s to %s', (from, to) => {
  test('all data arrives as it was published', async () => {
    const [publisher, subscriber] = await Promise.all([connected({ format: from }), connected({ format: to })]);
    const name = channelName();
    const inbox = await subscribed(subscriber.channels.get(name));
    const channel = publisher.channels.get(name);
    await Promise.all(CASES.map(([title, data]) => channel.publish(title, data)));
    const messages = await inbox.take(CASES.length);
    expectCases(messages);
    const history = await rest({ format: to }).channels.get(name).history({ direction: 'forwards' });
    expectCases(history.items);
  });

  test('published over REST, all data arrives as it was published', async () => {
    const subscriber = await connected({ format: to });
    const name = channelName();
    const inbox = await subscribed(subscriber.channels.get(name));
    await rest({ format: from }).channels.get(name).publish(CASES.map(([title, data]) => ({ name: title, data })));
    expectCases(await inbox.take(CASES.length));
  });

  test('presence data arrives as it was entered', async () => {
    const [one, other] = await Promise.all([connected({ format: from }), connected({ format: to })]);
    const name = channelName();
    const channel = one.channels.get(name);
    for (const [title, data] of CASES.filter(([, data]) => data !== LARGE)) await channel.presence.enterClient(title, data);
    const members = await other.channels.get(name).presence.get();
    const received = new Map(members.map((member) => [member.clientId, member.data as unknown]));
    for (const [title, data, expected] of CASES.filter(([, given]) => given !== LARGE)) {
      expect([title, received.get(title)]).toEqual([title, expected ?? data]);
    }
  });

  test('encrypted messages are read with the key only', async () => {
    const [publisher, subscriber, outsider] = await Promise.all([
      connected({ format: from }),
      connected({ format: to }),
      connected({ format: to }),
    ]);
    for (const bits of [128, 256]) {
      const key = await Ably.Realtime.Crypto.generateRandomKey(bits);
      const name = channelName();
      const inbox = await subscribed(subscriber.channels.get(name, { cipher: { key } }));
      const opaque = await subscribed(outsider.channels.get(name));
      const channel = publisher.channels.get(name, { cipher: { key } });
      // Encryption takes varying time, so concurrent publishes could be reordered.
      for (const [title, data] of CASES) await channel.publish(title, data);
      expectCases(await inbox.take(CASES.length));
      for (const message of await opaque.take(CASES.length)) {
        expect(message.encoding).toMatch(new RegExp(`cipher\\+aes-${bits}-cbc$`));
        expect(Buffer.isBuffer(message.data)).toBe(true);
      }
      const history = await rest({ format: to }).channels.get(name, { cipher: { key } }).history({ direction: 'forwards' });
      expectCases(history.items);
    }
  });
});

describe.each(FORMATS)('in %s', (format) => {
  test('encodings that the hub does not know stay', async () => {
    const client = await connected({ format });
    const name = channelName();
    const inbox = await subscribed(client.channels.get(name));
    await post(name, { name: 'a', data: 'AQL6', encoding: 'foo/base64' });
    await post(name, { name: 'b', data: 'text', encoding: 'foo/bar' });
    const [binary, text] = await inbox.take(2);
    expect(binary).toMatchObject({ encoding: 'foo', data: Buffer.from([1, 2, 250]) });
    expect(text).toMatchObject({ encoding: 'foo/bar', data: 'text' });
  });

  test('chains are decoded from right to left', async () => {
    const client = await connected({ format });
    const name = channelName();
    const inbox = await subscribed(client.channels.get(name));
    const data = Buffer.from(JSON.stringify({ a: 'é' })).toString('base64');
    await post(name, { name: 'a', data, encoding: 'json/utf-8/base64' });
    await post(name, { name: 'b', data: Buffer.from('é').toString('base64'), encoding: 'utf-8/base64' });
    const [object, text] = await inbox.take(2);
    expect(object?.data).toEqual({ a: 'é' });
    expect(text?.data).toBe('é');
  });

  test('objects without an encoding are JSON', async () => {
    const client = await connected({ format });
    const name = channelName();
    const inbox = await subscribed(client.channels.get(name));
    await post(name, { name: 'a', data: { a: 1 } });
    expect((await inbox.next()).data).toEqual({ a: 1 });
  });

  test('numbers and booleans are no data', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    for (const data of [1, true]) expect((await errorOf(channel.publish('one', data))).code).toBe(40013);
    expect(client.connection.state).toBe('connected');
  });
});

test('JSON bodies have binary data in base64', async () => {
  const name = channelName();
  await rest({ format: 'msgpack' }).channels.get(name).publish('one', Buffer.from([1, 2, 250]));
  const response = await fetch(`${inject('hub').url}/channels/${name}/messages`, { headers: basic() });
  expect(await response.json()).toMatchObject([{ name: 'one', data: 'AQL6', encoding: 'base64' }]);
});

test('invalid base64 is refused', async () => {
  const response = await send(channelName(), { data: '?', encoding: 'base64' });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: 40013 } });
});

function expectCases(messages: Ably.Message[]): void {
  expect(messages.map((message) => message.name)).toEqual(CASES.map(([title]) => title));
  for (const [at, [title, data, received]] of CASES.entries()) {
    const message = messages[at];
    expect([title, message?.encoding ?? null]).toEqual([title, null]);
    expect([title, digest(message?.data)]).toEqual([title, digest(received ?? data)]);
  }
}

/** Large buffers are compared by their hash, because a difference would print them. */
function digest(data: unknown): unknown {
  return Buffer.isBuffer(data) && data.length > 1000 ? createHash('sha256').update(data).digest('hex') : data;
}

function basic(): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(inject('hub').key).toString('base64')}`, 'content-type': 'application/json' };
}

function send(channel: string, body: unknown): Promise<Response> {
  const url = `${inject('hub').url}/channels/${encodeURIComponent(channel)}/messages`;
  return fetch(url, { method: 'POST', headers: basic(), body: JSON.stringify(body) });
}

async function post(channel: string, body: unknown): Promise<void> {
  const response = await send(channel, body);
  expect([response.status, await response.text()][0]).toBe(201);
}

/** Life of a connection, and connections that the hub refuses. */
import { describe, expect, inject, test } from 'vitest';
import { Ably, FORMATS, connected, errorOf, channelName, nextEvent, reached, realtime, subscribed, wire } from './clients';

describe.each(FORMATS)('a connection in %s', (format) => {
  test('passes through its states to closed', async () => {
    const client = realtime({ format, autoConnect: false });
    const states: string[] = [client.connection.state];
    client.connection.on((change) => states.push(change.current));
    client.connect();
    await reached(client, 'connected');
    expect(client.connection.id).toMatch(/^[\w-]+$/);
    expect(client.connection.key?.startsWith(`${client.connection.id}!`)).toBe(true);
    const closed = nextEvent(client, 'closed');
    client.close();
    await closed;
    expect(states).toEqual(['initialized', 'connecting', 'connected', 'closing', 'closed']);
    expect(client.connection.id).toBeUndefined();
  });

  test('has a new id after it was closed', async () => {
    const client = await connected({ format });
    const first = client.connection.id;
    const closed = nextEvent(client, 'closed');
    client.close();
    await closed;
    client.connect();
    await reached(client, 'connected');
    expect(client.connection.id).not.toBe(first);
  });

  test('differs from the connection of another client', async () => {
    const [one, other] = await Promise.all([connected({ format }), connected({ format })]);
    expect(one.connection.id).not.toBe(other.connection.id);
  });

  test('answers pings', async () => {
    const client = await connected({ format });
    const times = await Promise.all([client.connection.ping(), client.connection.ping(), client.connection.ping()]);
    for (const time of times) expect(time).toBeGreaterThanOrEqual(0);
  });

  test('connects again at once when the socket is lost', async () => {
    const proxy = await wire();
    const client = await connected({ format, port: proxy.port });
    const id = client.connection.id;
    const lost = nextEvent(client, 'disconnected');
    const again = nextEvent(client, 'connected');
    proxy.cut();
    expect((await lost).reason?.code).toBe(80003);
    await again;
    expect(client.connection.id).toBe(id);
  });

  test('connects when the hub can be reached again', async () => {
    const proxy = await wire();
    proxy.refuse();
    const client = realtime({ format, port: proxy.port });
    await reached(client, 'disconnected');
    expect((await errorOf(client.connection.ping())).message).toMatch(/not connected/);
    proxy.accept();
    await reached(client, 'connected');
  });

  test('publishes queued messages when it is connected', async () => {
    const reader = await connected({ format });
    const name = channelName();
    const inbox = await subscribed(reader.channels.get(name));
    const client = realtime({ format, autoConnect: false });
    const channel = client.channels.get(name);
    const published = [channel.publish('one', '1'), channel.publish('two', '2')];
    client.connect();
    await Promise.all(published);
    expect((await inbox.take(2)).map((message) => message.name)).toEqual(['one', 'two']);
  });

  test('rejects a publish without a connection if the client does not queue', async () => {
    const client = realtime({ format, autoConnect: false, queueMessages: false });
    const error = await errorOf(client.channels.get(channelName()).publish('one', '1'));
    expect(error.message).toMatch(/queueEvent was false/);
  });

  test('announces limits of at least half a megabyte per message', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const text = 'x'.repeat(500 * 1024);
    await channel.publish('large', text);
    expect((await inbox.next()).data).toBe(text);
    const error = await errorOf(channel.publish('too large', 'x'.repeat(20 * 1024 * 1024)));
    expect(error.code).toBe(40009);
    expect(client.connection.state).toBe('connected');
  });
});

describe.each(FORMATS)('in %s the hub refuses a connection', (format) => {
  test('with a wrong secret', async () => {
    const { key } = inject('hub');
    const error = await failure({ format, key: `${key.split(':')[0]}:wrong` });
    expect(error).toMatchObject({ code: 40101, statusCode: 401 });
  });

  test('with an unknown key', async () => {
    expect(await failure({ format, key: 'parlor.unknown:secret' })).toMatchObject({ code: 40101, statusCode: 401 });
    expect(await failure({ format, key: 'other.key:secret' })).toMatchObject({ code: 40101, statusCode: 401 });
  });

  test('with an unknown token that the client cannot renew', async () => {
    for (const token of ['parlor.unknown', 'x', 'a.b.c', 'other.token']) {
      const error = await failure({ format, token });
      expect([40005, 40171]).toContain(error?.code);
    }
  });

  test('and keeps refusing attachments', async () => {
    const client = realtime({ format, key: `${inject('hub').key.split(':')[0]}:wrong` });
    const channel = client.channels.get(channelName());
    const attached = errorOf(channel.attach());
    const published = errorOf(channel.publish('one', '1'));
    expect((await attached).code).toBe(40101);
    expect((await published).code).toBe(40101);
    expect(client.connection.errorReason.code).toBe(40101);
  });
});

test('a malformed key is refused by the client itself', () => {
  expect(() => realtime({ key: 'not-a-key' })).toThrow(/key/);
});

test('the client follows the options for the identity, the echo and the encoding', async () => {
  const client = realtime({ clientId: 'ann', autoConnect: false, echoMessages: false, format: 'msgpack' });
  expect(client.connection.state).toBe('initialized');
  expect(client.auth.clientId).toBe('ann');
  client.connect();
  await reached(client, 'connected');
  expect(client.auth.clientId).toBe('ann');
});

test('unknown connection parameters are ignored', async () => {
  const client = await connected({ transportParams: { remainPresentFor: 0, unknown: 'x y&z' } });
  expect(client.connection.state).toBe('connected');
});

test('a browser reads HEARTBEAT frames in place of pings', async () => {
  const client = await connected({ transportParams: { heartbeats: true } });
  expect(await client.connection.ping()).toBeGreaterThanOrEqual(0);
});

async function failure(options: Parameters<typeof realtime>[0]): Promise<Ably.ErrorInfo | undefined> {
  return reached(realtime(options), 'failed');
}

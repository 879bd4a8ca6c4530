/** Channels: attach and detach, modes, parameters, rewind and names. */
import { describe, expect, test } from 'vitest';
import {
  Ably, FORMATS, channelName, connected, errorOf, expectExactly, keyWith, nextChannelEvent, reached, realtime, rest,
  subscribed,
} from './clients';

describe.each(FORMATS)('a channel in %s', (format) => {
  test('is attached and detached', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const states: string[] = [];
    channel.on((change) => states.push(change.current));
    const change = await channel.attach();
    expect(change).toMatchObject({ current: 'attached', resumed: false });
    expect(await channel.attach()).toBeNull();
    await channel.detach();
    await channel.detach();
    expect(states).toEqual(['attaching', 'attached', 'detaching', 'detached']);
  });

  test('can be attached again and again', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    for (const name of ['one', 'two', 'three']) {
      await channel.detach();
      await channel.attach();
      await channel.publish(name, null);
    }
    expect((await inbox.take(3)).map((message) => message.name)).toEqual(['one', 'two', 'three']);
  });

  test('is attached by many requests at once', async () => {
    const client = await connected({ format });
    const channels = Array.from({ length: 100 }, () => client.channels.get(channelName()));
    await Promise.all(channels.map((channel) => channel.attach()));
    expect(channels.every((channel) => channel.state === 'attached')).toBe(true);
    await Promise.all(channels.map((channel) => channel.detach()));
  });

  test('delivers nothing after it is detached', async () => {
    const [client, other] = await Promise.all([connected({ format }), connected({ format })]);
    const name = channelName();
    const channel = client.channels.get(name);
    const inbox = await subscribed(channel);
    await channel.publish('before', null);
    await inbox.next();
    await channel.detach();
    await other.channels.get(name).publish('between', null);
    await channel.attach();
    await expectExactly(inbox, channel, []);
  });

  test('attaches when the connection is established', async () => {
    const client = realtime({ format });
    const channel = client.channels.get(channelName());
    await channel.attach();
    expect(channel.state).toBe('attached');
  });

  test('is detached when the connection is closed', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    await channel.attach();
    client.close();
    await reached(client, 'closed');
    expect(channel.state).toBe('detached');
  });

  test('has all modes by default', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    await channel.attach();
    expect(modes(channel)).toEqual(['presence', 'presence_subscribe', 'publish', 'subscribe']);
  });

  test('has the requested modes only', async () => {
    const client = await connected({ format });
    const name = channelName();
    const channel = client.channels.get(name, { modes: ['PUBLISH'] });
    await channel.attach();
    expect(modes(channel)).toEqual(['publish']);
    const received: string[] = [];
    channel.subscribe((message) => received.push(String(message.name))).catch(() => undefined);
    const other = await connected({ format });
    const inbox = await subscribed(other.channels.get(name));
    await channel.publish('one', null);
    await inbox.next();
    await client.connection.ping();
    expect(received).toEqual([]);
  });

  test('without the mode for it rejects a publish and presence', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName(), { modes: ['SUBSCRIBE', 'PRESENCE_SUBSCRIBE'] });
    await channel.attach();
    expect(modes(channel)).toEqual(['presence_subscribe', 'subscribe']);
    expect((await errorOf(channel.publish('one', null))).code).toBe(40160);
    expect((await errorOf(channel.presence.enter())).code).toBe(40160);
    expect(channel.state).toBe('attached');
  });

  test('attaches again with other options', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await channel.setOptions({ modes: ['SUBSCRIBE'], params: { rewind: '1' } });
    expect(modes(channel)).toEqual(['subscribe']);
    await channel.setOptions({ modes: ['PUBLISH', 'SUBSCRIBE'] });
    expect(modes(channel)).toEqual(['publish', 'subscribe']);
    await channel.publish('one', null);
    expect((await inbox.next()).name).toBe('one');
  });

  test('returns the parameters that the hub honours', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName(), { params: { rewind: '2', unknown: 'x' } });
    await channel.attach();
    expect(channel.params).toEqual({ rewind: '2' });
  });

  test('rewinds by a number of messages', async () => {
    const client = await connected({ format });
    const name = channelName();
    const publisher = client.channels.get(name);
    for (const text of ['one', 'two', 'three']) await publisher.publish(text, text);
    const reader = await connected({ format });
    const channel = reader.channels.get(name, { params: { rewind: '2' } });
    const attached = nextChannelEvent(channel, 'attached');
    const inbox = await subscribed(channel);
    expect((await attached).hasBacklog).toBe(true);
    await publisher.publish('four', 'four');
    const messages = await inbox.take(3);
    expect(messages.map((message) => message.data)).toEqual(['two', 'three', 'four']);
  });

  test('rewinds by a duration, and by more messages than there are', async () => {
    const client = await connected({ format });
    const name = channelName();
    await client.channels.get(name).publish([{ name: 'one' }, { name: 'two' }]);
    for (const rewind of ['2m', '15s', '100']) {
      const reader = await connected({ format });
      const inbox = await subscribed(reader.channels.get(name, { params: { rewind } }));
      expect((await inbox.take(2)).map((message) => message.name)).toEqual(['one', 'two']);
    }
  });

  test('has no backlog if there is nothing to rewind', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName(), { params: { rewind: '2' } });
    const attached = nextChannelEvent(channel, 'attached');
    await channel.attach();
    expect((await attached).hasBacklog ?? false).toBe(false);
  });

  test('rewinds by a qualifier in its name', async () => {
    const client = await connected({ format });
    const name = channelName();
    await client.channels.get(name).publish('one', null);
    const reader = await connected({ format });
    const inbox = await subscribed(reader.channels.get(`[?rewind=1]${name}`));
    expect((await inbox.next()).name).toBe('one');
  });

  test('with an invalid name fails', async () => {
    const client = await connected({ format });
    for (const name of ['', ':', ':room', '[unknown]room', '[?rewind=1', `long-${'x'.repeat(2000)}`]) {
      const channel = client.channels.get(name);
      const error = await errorOf(channel.attach());
      expect([name.slice(0, 20), error.code]).toEqual([name.slice(0, 20), 40010]);
      expect(channel.state).toBe('failed');
      expect(channel.errorReason.code).toBe(40010);
      expect((await errorOf(client.channels.get(`${name}`).publish('one', null))).code).not.toBe(0);
    }
    expect(client.connection.state).toBe('connected');
  });

  test('never shares its messages with a similar name', async () => {
    const client = await connected({ format });
    const base = channelName();
    const names = ['a/b', 'a%2Fb', 'a*', 'a', 'A', 'a b', 'a%', 'ä', 'a\u0001', 'a:b', 'a?x=1', 'a#b', '../a', 'a/../b'];
    const channels = names.map((name) => client.channels.get(`${base}${name}`));
    const inboxes = await Promise.all(channels.map((channel) => subscribed(channel)));
    await Promise.all(channels.map((channel, at) => channel.publish(`m${at}`, names[at])));
    for (const [at, inbox] of inboxes.entries()) {
      const channel = channels[at];
      if (channel !== undefined) await expectExactly(inbox, channel, [`m${at}`]);
      const page = await rest({ format }).channels.get(`${base}${names[at]}`).history();
      expect(page.items.map((item) => item.data).filter((data) => data !== undefined)).toEqual([names[at]]);
    }
  });
});

describe.each(FORMATS)('with a limited key in %s', (format) => {
  test('a channel without permission fails', async () => {
    const allowed = channelName();
    const client = await connected({ format, key: await keyWith({ [allowed]: ['*'] }) });
    await client.channels.get(allowed).attach();
    const channel = client.channels.get(channelName());
    const error = await errorOf(channel.attach());
    expect(error).toMatchObject({ code: 40160, statusCode: 401 });
    expect(channel.state).toBe('failed');
    expect(client.connection.state).toBe('connected');
  });

  test('the modes follow the capability', async () => {
    const name = channelName();
    const client = await connected({ format, key: await keyWith({ [name]: ['subscribe'] }) });
    const channel = client.channels.get(name);
    await channel.attach();
    expect(modes(channel)).toEqual(['presence_subscribe', 'subscribe']);
    expect((await errorOf(channel.publish('one', null))).code).toBe(40160);
    expect(client.connection.state).toBe('connected');
  });

  test('a namespace permits its channels', async () => {
    const space = channelName('space');
    const client = await connected({ format, key: await keyWith({ [`${space}:*`]: ['publish', 'subscribe'] }) });
    const channel = client.channels.get(`${space}:a`);
    const inbox = await subscribed(channel);
    await channel.publish('one', null);
    expect((await inbox.next()).name).toBe('one');
    expect((await errorOf(client.channels.get(space).attach())).code).toBe(40160);
    expect((await errorOf(client.channels.get(`${space}x:a`).attach())).code).toBe(40160);
  });

  test('a publish without attaching needs the capability', async () => {
    const name = channelName();
    const client = await connected({ format, key: await keyWith({ [name]: ['subscribe'] }) });
    expect((await errorOf(client.channels.get(name).publish('one', null))).code).toBe(40160);
    expect((await errorOf(client.channels.get(channelName()).publish('one', null))).code).toBe(40160);
    const publisher = await connected({ format, key: await keyWith({ [name]: ['publish'] }) });
    await publisher.channels.get(name).publish('one', null);
  });
});

test('the room of another program is no channel of a key for some channels', async () => {
  const client = await connected({ key: await keyWith({ 'test-*': ['*'], 'chat:*': ['*'] }) });
  expect((await errorOf(client.channels.get('jaibber:project:unknown').attach())).code).toBe(40160);
  expect((await errorOf(client.channels.get('jaibber:presence').attach())).code).toBe(40160);
});

test('an unknown room cannot be attached', async () => {
  const client = await connected();
  const error = await errorOf(client.channels.get('jaibber:project:unknown').attach());
  expect([40160, 40400]).toContain(error.code);
  expect(client.connection.state).toBe('connected');
});

function modes(channel: Ably.RealtimeChannel): string[] {
  return channel.modes.map((mode) => mode.toLowerCase()).sort();
}

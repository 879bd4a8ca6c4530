/** Lost connections: resume with replay, recovery, and messages in flight. */
import { describe, expect, test } from 'vitest';
import {
  FORMATS, Inbox, channelName, connected, expectExactly, nextChannelEvent, nextEvent, reached, realtime, subscribed, wire,
  type Ably, type Messages,
} from './clients';

describe.each(FORMATS)('in %s', (format) => {
  test('a resumed connection receives the messages that it missed, once', async () => {
    const proxy = await wire();
    const [client, publisher] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const channel = client.channels.get(name);
    const inbox = await subscribed(channel);
    const id = client.connection.id;
    const source = publisher.channels.get(name);
    await source.publish('before', null);
    await inbox.next();
    proxy.refuse();
    for (const text of ['one', 'two', 'three']) await source.publish(text, null);
    const update = nextChannelEvent(channel, 'update');
    const attached = nextChannelEvent(channel, 'attached');
    proxy.accept();
    await reached(client, 'connected');
    const change = await Promise.race([update, attached]);
    expect(change.resumed).toBe(true);
    expect(client.connection.id).toBe(id);
    await expectExactly(inbox, source, ['one', 'two', 'three']);
  });

  test('many channels are resumed', async () => {
    const proxy = await wire();
    const [client, publisher] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const names = Array.from({ length: 20 }, () => channelName());
    const inboxes = await Promise.all(names.map((name) => subscribed(client.channels.get(name))));
    proxy.refuse();
    for (const name of names) await publisher.channels.get(name).publish(name, null);
    proxy.accept();
    for (const [at, inbox] of inboxes.entries()) expect((await inbox.next()).name).toBe(names[at]);
    for (const [at, inbox] of inboxes.entries()) await expectExactly(inbox, publisher.channels.get(names[at] ?? ''), []);
  });

  test('a long backlog is replayed in order', async () => {
    const proxy = await wire();
    const [client, publisher] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const inbox = await subscribed(client.channels.get(name));
    proxy.refuse();
    const channel = publisher.channels.get(name);
    const expected = Array.from({ length: 1500 }, (_, at) => `m${at}`);
    await Promise.all(expected.map((text) => channel.publish(text, null)));
    proxy.accept();
    expect((await inbox.take(1500)).map((message) => message.name)).toEqual(expected);
    await expectExactly(inbox, channel, []);
  });

  test('messages without an acknowledgement are published once', async () => {
    const proxy = await wire();
    const [client, reader] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const inbox = await subscribed(reader.channels.get(name));
    const channel = client.channels.get(name);
    await channel.attach();
    // The hub receives and delivers the messages, but its acknowledgements do not arrive.
    proxy.hold();
    const names = ['one', 'two', 'three'];
    const published = names.map((text) => channel.publish(text, null));
    await inbox.take(3);
    proxy.cut();
    const serials = (await Promise.all(published)).flatMap((result) => result.serials);
    expect(serials).toEqual(inbox.all.map((message) => message.serial));
    await expectExactly(inbox, reader.channels.get(name), []);
    await channel.publish('four', null);
    expect((await inbox.next()).name).toBe('four');
  });

  test('messages that are published without a connection arrive after the resume', async () => {
    const proxy = await wire();
    const [client, reader] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const inbox = await subscribed(reader.channels.get(name));
    const channel = client.channels.get(name);
    await channel.attach();
    proxy.refuse();
    await reached(client, 'disconnected');
    const published = ['one', 'two'].map((text) => channel.publish(text, null));
    proxy.accept();
    await Promise.all(published);
    await expectExactly(inbox, channel, ['one', 'two']);
  });

  test('nothing is lost or repeated while the socket is cut again and again', async () => {
    const proxy = await wire();
    const [client, publisher] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const inbox = await subscribed(client.channels.get(name));
    const channel = publisher.channels.get(name);
    const expected = Array.from({ length: 300 }, (_, at) => `m${at}`);
    const received: (string | undefined)[] = [];
    for (let round = 0; round < 10; round += 1) {
      const part = expected.slice(round * 30, round * 30 + 30);
      const publishing = Promise.all(part.map((text) => channel.publish(text, null)));
      proxy.cut();
      await publishing;
      received.push(...(await inbox.take(30)).map((message) => message.name));
    }
    expect(received).toEqual(expected);
    await expectExactly(inbox, channel, []);
  });

  test('another client recovers a connection', async () => {
    const proxy = await wire();
    const [client, publisher] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const inbox = await subscribed(client.channels.get(name));
    const source = publisher.channels.get(name);
    await source.publish('before', null);
    await inbox.next();
    const recover = client.connection.createRecoveryKey();
    const id = client.connection.id;
    if (recover === null) throw new Error('a recovery key');
    expect(Object.keys(JSON.parse(recover) as object).sort()).toEqual(['channelSerials', 'connectionKey', 'msgSerial']);
    proxy.refuse();
    await source.publish('missed', null);
    const second = realtime({ format, recover });
    await reached(second, 'connected');
    expect(second.connection.id).toBe(id);
    expect(second.connection.errorReason ?? null).toBeNull();
    const recovered: Messages = new Inbox();
    await second.channels.get(name).subscribe(recovered.push);
    await expectExactly(recovered, source, ['missed']);
    await second.channels.get(name).publish('by the second client', null);
    expect((await recovered.next()).connectionId).toBe(id);
  });

  test('an unknown recovery key begins a new connection', async () => {
    const key = JSON.stringify({ connectionKey: 'unknown!key', msgSerial: 3, channelSerials: {} });
    const client = realtime({ format, recover: key });
    const event = nextEvent(client, 'connected');
    expect((await event).reason?.code).toBe(80018);
    expect(client.connection.id).not.toBe('unknown');
    await client.channels.get(channelName()).publish('one', null);
  });

  test('a forged connection key begins a new connection', async () => {
    const [victim, client] = await Promise.all([connected({ format }), connected({ format })]);
    const forged = `${victim.connection.id}!${client.connection.key?.split('!')[1]}`;
    const thief = realtime({ format, recover: JSON.stringify({ connectionKey: forged, msgSerial: 0, channelSerials: {} }) });
    expect((await nextEvent(thief, 'connected')).reason?.code).toBe(80018);
    expect(thief.connection.id).not.toBe(victim.connection.id);
    expect(await victim.connection.ping()).toBeGreaterThanOrEqual(0);
  });

  test('a closed connection cannot be recovered', async () => {
    const client = await connected({ format });
    const recover = client.connection.createRecoveryKey();
    const id = client.connection.id;
    client.close();
    await reached(client, 'closed');
    if (recover === null) throw new Error('a recovery key');
    const second = realtime({ format, recover });
    const change: Ably.ConnectionStateChange = await nextEvent(second, 'connected');
    expect([80008, 80018]).toContain(change.reason?.code);
    expect(second.connection.id).not.toBe(id);
  });

  test('a channel that was detached is not resumed', async () => {
    const proxy = await wire();
    const client = await connected({ format, port: proxy.port });
    const channel = client.channels.get(channelName());
    await channel.attach();
    await channel.detach();
    const again = nextEvent(client, 'connected');
    proxy.cut();
    await again;
    expect(channel.state).toBe('detached');
    expect((await channel.attach())?.resumed).toBe(false);
  });

  test('a rewind is not repeated by a resume', async () => {
    const proxy = await wire();
    const [client, publisher] = await Promise.all([connected({ format, port: proxy.port }), connected({ format })]);
    const name = channelName();
    const source = publisher.channels.get(name);
    await source.publish('one', null);
    const inbox = await subscribed(client.channels.get(name, { params: { rewind: '10' } }));
    expect((await inbox.next()).name).toBe('one');
    const again = nextEvent(client, 'connected');
    proxy.cut();
    await again;
    await expectExactly(inbox, source, []);
  });
});

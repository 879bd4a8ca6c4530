/** Publishing and subscribing. */
import { describe, expect, test } from 'vitest';
import {
  FORMATS, PAIRS, Inbox, channelName, connected, errorOf, expectExactly, keyWith, subscribed, type Ably, type Messages,
} from './clients';

describe.each(FORMATS)('in %s', (format) => {
  test('a message has an id, a serial, a time and its connection', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const begin = Date.now();
    const published = await channel.publish('greeting', 'hello');
    const message = await inbox.next();
    const connectionId = client.connection.id;
    expect(message).toMatchObject({ name: 'greeting', data: 'hello', clientId: 'ann', connectionId, action: 'message.create' });
    expect(message.id).toMatch(new RegExp(`^${connectionId}:\\d+:0$`));
    expect(published.serials).toEqual([message.serial]);
    expect(message.version.serial).toBe(message.serial);
    expect(Math.abs(message.timestamp - begin)).toBeLessThan(60_000);
    expect(message.encoding ?? null).toBeNull();
  });

  test('messages of one frame keep their order and have ids of their own', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const batch = Array.from({ length: 50 }, (_, at) => ({ name: `m${at}`, data: { at } }));
    const { serials } = await channel.publish(batch);
    const messages = await inbox.take(50);
    expect(messages.map((message) => message.name)).toEqual(batch.map((message) => message.name));
    expect(messages.map((message) => message.serial)).toEqual(serials);
    expect(new Set(messages.map((message) => message.id)).size).toBe(50);
    expect([...serials].sort()).toEqual(serials);
  });

  test('name and data may be absent', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await channel.publish({});
    await channel.publish({ name: 'only a name' });
    await channel.publish({ data: 'only data' });
    const messages = await inbox.take(3);
    expect(messages.map((message) => [message.name, message.data])).toEqual([
      [undefined, undefined],
      ['only a name', undefined],
      [undefined, 'only data'],
    ]);
  });

  test('extras pass unchanged', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const extras = { headers: { a: 'b', n: 1.5, list: [1, 'two', null, { deep: true }] } };
    await channel.publish({ name: 'one', extras });
    expect((await inbox.next()).extras).toEqual(extras);
  });

  test('the publisher does not receive its messages without echo', async () => {
    const [silent, other] = await Promise.all([connected({ format, echoMessages: false }), connected({ format })]);
    const name = channelName();
    const [own, received] = [await subscribed(silent.channels.get(name)), await subscribed(other.channels.get(name))];
    await silent.channels.get(name).publish('from silent', null);
    await other.channels.get(name).publish('from other', null);
    expect((await received.take(2)).map((message) => message.name)).toEqual(['from silent', 'from other']);
    expect((await own.next()).name).toBe('from other');
  });

  test('subscriptions select messages by name', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const [one, both]: [Messages, Messages] = [new Inbox(), new Inbox()];
    await channel.subscribe('one', one.push);
    await channel.subscribe(['one', 'two'], both.push);
    const all = await subscribed(channel);
    for (const name of ['zero', 'one', 'two']) await channel.publish(name, null);
    await all.take(3);
    expect(one.all.map((message) => message.name)).toEqual(['one']);
    expect(both.all.map((message) => message.name)).toEqual(['one', 'two']);
    channel.unsubscribe(one.push);
    channel.unsubscribe(['one'], both.push);
    for (const name of ['one', 'two']) await channel.publish(name, null);
    await all.take(2);
    expect(one.all.length).toBe(1);
    expect(both.all.map((message) => message.name)).toEqual(['one', 'two', 'two']);
  });

  test('subscriptions filter by client id and by references', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const [ofAnn, references]: [Messages, Messages] = [new Inbox(), new Inbox()];
    const all = await subscribed(channel);
    await channel.subscribe({ clientId: 'ann' }, ofAnn.push);
    await channel.subscribe({ isRef: true, refType: 'reply', refTimeserial: '123' } as Ably.MessageFilter, references.push);
    await channel.publish({ name: 'a', clientId: 'ann' });
    await channel.publish({ name: 'b', clientId: 'bob', extras: { ref: { type: 'reply', timeserial: '123' } } });
    await channel.publish({ name: 'c', extras: { ref: { type: 'reply', timeserial: '124' } } });
    await all.take(3);
    expect(ofAnn.all.map((message) => message.name)).toEqual(['a']);
    expect(references.all.map((message) => message.name)).toEqual(['b']);
  });

  test('a client with a wildcard identity publishes with any client id', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await channel.publish({ name: 'one', clientId: 'ann' });
    await channel.publish({ name: 'two' });
    expect((await inbox.take(2)).map((message) => message.clientId)).toEqual(['ann', undefined]);
  });

  test('a client with an identity cannot publish with another one', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const error = await errorOf(channel.publish({ name: 'forged', clientId: 'bob' }));
    expect(error.code).toBe(40012);
    await channel.publish({ name: 'own', clientId: 'ann' });
    await expectExactly(inbox, channel, ['own']);
    expect(inbox.all[0]?.clientId).toBe('ann');
  });

  test('one refused message refuses its whole frame', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const batch = [{ name: 'own' }, { name: 'forged', clientId: 'bob' }];
    expect((await errorOf(channel.publish(batch))).code).toBe(40012);
    await expectExactly(inbox, channel, []);
  });

  test('a message with a known id is delivered once', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const id = channelName('id');
    const first = await channel.publish({ name: 'first', id });
    const again = await channel.publish({ name: 'first', id });
    expect(again.serials).toEqual(first.serials);
    await expectExactly(inbox, channel, ['first']);
    expect(inbox.all[0]?.id).toBe(id);
  });

  test('a message over the limit is refused and the connection stays', async () => {
    const client = await connected({ format, maxMessageSize: 100 });
    const channel = client.channels.get(channelName());
    // The limit of the hub replaces that of the options.
    await channel.publish('one', 'x'.repeat(1000));
    expect(client.connection.state).toBe('connected');
  });

  test('two subscribers receive concurrent messages in the same order', async () => {
    const clients = await Promise.all([connected({ format }), connected({ format }), connected({ format })]);
    const name = channelName();
    const [first, second, third] = clients.map((client) => client.channels.get(name));
    if (first === undefined || second === undefined || third === undefined) throw new Error('three channels');
    const inboxes = await Promise.all([subscribed(first), subscribed(second), subscribed(third)]);
    const publishing = [first, second].map((channel, who) =>
      Promise.all(Array.from({ length: 100 }, (_, at) => channel.publish(`${who}-${at}`, null))),
    );
    await Promise.all(publishing);
    const received = await Promise.all(inboxes.map((inbox) => inbox.take(200)));
    const [names, ...others] = received.map((messages) => messages.map((message) => message.name));
    for (const other of others) expect(other).toEqual(names);
    for (const who of [0, 1]) {
      const own = names?.filter((text) => text?.startsWith(`${who}-`));
      expect(own).toEqual(Array.from({ length: 100 }, (_, at) => `${who}-${at}`));
    }
  });

  test('a key for other channels receives nothing', async () => {
    const name = channelName();
    const outsider = await connected({ format, key: await keyWith({ [channelName()]: ['*'] }) });
    expect((await errorOf(outsider.channels.get(name).subscribe(() => undefined))).code).toBe(40160);
  });
});

describe.each(PAIRS)('from %s to %s', (from, to) => {
  test('10,000 messages arrive in order and once', async () => {
    const [publisher, subscriber] = await Promise.all([connected({ format: from }), connected({ format: to })]);
    const name = channelName();
    const inbox = await subscribed(subscriber.channels.get(name));
    const channel = publisher.channels.get(name);
    const count = from === to ? 2_000 : 10_000;
    const acknowledged: Promise<Ably.PublishResult>[] = [];
    for (let at = 0; at < count; at += 1) acknowledged.push(channel.publish('n', String(at)));
    const serials = (await Promise.all(acknowledged)).flatMap((result) => result.serials);
    const messages = await inbox.take(count);
    expect(messages.map((message) => Number(message.data))).toEqual(Array.from({ length: count }, (_, at) => at));
    expect(messages.map((message) => message.serial)).toEqual(serials);
    expect(new Set(serials).size).toBe(count);
  });
});

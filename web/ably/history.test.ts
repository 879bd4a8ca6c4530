/** History of channels, over the realtime client and over REST. */
import { describe, expect, test } from 'vitest';
import { Ably, FORMATS, channelName, connected, errorOf, keyWith, rest, subscribed } from './clients';

type Channel = Pick<Ably.Channel, 'history' | 'name'>;

describe.each(FORMATS)('in %s', (format) => {
  test('a new channel has no history', async () => {
    const page = await rest({ format }).channels.get(channelName()).history();
    expect(page.items).toEqual([]);
    expect([page.hasNext(), page.isLast()]).toEqual([false, true]);
    expect(await page.next()).toBeNull();
  });

  test('the newest message is first by default', async () => {
    for (const channel of await filled(format, 5)) {
      expect(names((await channel.history()).items)).toEqual(['m4', 'm3', 'm2', 'm1', 'm0']);
      expect(names((await channel.history({ direction: 'backwards' })).items)[0]).toBe('m4');
      expect(names((await channel.history({ direction: 'forwards' })).items)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4']);
    }
  });

  test('pages follow each other in both directions', async () => {
    for (const channel of await filled(format, 7)) {
      const all = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6'];
      expect(await pages(channel, { direction: 'forwards', limit: 3 })).toEqual([all.slice(0, 3), all.slice(3, 6), all.slice(6)]);
      const back = [...all].reverse();
      expect(await pages(channel, { limit: 3 })).toEqual([back.slice(0, 3), back.slice(3, 6), back.slice(6)]);
      expect((await pages(channel, { limit: 7 }))[0]).toEqual(back);
    }
  });

  test('a page returns to the first and to the current one', async () => {
    for (const channel of await filled(format, 4)) {
      const first = await channel.history({ limit: 2 });
      const second = await first.next();
      if (second === null) throw new Error('a second page');
      expect(names((await second.first()).items)).toEqual(['m3', 'm2']);
      expect(names((await second.current()).items)).toEqual(['m1', 'm0']);
      expect([first.hasNext(), second.hasNext(), second.isLast()]).toEqual([true, false, true]);
    }
  });

  test('messages of one frame are in order and paged like others', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    await channel.publish([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    await channel.publish('d', null);
    expect((await pages(channel, { direction: 'forwards', limit: 2 })).flat()).toEqual(['a', 'b', 'c', 'd']);
    expect((await pages(channel, { limit: 2 })).flat()).toEqual(['d', 'c', 'b', 'a']);
  });

  test('a page has the messages between two times, inclusive', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const times: number[] = [];
    for (const name of ['one', 'two', 'three']) {
      await channel.publish(name, null);
      const { timestamp } = await inbox.next();
      times.push(timestamp);
      // The next message has a later time, because the time of the hub advances while this waits for it.
      while ((await client.time()) <= timestamp + 1);
    }
    const [one, two, three] = times;
    expect(names((await channel.history({ start: two })).items)).toEqual(['three', 'two']);
    expect(names((await channel.history({ end: two })).items)).toEqual(['two', 'one']);
    expect(names((await channel.history({ start: two, end: two })).items)).toEqual(['two']);
    expect(names((await channel.history({ start: one, end: three, direction: 'forwards' })).items)).toEqual(['one', 'two', 'three']);
    expect((await channel.history({ start: (three ?? 0) + 1 })).items).toEqual([]);
  });

  test('invalid parameters are refused', async () => {
    const channel = rest({ format }).channels.get(channelName());
    const invalid: Ably.RestHistoryParams[] = [{ limit: 0 }, { limit: 1001 }, { start: 2, end: 1 }, { start: -1 }];
    for (const params of invalid) {
      expect(await errorOf(channel.history(params))).toMatchObject({ code: 40003, statusCode: 400 });
    }
  });

  test('the history until the attachment continues in the live messages', async () => {
    const client = await connected({ format });
    const name = channelName();
    const publisher = client.channels.get(name);
    for (const text of ['one', 'two', 'three']) await publisher.publish(text, null);
    const reader = await connected({ format });
    const channel = reader.channels.get(name);
    const inbox = await subscribed(channel);
    for (const text of ['four', 'five']) await publisher.publish(text, null);
    const live = names(await inbox.take(2));
    const before = await pages(channel, { untilAttach: true, limit: 2 });
    expect(before).toEqual([['three', 'two'], ['one']]);
    expect(live).toEqual(['four', 'five']);
  });

  test('the history until the attachment needs one', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    expect((await errorOf(channel.history({ untilAttach: true }))).code).toBe(40000);
  });

  test('messages in the history equal the delivered ones', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await channel.publish([{ name: 'a', data: { x: 1 }, clientId: 'ann', extras: { headers: { k: 'v' } } }, { name: 'b' }]);
    const live = await inbox.take(2);
    const { items } = await channel.history({ direction: 'forwards' });
    for (const [at, message] of live.entries()) {
      const { id, name, data, clientId, connectionId, timestamp, serial, extras, action } = message;
      expect(items[at]).toMatchObject({ id, name, data, serial, timestamp, action });
      expect([items[at]?.clientId, items[at]?.connectionId, items[at]?.extras]).toEqual([clientId, connectionId, extras]);
    }
  });

  test('history needs the capability for it', async () => {
    const name = channelName();
    const limited = rest({ format, key: await keyWith({ [name]: ['publish', 'subscribe'] }) });
    expect(await errorOf(limited.channels.get(name).history())).toMatchObject({ code: 40160, statusCode: 401 });
    const reader = rest({ format, key: await keyWith({ [name]: ['history'] }) });
    expect((await reader.channels.get(name).history()).items).toEqual([]);
    expect(await errorOf(reader.channels.get(channelName()).history())).toMatchObject({ code: 40160 });
  });
});

/** Publishes `m0`, `m1`, …, and returns the channel of a realtime and of a REST client. */
async function filled(format: (typeof FORMATS)[number], count: number): Promise<Channel[]> {
  const client = await connected({ format });
  const channel = client.channels.get(channelName());
  for (let at = 0; at < count; at += 1) await channel.publish(`m${at}`, null);
  return [channel, rest({ format }).channels.get(channel.name)];
}

async function pages(channel: Channel, params: Ably.RealtimeHistoryParams): Promise<(string | undefined)[][]> {
  const found: (string | undefined)[][] = [];
  let page: Ably.PaginatedResult<Ably.InboundMessage> | null = await channel.history(params);
  while (page !== null) {
    found.push(names(page.items));
    page = await page.next();
  }
  return found;
}

function names(messages: Ably.Message[]): (string | undefined)[] {
  return messages.map((message) => message.name);
}

/** A hub that is killed and started again on the same data, with clients that stay. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Hub } from '../flows/hub';
import {
  FORMATS, channelName, clientIds, connected, expectExactly, nextChannelEvent, nextEvent, reached, subscribed, watching, type Ably,
  type Options,
} from './clients';
import { makeKey } from './keys';

describe.each(FORMATS)('in %s', (format) => {
  let hub: Hub;
  let given: Options;

  beforeEach(async () => {
    hub = await Hub.withAdmin();
    const admin = await hub.signIn('admin');
    given = { format, url: hub.url, key: await makeKey(hub.url, admin.token) };
  });
  afterEach(() => hub.remove());

  test('connections continue after a restart of the hub', async () => {
    const [client, publisher] = await Promise.all([
      connected({ ...given, clientId: 'ann' }),
      connected({ ...given, useBinaryProtocol: format !== 'msgpack' }),
    ]);
    const name = channelName();
    const channel = client.channels.get(name);
    const source = publisher.channels.get(name);
    const inbox = await subscribed(channel);
    const changes = await watching(source);
    await channel.presence.enter('data');
    await changes.next();
    await source.publish('before', null);
    await inbox.next();
    const ids = [client.connection.id, publisher.connection.id];

    const attached = continued(channel);
    await hub.kill();
    await Promise.all([lost(client), lost(publisher)]);
    const between = source.publish('between', null);
    await hub.start();
    await Promise.all([reached(client, 'connected'), reached(publisher, 'connected')]);
    await between;

    expect((await attached).resumed).toBe(true);
    expect([client.connection.id, publisher.connection.id]).toEqual(ids);
    await source.publish('after', null);
    await expectExactly(inbox, source, ['between', 'after']);
    // The client enters again by itself.
    await expect.poll(async () => clientIds(await source.presence.get())).toEqual(['ann']);
  });

  test('messages in flight are published once', async () => {
    const [client, reader] = await Promise.all([connected(given), connected(given)]);
    const name = channelName();
    const inbox = await subscribed(reader.channels.get(name));
    const channel = client.channels.get(name);
    await channel.attach();
    const names = Array.from({ length: 200 }, (_, at) => `m${at}`);
    const publishing = Promise.all(names.map((text) => channel.publish(text, null)));
    await inbox.take(1);
    await hub.kill();
    await hub.start();
    await publishing;
    const received = ['m0', ...(await inbox.take(199)).map((message) => message.name)];
    expect(received).toEqual(names);
    await expectExactly(inbox, channel, []);
    const history = await channel.history({ direction: 'forwards', limit: 1000 });
    expect(history.items.map((message) => message.name).slice(0, 200)).toEqual(names);
  });
});

function lost(client: Ably.Realtime): Promise<unknown> {
  return client.connection.state === 'connected' ? nextEvent(client, 'disconnected') : Promise.resolve();
}

/** Waits until the hub has attached the channel again. */
function continued(channel: Ably.RealtimeChannel): Promise<Ably.ChannelStateChange> {
  return Promise.race([nextChannelEvent(channel, 'update'), nextChannelEvent(channel, 'attached')]);
}

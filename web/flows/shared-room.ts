/** Test setup with two signed-in users, Ada and Grace, and an agent in one room. */
import type { Browser } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';
import { setUpBrowser, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub, type Account } from './hub';

export const AGENT = { id: 'coder', name: 'Coder' };

export interface SharedRoom {
  hub: Hub;
  browser: Browser;
  admin: Account;
  room: string;
  gateway: Gateway;
  ada: Tab;
  grace: Tab;
}

export function setUpSharedRoom(): SharedRoom {
  // Filled by `beforeEach`, before the test reads it.
  const shared = {} as SharedRoom;
  beforeEach(async () => {
    const { browser } = shared;
    const hub = await Hub.withAdmin();
    const admin = await hub.signIn('admin');
    const people = await Promise.all([
      hub.addUser(admin, 'ada', 'Ada Lovelace'),
      hub.addUser(admin, 'grace', 'Grace Hopper'),
    ]);
    const room = await hub.createRoom(admin, 'Kitchen', people);
    const gateway = await Gateway.connect(hub, admin, AGENT);
    await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: AGENT.id, memberType: 'agent' });
    const [ada, grace] = await Promise.all([Tab.signedIn(browser, hub, 'ada'), Tab.signedIn(browser, hub, 'grace')]);
    await Promise.all([ada.enter('Kitchen'), grace.enter('Kitchen')]);
    Object.assign(shared, { hub, admin, room, gateway, ada, grace });
  });
  afterEach(async () => {
    shared.gateway.close();
    await shared.hub.remove();
  });
  // `afterEach` hooks run in reverse order, so the tabs are closed before their hub is stopped.
  setUpBrowser(shared);
  return shared;
}

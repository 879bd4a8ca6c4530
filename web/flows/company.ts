/** Ada and Grace in one room with an agent: the stage of everything that several people see. */
import type { Browser } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';
import { inBrowser, Tab } from './browser';
import { Gateway } from './gateway';
import { Hub, type Person } from './hub';

export const AGENT = { id: 'coder', name: 'Coder' };

export interface Company {
  hub: Hub;
  browser: Browser;
  admin: Person;
  room: string;
  gateway: Gateway;
  ada: Tab;
  grace: Tab;
}

export function inCompany(): Company {
  // Filled before anybody looks: tests run behind their hooks.
  const company = {} as Company;
  beforeEach(async () => {
    const { browser } = company;
    const hub = await Hub.withAdmin();
    const admin = await hub.signIn('admin');
    const people = await Promise.all([
      hub.addPerson(admin, 'ada', 'Ada Lovelace'),
      hub.addPerson(admin, 'grace', 'Grace Hopper'),
    ]);
    const room = await hub.makeRoom(admin, 'Kitchen', people);
    const gateway = await Gateway.connect(hub, admin, AGENT);
    await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: AGENT.id, memberType: 'agent' });
    const [ada, grace] = await Promise.all([Tab.signedIn(browser, hub, 'ada'), Tab.signedIn(browser, hub, 'grace')]);
    await Promise.all([ada.enter('Kitchen'), grace.enter('Kitchen')]);
    Object.assign(company, { hub, admin, room, gateway, ada, grace });
  });
  afterEach(async () => {
    company.gateway.close();
    await company.hub.remove();
  });
  // Hooks of this kind run backwards: tabs are closed before their hub ends.
  inBrowser(company);
  return company;
}

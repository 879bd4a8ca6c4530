/** Test setup with a new hub for each test and one browser for all tests of a file. */
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';
import { setUpBrowser, Tab } from './browser';
import { PASSWORD, type Hub } from './hub';

export interface FlowContext {
  hub: Hub;
  browser: Browser;
}

export function setUpFlow(start: () => Promise<Hub>): FlowContext {
  // Filled by `beforeEach`, before the test reads it.
  const flow = {} as FlowContext;
  beforeEach(async () => {
    flow.hub = await start();
  });
  afterEach(() => flow.hub.remove());
  // `afterEach` hooks run in reverse order, so the tabs are closed before their hub is stopped.
  setUpBrowser(flow);
  return flow;
}

/** Creates the admin account of Ada through the setup link of a fresh hub. */
export async function firstAdmin({ hub, browser }: FlowContext, options: BrowserContextOptions = {}): Promise<Tab> {
  const tab = await Tab.open(browser, await hub.setupLink(), options);
  await fillIn(tab);
  await tab.page.getByRole('button', { name: 'Create account' }).click();
  await tab.page.waitForURL('**/app/rooms/welcome');
  await tab.message(/Four things to try/).waitFor();
  return tab;
}

export async function fillIn({ page }: Tab): Promise<void> {
  await page.getByLabel('Username').fill('ada');
  await page.getByLabel('Display name').fill('Ada Lovelace');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
}

/** A hub for each test, gone with it, and a browser for all tests of a file. */
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';
import { inBrowser, Tab } from './browser';
import { PASSWORD, type Hub } from './hub';

export interface Stage {
  hub: Hub;
  browser: Browser;
}

export function onStage(start: () => Promise<Hub>): Stage {
  // Filled before anybody looks: tests run behind their hooks.
  const stage = {} as Stage;
  beforeEach(async () => {
    stage.hub = await start();
  });
  afterEach(() => stage.hub.remove());
  // Hooks of this kind run backwards: tabs are closed before their hub ends.
  inBrowser(stage);
  return stage;
}

/** Ada opens the link that a fresh hub prints, and takes it. */
export async function firstAdmin({ hub, browser }: Stage, options: BrowserContextOptions = {}): Promise<Tab> {
  const tab = await Tab.open(browser, await hub.setupLink(), options);
  await fillIn(tab);
  await tab.page.getByRole('button', { name: 'Open the hub' }).click();
  await tab.page.waitForURL('**/app/rooms/welcome');
  await tab.said(/Four things to try/).waitFor();
  return tab;
}

export async function fillIn({ page }: Tab): Promise<void> {
  await page.getByLabel('Name for signing in').fill('ada');
  await page.getByLabel('Name that others see').fill('Ada Lovelace');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
}

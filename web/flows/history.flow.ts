import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setUpBrowser, Tab } from './browser';
import { Hub, type Account } from './hub';

const MESSAGES = 160;

const flow = {} as { browser: Browser };
let hub: Hub;
let admin: Account;
let room: string;
const ids: string[] = [];

beforeAll(async () => {
  hub = await Hub.withAdmin();
  admin = await hub.signIn('admin');
  room = await hub.createRoom(admin, 'Archive', []);
  for (let number = 1; number <= MESSAGES; number += 1) {
    const content = `Message ${number}. ${'More words. '.repeat(number % 9)}`;
    const message = await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
    ids.push(String(message['id']));
  }
});
afterAll(() => hub.remove());
setUpBrowser(flow);

test('a room opens at its newest message, and loading older messages keeps the scroll position', async () => {
  const tab = await Tab.signedIn(flow.browser, hub, 'admin');
  const { page } = tab;
  await tab.enter('Archive');
  await tab.message(`Message ${MESSAGES}.`).waitFor();
  await olderLoaded(page);
  expect(await distanceFromEnd(page)).toBeLessThan(5);
  // Scrolls up in steps of 300 px: the visible message must not move when older ones are inserted above it.
  for (let steps = 0; (await tab.message('Message 1.').count()) === 0; steps += 1) {
    expect(steps).toBeLessThan(200);
    const before = await middleMessage(page);
    await page.getByRole('log').evaluate((log) => log.scrollBy(0, -300));
    await olderLoaded(page);
    const after = await positionOf(page, before.label);
    if (after !== undefined) expect(Math.abs(after - before.top - 300)).toBeLessThan(30);
  }
  await page.getByText('This is the beginning of Archive.').waitFor();
  await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content: 'Something new' });
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await tab.message('Something new').waitFor();
});

test('a link to an old message loads and highlights it', async () => {
  const tab = await Tab.signedIn(flow.browser, hub, 'admin');
  await tab.page.goto(`${hub.url}/app/rooms/${room}/messages/${ids[4]}`);
  const message = tab.message('Message 5.');
  await message.waitFor();
  await expect.poll(() => message.evaluate((element) => element.className)).toContain('bg-warn-soft');
  await expect.poll(() => message.evaluate((element) => element.getBoundingClientRect().top)).toBeGreaterThan(0);
});

test('a link to a message sent from this tab highlights it', async () => {
  const tab = await Tab.signedIn(flow.browser, hub, 'admin');
  await tab.enter('Archive');
  await tab.send('Written in the page');
  const newest = async () => {
    const { items } = await hub.call(admin, 'GET', `/api/messages/rooms/${room}?limit=1`);
    return (items as { id: string; content: string }[])[0];
  };
  await expect.poll(async () => (await newest())?.content).toBe('Written in the page');
  await tab.page.goto(`${hub.url}/app/rooms/${room}/messages/${(await newest())?.id}`);
  await expect.poll(() => tab.message('Written in the page').getAttribute('class')).toContain('bg-warn-soft');
});

test.each([true, false])('the link to a message is copied (clipboard API available: %s)', async (isThere) => {
  const tab = await Tab.signedIn(flow.browser, hub, 'admin');
  const { page } = tab;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  // The clipboard API does not exist without TLS, as on a hub in a local network.
  if (!isThere) await page.addInitScript(() => Reflect.deleteProperty(Navigator.prototype, 'clipboard'));
  const link = `${hub.url}/app/rooms/${room}/messages/${ids[150]}`;
  await page.goto(link);
  const message = tab.message('Message 151.');
  await message.hover();
  await message.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Copy link' }).click();
  await tab.field.press('Control+v');
  await expect.poll(() => tab.field.inputValue()).toBe(link);
});

function distanceFromEnd(page: Page): Promise<number> {
  return page.getByRole('log').evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
}

/** Text and position of the message in the middle of the screen. */
async function middleMessage(page: Page): Promise<{ label: string; top: number }> {
  return page.getByRole('log').evaluate((log) => {
    const middle = log.getBoundingClientRect().top + log.clientHeight / 2;
    const rows = [...log.querySelectorAll('article')].filter((row) => row.getBoundingClientRect().bottom > middle);
    return { label: rows[0]?.innerText ?? '', top: rows[0]?.getBoundingClientRect().top ?? 0 };
  });
}

function positionOf(page: Page, label: string): Promise<number | undefined> {
  return page.getByRole('log').evaluate((log, text) => {
    const row = [...log.querySelectorAll('article')].find((article) => article.innerText === text);
    return row?.getBoundingClientRect().top;
  }, label);
}

/** Resolves when older messages are loaded and drawn, and the list has not moved for several frames. */
async function olderLoaded(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('[role=log]')?.getAttribute('aria-busy') === 'false');
  await page.getByRole('log').evaluate(async (log) => {
    // The list scrolls in several steps while it measures new rows.
    for (let still = 0, top = -1; still < 8; ) {
      await new Promise(requestAnimationFrame);
      still = log.scrollTop === top ? still + 1 : 0;
      top = log.scrollTop;
    }
  });
}

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inBrowser, Tab } from './browser';
import { Hub, type Person } from './hub';

const MESSAGES = 160;

const stage = {} as { browser: Browser };
let hub: Hub;
let admin: Person;
let room: string;
const ids: string[] = [];

beforeAll(async () => {
  hub = await Hub.withAdmin();
  admin = await hub.signIn('admin');
  room = await hub.makeRoom(admin, 'Archive', []);
  for (let number = 1; number <= MESSAGES; number += 1) {
    const content = `Message ${number}. ${'More words. '.repeat(number % 9)}`;
    const said = await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
    ids.push(String(said['id']));
  }
});
afterAll(() => hub.remove());
inBrowser(stage);

test('a room opens at its end, and older messages come without a jump', async () => {
  const tab = await Tab.signedIn(stage.browser, hub, 'admin');
  const { page } = tab;
  await tab.enter('Archive');
  await tab.said(`Message ${MESSAGES}.`).waitFor();
  expect(await distanceFromEnd(page)).toBeLessThan(5);
  // Page by page into the past, as a wheel does it; what is read must not move while more is put above it.
  for (let turns = 0; (await tab.said('Message 1.').count()) === 0; turns += 1) {
    expect(turns).toBeLessThan(200);
    const before = await reading(page);
    await page.getByRole('log').evaluate((log) => log.scrollBy(0, -300));
    await settled(page);
    const after = await positionOf(page, before.label);
    if (after !== undefined) expect(Math.abs(after - before.top - 300)).toBeLessThan(30);
  }
  await page.getByText('This is the beginning of Archive.').waitFor();
  await hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content: 'Something new' });
  await page.getByRole('button', { name: 'Newest' }).click();
  await tab.said('Something new').waitFor();
});

test('a link leads to its message, however old', async () => {
  const tab = await Tab.signedIn(stage.browser, hub, 'admin');
  await tab.page.goto(`${hub.url}/app/rooms/${room}/messages/${ids[4]}`);
  const message = tab.said('Message 5.');
  await message.waitFor();
  await expect.poll(() => message.evaluate((one) => one.className)).toContain('bg-warn-soft');
  await expect.poll(() => message.evaluate((one) => one.getBoundingClientRect().top)).toBeGreaterThan(0);
});

test('a link leads to what somebody wrote here, too', async () => {
  const tab = await Tab.signedIn(stage.browser, hub, 'admin');
  await tab.enter('Archive');
  await tab.say('Written in the page');
  const newest = async () => {
    const { items } = await hub.call(admin, 'GET', `/api/messages/rooms/${room}?limit=1`);
    return (items as { id: string; content: string }[])[0];
  };
  await expect.poll(async () => (await newest())?.content).toBe('Written in the page');
  await tab.page.goto(`${hub.url}/app/rooms/${room}/messages/${(await newest())?.id}`);
  await expect.poll(() => tab.said('Written in the page').getAttribute('class')).toContain('bg-warn-soft');
});

test.each([true, false])('the link to a message is copied; is there a clipboard: %s', async (isThere) => {
  const tab = await Tab.signedIn(stage.browser, hub, 'admin');
  const { page } = tab;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  // A hub on a local network may be reached without TLS: such pages have none.
  if (!isThere) await page.addInitScript(() => Reflect.deleteProperty(Navigator.prototype, 'clipboard'));
  const link = `${hub.url}/app/rooms/${room}/messages/${ids[150]}`;
  await page.goto(link);
  const message = tab.said('Message 151.');
  await message.hover();
  await message.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: 'Copy link' }).click();
  await tab.field.press('Control+v');
  await expect.poll(() => tab.field.inputValue()).toBe(link);
});

function distanceFromEnd(page: Page): Promise<number> {
  return page.getByRole('log').evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
}

/** The message in the middle of the screen, by what it says. */
async function reading(page: Page): Promise<{ label: string; top: number }> {
  return page.getByRole('log').evaluate((log) => {
    const middle = log.getBoundingClientRect().top + log.clientHeight / 2;
    const rows = [...log.querySelectorAll('article')].filter((row) => row.getBoundingClientRect().bottom > middle);
    return { label: rows[0]?.innerText ?? '', top: rows[0]?.getBoundingClientRect().top ?? 0 };
  });
}

function positionOf(page: Page, label: string): Promise<number | undefined> {
  return page.getByRole('log').evaluate((log, said) => {
    const row = [...log.querySelectorAll('article')].find((one) => one.innerText === said);
    return row?.getBoundingClientRect().top;
  }, label);
}

/** Until what was asked for is drawn. */
async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('[role=log]')?.getAttribute('aria-busy') === 'false');
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

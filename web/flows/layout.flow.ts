import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { Hub } from './hub';
import { openPalette, PAGES } from './pages';
import { firstAdmin, setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.fresh);

test('a phone shows one pane at a time, and no page is wider than the screen', async () => {
  const tab = await firstAdmin(flow, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const { page } = tab;
  await tab.send('@guide tool');
  await tab.message(/I used a pretend tool/).waitFor();
  await expectToFit(page);
  await page.getByRole('button', { name: 'Room details' }).tap();
  await page.getByRole('complementary', { name: 'Room details' }).waitFor();
  expect(await page.getByRole('log').count()).toBe(0);
  await expectToFit(page);
  await page.getByRole('button', { name: 'Close' }).tap();
  await page.getByRole('log').waitFor();
  await page.getByRole('button', { name: 'Room details' }).tap();
  await page.getByRole('complementary', { name: 'Room details' }).waitFor();
  await page.evaluate(() => history.back());
  await page.getByRole('log').waitFor();
  expect(await page.getByRole('complementary', { name: 'Room details' }).count()).toBe(0);
  expect(new URL(page.url()).pathname).toBe('/app/rooms/welcome');
  await page.getByRole('button', { name: 'Show rooms' }).tap();
  await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'welcome' }).waitFor();
  await expectToFit(page);
  // Buttons that appear on hover are always visible on touch screens.
  const menu = page.getByRole('button', { name: 'Options for welcome' });
  expect(await menu.evaluate((button) => getComputedStyle(button).opacity)).toBe('1');
  await menu.tap();
  await page.getByRole('menuitem', { name: 'Pin', exact: true }).tap();
  await page.getByRole('heading', { name: 'Pinned' }).waitFor();
  for (const [path, heading] of PAGES) {
    await page.goto(`${flow.hub.url}/app/${path}`);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    await expectToFit(page);
  }
});

test('the app can be used with the keyboard alone', async () => {
  const tab = await firstAdmin(flow);
  const { page } = tab;
  await openPalette(page);
  await page.keyboard.type('new room');
  await page.keyboard.press('Enter');
  await page.getByLabel('Name', { exact: true }).waitFor();
  await page.keyboard.type('Garden');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Garden', level: 1 }).waitFor();
  await expect.poll(() => isFocused(tab.field)).toBe(true);
  await page.keyboard.type('Hello :tad');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await tab.message('Hello 🎉').waitFor();
  await openPalette(page);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await expect.poll(() => isFocused(tab.field)).toBe(true);
  // From the message field to the newest message and its actions.
  await page.keyboard.press('ArrowUp');
  await expect.poll(() => isFocused(tab.message('Hello 🎉'))).toBe(true);
  await reach(page, page.getByRole('button', { name: 'More', exact: true }));
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('menu').evaluate((menu) => menu.contains(document.activeElement))).toBe(true);
  await reach(page, page.getByRole('menuitem', { name: 'Delete' }), 'ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Enter');
  await tab.message('Hello 🎉').waitFor({ state: 'detached' });
  await openPalette(page);
  await page.keyboard.type('welc');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'welcome', level: 1 }).waitFor();
  await expect.poll(() => isFocused(tab.field)).toBe(true);
  await page.keyboard.type('@guide permission');
  await page.keyboard.press('Enter');
  const card = page.getByRole('region', { name: /wants to use/ });
  await card.waitFor();
  await page.keyboard.press('Shift+Tab');
  await reach(page, card.getByRole('button', { name: 'Allow once' }), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await card.getByText('Allowed by Ada Lovelace').waitFor();
  await openPalette(page);
  await page.keyboard.type('agents');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
});

function isFocused(element: Locator): Promise<boolean> {
  return element.evaluate((element) => element === document.activeElement);
}

/** Presses `key` until `element` has the focus, at most 15 times. */
async function reach(page: Page, element: Locator, key = 'Tab'): Promise<void> {
  for (let presses = 0; !(await isFocused(element)); presses += 1) {
    expect(presses).toBeLessThan(15);
    await page.keyboard.press(key);
  }
}

async function expectToFit(page: Page): Promise<void> {
  const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  expect(scroll).toBeLessThanOrEqual(inner ?? 0);
}

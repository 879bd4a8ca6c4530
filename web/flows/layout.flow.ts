import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { Hub } from './hub';
import { openPalette, PAGES } from './places';
import { firstAdmin, onStage } from './stage';

const stage = onStage(Hub.fresh);

test('a phone shows one thing at a time, and nothing is wider than it', async () => {
  const tab = await firstAdmin(stage, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const { page } = tab;
  await tab.say('@guide tool');
  await tab.said(/I used a pretend tool/).waitFor();
  await expectToFit(page);
  await page.getByRole('button', { name: 'Room', exact: true }).tap();
  await page.getByRole('complementary', { name: 'Room' }).waitFor();
  expect(await page.getByRole('log').count()).toBe(0);
  await expectToFit(page);
  await page.getByRole('button', { name: 'Close' }).tap();
  await page.getByRole('log').waitFor();
  await page.getByRole('button', { name: 'Room', exact: true }).tap();
  await page.getByRole('complementary', { name: 'Room' }).waitFor();
  await page.evaluate(() => history.back());
  await page.getByRole('log').waitFor();
  expect(await page.getByRole('complementary', { name: 'Room' }).count()).toBe(0);
  expect(new URL(page.url()).pathname).toBe('/app/rooms/welcome');
  await page.getByRole('button', { name: 'Show rooms' }).tap();
  await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'welcome' }).waitFor();
  await expectToFit(page);
  // What a mouse finds by passing over it is there for fingers at once.
  const menu = page.getByRole('button', { name: 'Menu of the room welcome' });
  expect(await menu.evaluate((button) => getComputedStyle(button).opacity)).toBe('1');
  await menu.tap();
  await page.getByRole('menuitem', { name: 'Pin', exact: true }).tap();
  await page.getByRole('heading', { name: 'Pinned' }).waitFor();
  for (const [path, heading] of PAGES) {
    await page.goto(`${stage.hub.url}/app/${path}`);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    await expectToFit(page);
  }
});

test('everything can be done without a mouse', async () => {
  const tab = await firstAdmin(stage);
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
  await tab.said('Hello 🎉').waitFor();
  await openPalette(page);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await expect.poll(() => isFocused(tab.field)).toBe(true);
  // Up to what was said, and to what can be done with it.
  await page.keyboard.press('ArrowUp');
  await expect.poll(() => isFocused(tab.said('Hello 🎉'))).toBe(true);
  await reach(page, page.getByRole('button', { name: 'More', exact: true }));
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('menu').evaluate((menu) => menu.contains(document.activeElement))).toBe(true);
  await reach(page, page.getByRole('menuitem', { name: 'Delete' }), 'ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Enter');
  await tab.said('Hello 🎉').waitFor({ state: 'detached' });
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
  return element.evaluate((one) => one === document.activeElement);
}

/** As often as it takes, within reason. */
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

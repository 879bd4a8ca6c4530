import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { Hub } from './hub';
import { firstAdmin, onStage } from './stage';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const stage = onStage(Hub.fresh);

/** Every page beside the conversations, with the heading by which one knows that it is there. */
const PAGES: [string, string][] = [
  ['agents', 'Agents'],
  ['agents/guide', 'guide'],
  ['missions', 'Missions'],
  ['missions/welcome', 'Mission of welcome'],
  ['search?q=try', 'Search'],
  ['rooms/welcome/tasks', 'Tasks of welcome'],
  ['settings/account', 'Profile'],
  ['settings/security', 'Second factor'],
  ['settings/appearance', 'Appearance'],
  ['settings/keys', 'New key'],
  ['settings/people', 'Invite somebody'],
  ['settings/audit', 'Audit log'],
  ['settings/limits', 'Budgets of agents'],
  ['settings/hub', 'Hub'],
];

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
  await page.keyboard.press('Control+k');
  await page.keyboard.type('agents');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
});

const LOOKS = ['light', 'dark'] as const;
/** What fades in has no contrast yet, and a busy machine may look just then. */
const STILL = { reducedMotion: 'reduce' } as const;

test.each(LOOKS)('axe finds nothing serious around a conversation, in %s', async (colorScheme) => {
  const tab = await firstAdmin(stage, { colorScheme, ...STILL });
  const { page } = tab;
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Room', exact: true }).click();
  await page.getByRole('complementary', { name: 'Room' }).waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Close' }).click();
  await tab.say('@guide everything');
  const card = page.getByRole('region', { name: /wants to use/ });
  await card.waitFor();
  await expectAccessible(page);
  await card.getByRole('button', { name: 'Deny' }).click();
  await card.getByRole('textbox').waitFor();
  await expectAccessible(page);
  await card.getByRole('button', { name: 'Deny' }).click();
  await tab.said('That was everything.').waitFor();
  await page.getByText(/^Terminal of guide/).click();
  await expectAccessible(page);
  await openPalette(page);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await tab.said('That was everything.').focus();
  await tab.said('That was everything.').getByRole('button', { name: 'Show thread' }).press('Enter');
  await page.getByRole('complementary', { name: 'Thread' }).waitFor();
  await expectAccessible(page);
});

test.each(LOOKS)('axe finds nothing serious on the other pages, in %s', async (colorScheme) => {
  const { page } = await firstAdmin(stage, { colorScheme, ...STILL });
  for (const [path, heading] of PAGES) {
    await page.goto(`${stage.hub.url}/app/${path}`);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    await expectAccessible(page);
  }
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

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Find or do something' }).waitFor();
}

async function expectToFit(page: Page): Promise<void> {
  const [inner, scroll] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  expect(scroll).toBeLessThanOrEqual(inner ?? 0);
}

interface Axe {
  run: () => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }>;
}

async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: Axe }).axe.run());
  const serious = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
  expect(serious).toEqual([]);
}

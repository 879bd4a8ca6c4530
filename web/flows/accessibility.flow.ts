import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { Hub } from './hub';
import { go, openPalette, PAGES } from './pages';
import { firstAdmin, setUpFlow } from './flow-context';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const flow = setUpFlow(Hub.fresh);

const THEMES = ['light', 'dark'] as const;
/** Without animations: an element that is still fading in fails the contrast check. */
const REDUCED_MOTION = { reducedMotion: 'reduce' } as const;

test('axe finds no serious violation in a room, in the light and the dark theme', async () => {
  const tab = await firstAdmin(flow, REDUCED_MOTION);
  const { page } = tab;
  await page.evaluate(AXE);
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Room details' }).click();
  await page.getByRole('complementary', { name: 'Room details' }).waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Close' }).click();
  await tab.send('@guide everything');
  const card = page.getByRole('region', { name: /wants to use/ });
  await card.waitFor();
  await expectAccessible(page);
  await card.getByRole('button', { name: 'Deny' }).click();
  await card.getByRole('textbox').waitFor();
  await expectAccessible(page);
  await card.getByRole('button', { name: 'Deny' }).click();
  await tab.message('That was everything.').waitFor();
  await page.getByText(/^Terminal: guide/).click();
  await expectAccessible(page);
  await openPalette(page);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await tab.message('That was everything.').focus();
  await tab.message('That was everything.').getByRole('button', { name: 'View thread' }).press('Enter');
  await page.getByRole('complementary', { name: 'Thread' }).waitFor();
  await expectAccessible(page);
});

test('axe finds no serious violation on the other pages, in the light and the dark theme', async () => {
  const { page } = await firstAdmin(flow, REDUCED_MOTION);
  await page.evaluate(AXE);
  for (const [path, heading] of PAGES) {
    await go(page, path);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    await expectAccessible(page);
  }
});

interface Axe {
  run: () => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }>;
}

/**
 * Resolves when the page is drawn in its final colours. A theme change is a transition even with reduced
 * motion. It ends with the next frame, which takes long on a busy machine.
 */
async function settled(): Promise<void> {
  const frame = () => new Promise((drawn) => requestAnimationFrame(drawn));
  do {
    await frame();
    await frame();
  } while (document.getAnimations().some((animation) => animation.playState === 'running'));
}

/** Checks both themes: the page follows the colour scheme of the system. */
async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
    await page.evaluate(settled);
    const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: Axe }).axe.run());
    const serious = violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
    expect(serious).toEqual([]);
  }
}

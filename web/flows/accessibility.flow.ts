import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { Hub } from './hub';
import { go, openPalette, PAGES } from './places';
import { firstAdmin, onStage } from './stage';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const stage = onStage(Hub.fresh);

const LOOKS = ['light', 'dark'] as const;
/** What fades in has no contrast yet, and a busy machine may look just then. */
const STILL = { reducedMotion: 'reduce' } as const;

test('axe finds nothing serious around a conversation, in light and in dark', async () => {
  const tab = await firstAdmin(stage, STILL);
  const { page } = tab;
  await page.evaluate(AXE);
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

test('axe finds nothing serious on the other pages, in light and in dark', async () => {
  const { page } = await firstAdmin(stage, STILL);
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
 * Resolves when the page is drawn in its final colours. Also without motion a colour changes by a transition, which ends
 * with the next frame, and a busy machine takes long to draw one.
 */
async function settled(): Promise<void> {
  const frame = () => new Promise((drawn) => requestAnimationFrame(drawn));
  do {
    await frame();
    await frame();
  } while (document.getAnimations().some((animation) => animation.playState === 'running'));
}

/** In both looks: the page follows the system when it changes. */
async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of LOOKS) {
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

/** The pictures of the tour in `docs/tour.md`: `npm run tour`. A fresh hub, and what its guide really shows. */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { fillIn, onStage } from './stage';

const FOLDER = resolve(import.meta.dirname, '../../docs/tour');
const LOOK = { colorScheme: 'light', viewport: { width: 960, height: 640 }, reducedMotion: 'reduce' } as const;

const stage = onStage(Hub.fresh);

test('the pictures of the tour', async () => {
  mkdirSync(FOLDER, { recursive: true });
  const { hub, browser } = stage;
  const tab = await Tab.open(browser, await hub.setupLink(), LOOK);
  const { page } = tab;
  const shoot = async (name: string) => {
    await page.mouse.move(0, 0);
    await page.screenshot({ path: `${FOLDER}/${name}.png` });
  };
  await fillIn(tab);
  await shoot('1-first-run');
  await page.getByRole('button', { name: 'Open the hub' }).click();
  await tab.said(/Four things to try/).waitFor();
  await tab.said(/Four things to try/).locator('code').first().waitFor();
  await shoot('2-welcome');
  await tab.say('@guide permission');
  const card = page.getByRole('region', { name: /wants to use/ });
  await card.waitFor();
  await shoot('3-permission');
  await card.getByRole('button', { name: 'Allow once' }).click();
  await card.waitFor({ state: 'detached' });
  await tab.say('@guide question');
  const question = page.getByRole('region', { name: 'Question' });
  await question.getByRole('button').nth(1).click();
  await page.setViewportSize({ width: 960, height: 760 });
  await shoot('4-question');
  await page.setViewportSize(LOOK.viewport);
  await page.goto(`${hub.url}/app/agents`);
  await page.getByRole('button', { name: 'Add an agent' }).click();
  await page.getByLabel('What it is called here').fill('Coder');
  await page.getByRole('button', { name: 'Show the commands' }).click();
  await page.getByText('Waiting for Coder').waitFor();
  await shoot('5-add-an-agent');
});

/** Takes the screenshots of `docs/tour.md` (`npm run tour`): a fresh hub with the cards of the guide. */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { fillIn, setUpFlow } from './flow-context';

const FOLDER = resolve(import.meta.dirname, '../../docs/tour');
const CONTEXT_OPTIONS = { colorScheme: 'light', viewport: { width: 960, height: 640 }, reducedMotion: 'reduce' } as const;

const flow = setUpFlow(Hub.fresh);

test('takes the screenshots of the tour', async () => {
  mkdirSync(FOLDER, { recursive: true });
  const { hub, browser } = flow;
  const tab = await Tab.open(browser, await hub.setupLink(), CONTEXT_OPTIONS);
  const { page } = tab;
  const shoot = async (name: string) => {
    await page.mouse.move(0, 0);
    await page.screenshot({ path: `${FOLDER}/${name}.png` });
  };
  await fillIn(tab);
  await shoot('1-first-run');
  await page.getByRole('button', { name: 'Create account' }).click();
  await tab.message(/Four things to try/).waitFor();
  await tab.message(/Four things to try/).locator('code').first().waitFor();
  await shoot('2-welcome');
  await tab.send('@guide permission');
  const card = page.getByRole('region', { name: /wants to use/ });
  await card.waitFor();
  await shoot('3-permission');
  await card.getByRole('button', { name: 'Allow once' }).click();
  await card.waitFor({ state: 'detached' });
  await tab.send('@guide question');
  const question = page.getByRole('region', { name: 'Question' });
  await question.getByRole('button').nth(1).click();
  await page.setViewportSize({ width: 960, height: 760 });
  await shoot('4-question');
  await page.setViewportSize(CONTEXT_OPTIONS.viewport);
  await page.goto(`${hub.url}/app/agents`);
  await page.getByRole('button', { name: 'Add agent' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Coder');
  await page.getByRole('button', { name: 'Show setup commands' }).click();
  await page.getByText('Waiting for Coder').waitFor();
  await shoot('5-add-an-agent');
});

/** Where one can be on the page, and how one gets there. */
import type { Page } from 'playwright-core';

/** Every page beside the conversations, with the heading by which one knows that it is there. */
export const PAGES: [string, string][] = [
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

/** Within the page, as its links do it. */
export async function go(page: Page, path: string): Promise<void> {
  await page.evaluate((address) => {
    history.pushState(null, '', address);
    dispatchEvent(new PopStateEvent('popstate'));
  }, `/app/${path}`);
}

export async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Find or do something' }).waitFor();
}

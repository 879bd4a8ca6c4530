/** The pages of the app, and navigation between them. */
import type { Page } from 'playwright-core';

/** Path and heading of every page other than rooms. */
export const PAGES: [string, string][] = [
  ['agents', 'Agents'],
  ['agents/guide', 'guide'],
  ['missions', 'Missions'],
  ['missions/welcome', 'Mission for welcome'],
  ['search?q=try', 'Search'],
  ['rooms/welcome/tasks', 'Tasks in welcome'],
  ['settings/account', 'Profile'],
  ['settings/security', 'Two-factor authentication'],
  ['settings/appearance', 'Appearance'],
  ['settings/keys', 'New API key'],
  ['settings/people', 'Invite people'],
  ['settings/audit', 'Audit log'],
  ['settings/limits', 'Agent budgets'],
  ['settings/hub', 'Hub'],
];

/** Navigates without a page load, as links of the app do. */
export async function go(page: Page, path: string): Promise<void> {
  await page.evaluate((address) => {
    history.pushState(null, '', address);
    dispatchEvent(new PopStateEvent('popstate'));
  }, `/app/${path}`);
}

export async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Command palette' }).waitFor();
}

/** Debian's Chromium, and people in front of it. */
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core';
import { afterEach, expect } from 'vitest';
import { FRESH_PAGE_ARGUMENTS, useFreshPage } from './fresh-page';
import { PASSWORD, type Hub } from './hub';

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

export function startBrowser(): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...FRESH_PAGE_ARGUMENTS];
  return chromium.launch({ executablePath: EXECUTABLE, args });
}

/** What any tab of the test that runs complained about. */
const complaints: string[] = [];

/** No line in any console, of whichever page of whichever test. */
afterEach(() => {
  expect(complaints.splice(0)).toEqual([]);
});

/** For tests that try what must be complained about. */
export function expectComplaints(about: RegExp): void {
  const heard = complaints.splice(0);
  expect(heard).not.toEqual([]);
  for (const complaint of heard) expect(complaint).toMatch(about);
}

/** A tab of somebody. */
export class Tab {
  readonly page: Page;

  private constructor(page: Page) {
    this.page = page;
    page.setDefaultTimeout(60_000);
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (line) => {
      // That somebody is not signed in yet is an answer, not a mistake; and a hub that is gone cannot answer.
      const isNetwork = /Failed to load resource|WebSocket connection|net::ERR/.test(line.text());
      if ((line.type() === 'error' || line.type() === 'warning') && !isNetwork) complaints.push(line.text());
    });
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    await useFreshPage(context);
    const tab = new Tab(await context.newPage());
    await tab.page.goto(url);
    return tab;
  }

  static async signedIn(browser: Browser, hub: Hub, username: string, options: BrowserContextOptions = {}): Promise<Tab> {
    const tab = await Tab.open(browser, hub.url, options);
    await tab.page.getByLabel('Name for signing in').fill(username);
    await tab.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await tab.page.getByRole('navigation', { name: 'Rooms' }).or(tab.field).first().waitFor();
    return tab;
  }

  /** Where one writes. */
  get field(): Locator {
    return this.page.getByRole('combobox', { name: /^Message to/ });
  }

  /** What was said, in the room that is open. */
  said(text: string | RegExp): Locator {
    return this.page.getByRole('log').getByRole('article').filter({ hasText: text });
  }

  async say(text: string): Promise<void> {
    await this.field.fill(text);
    await this.field.press('Enter');
  }

  async enter(room: string): Promise<void> {
    await this.page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: room }).click();
    await this.page.getByRole('heading', { name: room, level: 1 }).waitFor();
    await this.field.waitFor();
  }
}

/** Debian's Chromium, and people in front of it. */
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { FRESH_PAGE_ARGUMENTS, useFreshPage } from './fresh-page';
import { PASSWORD, type Hub } from './hub';

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

export function startBrowser(): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...FRESH_PAGE_ARGUMENTS];
  return chromium.launch({ executablePath: EXECUTABLE, args });
}

/** One browser for all tests of a file; the tabs of each are closed behind it. */
export function inBrowser(stage: { browser: Browser }): void {
  beforeAll(async () => {
    stage.browser = await startBrowser();
  });
  afterEach(async () => {
    await Promise.all(stage.browser.contexts().map((context) => context.close()));
  });
  afterAll(() => stage.browser.close());
}

/** What any tab of the test that runs complained about. */
const complaints: string[] = [];

/** No line in any console, of whichever page of whichever test; `setup.ts` has it checked behind each. */
export function expectNoComplaints(): void {
  expect(complaints.splice(0)).toEqual([]);
}

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

  static async #blank(browser: Browser, options: BrowserContextOptions): Promise<Tab> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    await useFreshPage(context);
    return new Tab(await context.newPage());
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
    const tab = await Tab.#blank(browser, options);
    await tab.page.goto(url);
    return tab;
  }

  /** With the cookie that signing in gives; the form itself is not the subject of most flows. */
  static async signedIn(browser: Browser, hub: Hub, username: string, options: BrowserContextOptions = {}): Promise<Tab> {
    const tab = await Tab.#blank(browser, options);
    const credentials = { username, password: PASSWORD };
    const answer = await tab.page.context().request.post(`${hub.url}/api/auth/login`, { data: credentials });
    if (!answer.ok()) throw new Error(`${username} was not signed in: ${await answer.text()}`);
    await tab.page.goto(hub.url);
    await tab.#entered();
    return tab;
  }

  /** Through the form, as people do it. */
  static async throughForm(browser: Browser, hub: Hub, username: string): Promise<Tab> {
    const tab = await Tab.open(browser, hub.url);
    await tab.page.getByLabel('Name for signing in').fill(username);
    await tab.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await tab.#entered();
    return tab;
  }

  #entered(): Promise<void> {
    return this.page.getByRole('navigation', { name: 'Rooms' }).or(this.field).first().waitFor();
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

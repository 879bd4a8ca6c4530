/** Controls Chromium through Playwright: the browser of a test file and the tabs of its users. */
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { FRESH_PAGE_ARGUMENTS, useFreshPage } from './fresh-page';
import { PASSWORD, type Hub } from './hub';

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

export function startBrowser(): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...FRESH_PAGE_ARGUMENTS];
  return chromium.launch({ executablePath: EXECUTABLE, args });
}

/** Starts one browser for all tests of a file, and closes the tabs of a test after it. */
export function setUpBrowser(flow: { browser: Browser }): void {
  beforeAll(async () => {
    flow.browser = await startBrowser();
  });
  afterEach(async () => {
    await Promise.all(flow.browser.contexts().map((context) => context.close()));
  });
  afterAll(() => flow.browser.close());
}

/** Console errors and warnings from all tabs of the current test. */
const consoleErrors: string[] = [];

/**
 * Fails the test when a tab wrote an error or a warning to its console. `setup.ts` calls it after each test.
 */
export function expectNoConsoleErrors(): void {
  expect(consoleErrors.splice(0)).toEqual([]);
}

/** For tests that provoke console errors: expects at least one, and that all of them match. */
export function expectConsoleErrors(pattern: RegExp): void {
  const lines = consoleErrors.splice(0);
  expect(lines).not.toEqual([]);
  for (const line of lines) expect(line).toMatch(pattern);
}

/** One browser tab, mostly of a signed-in user. */
export class Tab {
  readonly page: Page;

  private constructor(page: Page) {
    this.page = page;
    page.setDefaultTimeout(60_000);
    page.on('pageerror', (error) => consoleErrors.push(error.message));
    page.on('console', (line) => {
      // Failed requests are expected: a 401 before sign-in, and connection errors while the hub is down.
      const isNetwork = /Failed to load resource|WebSocket connection|net::ERR/.test(line.text());
      if ((line.type() === 'error' || line.type() === 'warning') && !isNetwork) consoleErrors.push(line.text());
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

  /** Signs in through the REST API and keeps the session cookie. Faster than `throughForm`. */
  static async signedIn(browser: Browser, hub: Hub, username: string, options: BrowserContextOptions = {}): Promise<Tab> {
    const tab = await Tab.#blank(browser, options);
    const credentials = { username, password: PASSWORD };
    const answer = await tab.page.context().request.post(`${hub.url}/api/auth/login`, { data: credentials });
    if (!answer.ok()) throw new Error(`${username} was not signed in: ${await answer.text()}`);
    await tab.page.goto(hub.url);
    await tab.#entered();
    return tab;
  }

  /** Signs in through the sign-in form. */
  static async throughForm(browser: Browser, hub: Hub, username: string): Promise<Tab> {
    const tab = await Tab.open(browser, hub.url);
    await tab.page.getByLabel('Username').fill(username);
    await tab.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await tab.#entered();
    return tab;
  }

  #entered(): Promise<void> {
    return this.page.getByRole('navigation', { name: 'Rooms' }).or(this.field).first().waitFor();
  }

  /** Message field of the open room. */
  get field(): Locator {
    return this.page.getByRole('combobox', { name: /^Message to/ });
  }

  /** Message in the open room that contains `text`. */
  message(text: string | RegExp): Locator {
    return this.page.getByRole('log').getByRole('article').filter({ hasText: text });
  }

  async send(text: string): Promise<void> {
    await this.field.fill(text);
    await this.field.press('Enter');
  }

  async enter(room: string): Promise<void> {
    await this.page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: room }).click();
    await this.page.getByRole('heading', { name: room, level: 1 }).waitFor();
    await this.field.waitFor();
  }
}

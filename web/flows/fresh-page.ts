/**
 * While one works on the page: `PAGE=dist npm run flows` shows the browser what `npm run build` made last, under the
 * policy of the hub, without building the hub again.
 */
import { existsSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import type { BrowserContext, Route } from 'playwright-core';

const FOLDER = process.env['PAGE'];
const KINDS: Record<string, string> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
};

/** To Chromium such a page comes from anywhere, and may not speak to this machine. */
export const FRESH_PAGE_ARGUMENTS = FOLDER === undefined ? [] : ['--disable-features=LocalNetworkAccessChecks'];

export async function useFreshPage(context: BrowserContext): Promise<void> {
  if (FOLDER === undefined) return;
  await context.route(/^http:\/\/[^/]+(\/|\/(app|setup|register)([/#?].*)?)$/, (route) => answer(route, FOLDER));
}

async function answer(route: Route, folder: string): Promise<void> {
  const { pathname } = new URL(route.request().url());
  const file = resolve(folder, `.${pathname}`);
  const contentType = KINDS[extname(file)];
  if (contentType !== undefined && existsSync(file)) return route.fulfill({ path: file, contentType });
  const hub = await route.fetch();
  if (!hub.ok()) return route.fulfill({ response: hub });
  const policy = hub.headers()['content-security-policy'] ?? '';
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy };
  return route.fulfill({ path: join(folder, 'index.html'), headers });
}

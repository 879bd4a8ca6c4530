/**
 * Serves the page from a folder instead of the hub: `PAGE=dist npm run flows` tests the output of
 * `npm run build` without a new build of the hub. The content security policy is still the hub's.
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

/** Chromium does not know the origin of an intercepted page, and would block its requests to this machine. */
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

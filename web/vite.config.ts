import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Running hub that `vite dev` proxies to. */
const HUB = process.env['PARLOR_HUB'] ?? 'http://127.0.0.1:7878';
const TEXT = /\.(html|js|css|svg|json|webmanifest)$/;

/** Adds gzip and Brotli copies of each text file, so that the hub compresses nothing at run time. */
function compress(): Plugin {
  let folder = '';
  return {
    name: 'compress',
    apply: 'build',
    configResolved: (config) => {
      folder = resolve(config.root, config.build.outDir);
    },
    closeBundle: () => {
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
      for (const path of files.filter((name) => TEXT.test(name)).map((name) => join(folder, name))) {
        const text = readFileSync(path);
        const best = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length };
        writeFileSync(`${path}.gz`, gzipSync(text, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(text, { params: best }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), compress()],
  build: {
    assetsDir: 'app/assets',
    emptyOutDir: true,
    target: 'es2023',
    // The content security policy allows `data:` URLs for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The chunk with streamdown is large, but loaded on demand.
    chunkSizeWarningLimit: 1000,
  },
  server: {
    proxy: {
      // Keeps the Host header, because the hub rejects requests whose Origin differs from it.
      '/api': { target: HUB, changeOrigin: false },
      '/metrics': { target: HUB, changeOrigin: false },
      '/uploads': { target: HUB, changeOrigin: false },
      '/ws': { target: HUB, changeOrigin: false, ws: true },
    },
  },
  test: {
    include: ['tests/**/*.test.ts'],
    setupFiles: ['tests/setup.ts'],
    // Generous, for busy machines. No test waits for real time.
    testTimeout: 120_000,
  },
});

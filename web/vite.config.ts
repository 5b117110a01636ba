import react from '@vitejs/plugin-react'
import { loadEnv, type Rolldown } from 'vite'
import { defineConfig } from 'vitest/config'

import { isOfRestDocs, placed, restDocs } from './scripts/rest-docs.mjs'

// `npm run dev` talks to a server that runs already.
const { FERRET_URL = 'http://127.0.0.1:8765' } = loadEnv('', '.', 'FERRET_URL')

/** Few files, because small ones compress badly: one for every visit, and one for each group of pages. */
const FILES = [
  { name: 'start', tags: ['$initial'], test: (id: string) => !isOfRestDocs(id), priority: 1 },
  { name: 'tabs', test: /src\/features\/experiment\// },
  { name: 'work', test: /src\/features\/(compare|submit)\// },
  { name: 'operate', test: /src\/features\// },
] satisfies Rolldown.CodeSplittingGroup[]

export default defineConfig({
  plugins: [react(), restDocs()],
  resolve: { tsconfigPaths: true },
  build: {
    outDir: '../api/ferret_api/static',
    emptyOutDir: true,
    target: 'es2023',
    // A data: address would be refused by the server's `default-src 'self'`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false }, // older browsers than the target's; it would be a file that both pages share
    rolldownOptions: {
      input: ['index.html', 'docs.html'],
      output: {
        entryFileNames: placed('.js'),
        chunkFileNames: placed('.js'),
        assetFileNames: placed('[extname]'),
        codeSplitting: { includeDependenciesRecursively: false, groups: FILES },
      },
    },
  },
  server: {
    fs: { allow: ['..'] }, // the catalog of metrics lies in ferret_core
    // The server compares the page's origin with the host of the request.
    proxy: { '/api': { target: FERRET_URL, changeOrigin: false } },
  },
  test: {
    include: ['src/**/*.test.{ts,tsx}'],
    setupFiles: 'src/lib/testing/test-setup.ts',
    testTimeout: 60_000,
  },
})

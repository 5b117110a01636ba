import { defineConfig } from 'vite'

/** One script with the dashboard's own drawing, for the benchmark. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  build: {
    target: 'es2023',
    emptyOutDir: true,
    lib: { entry: 'bench/redraw.ts', formats: ['iife'], name: 'redraw', fileName: () => 'redraw.js' },
  },
})

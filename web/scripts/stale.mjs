// Builds into a scratch folder and compares it, byte for byte, with the committed bundle in ../api/ferret_api/static.
// Of compressed copies it compares what is in them.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { build } from 'vite'

import { compress, uncompressed } from './compress.mjs'

const COMMITTED = '../api/ferret_api/static'

function bundle(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  return new Map(paths.map((path) => [path, uncompressed(join(folder, path))]))
}

function differences(committed, fresh) {
  const paths = [...new Set([...committed.keys(), ...fresh.keys()])].sort()
  return paths.filter((path) => !(fresh.has(path) && committed.get(path)?.equals(fresh.get(path))))
}

const scratch = mkdtempSync(join(tmpdir(), 'ferret-web-'))
try {
  await build({ logLevel: 'error', build: { outDir: scratch } })
  compress(scratch)
  const stale = differences(bundle(COMMITTED), bundle(scratch))
  if (stale.length > 0) {
    console.error(
      `api/ferret_api/static is stale: run "npm run build" in web/ and commit it. Different: ${stale.join(', ')}`,
    )
    process.exitCode = 1
  }
} finally {
  rmSync(scratch, { recursive: true })
}

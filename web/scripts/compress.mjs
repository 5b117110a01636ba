// Writes FILE.br and FILE.gz next to each file that shrinks, once at the build. The server then only chooses one.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'

const WORTH_BYTES = 1024
const TEXT = /\.(js|css|html|svg|json|map|webmanifest)$/

const UNPACK = { '.br': brotliDecompressSync, '.gz': gunzipSync }

export function compress(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  for (const entry of entries.filter(({ name }) => TEXT.test(name))) {
    const path = join(entry.parentPath, entry.name)
    const content = readFileSync(path)
    if (content.length < WORTH_BYTES) continue
    writeFileSync(`${path}.br`, brotliCompressSync(content))
    writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
  }
}

/** The content of a file as it was before: machines compress the same bytes to different ones. */
export function uncompressed(path) {
  const unpack = UNPACK[path.slice(-3)]
  const content = readFileSync(path)
  return unpack ? unpack(content) : content
}

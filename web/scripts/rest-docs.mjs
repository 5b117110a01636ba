// The page /docs is Swagger UI. Its pictures become files, because the server's policy allows no data: addresses, and
// its licences lie beside it.
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const FOLDER = 'assets/docs'

const PACKAGE = 'node_modules/swagger-ui-dist'
const LICENCES = ['NOTICE', 'LICENSE', 'swagger-ui-es-bundle.js.LICENSE.txt']
const ADDRESS = /url\(("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^)]*)\)/g
const DATA = /^data:image\/(\w+)[^,]*?(;base64)?,(.*)$/s

/** True for a module of the REST page, false for one of the dashboard. */
export const isOfRestDocs = (id) => /swagger-ui|rest-docs|docs\.html/.test(id)

/** Where Rollup writes what belongs to the page, and what belongs to the dashboard. */
export const placed = (extension) => (file) =>
  `${(file.name ?? file.names[0]).startsWith('docs') ? FOLDER : 'assets'}/[name]-[hash]${extension}`

export function restDocs() {
  return {
    name: 'rest-docs',
    generateBundle(_, bundle) {
      for (const style of Object.values(bundle).filter(({ fileName }) => /\/docs-[^/]*\.css$/.test(fileName))) {
        style.source = String(style.source).replaceAll(ADDRESS, (whole, quoted) => {
          const found = DATA.exec(quoted.replace(/^["']|["']$/g, '').replace(/\\(.)/g, '$1'))
          if (found === null) return whole
          const [, kind, base64, data] = found
          const source = base64 ? Buffer.from(data, 'base64') : decodeURIComponent(data)
          const name = createHash('sha256').update(source).digest('hex').slice(0, 8)
          const fileName = `${FOLDER}/${name}.${kind}`
          this.emitFile({ type: 'asset', fileName, source })
          return `url(/${fileName})`
        })
      }
      const source = LICENCES.map((name) => readFileSync(`${PACKAGE}/${name}`, 'utf-8')).join('\n')
      this.emitFile({ type: 'asset', fileName: `${FOLDER}/LICENSES.txt`, source })
    },
  }
}

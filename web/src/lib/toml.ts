type Table = Record<string, unknown>

/** Values as TOML: a table's values first, then its tables, each under its full name. Nulls are left out. */
export function toToml(table: Table): string {
  return blocks(table, []).join('\n\n')
}

function blocks(table: Table, path: string[]): string[] {
  const entries = Object.entries(table).filter(([, value]) => value != null)
  const lines = entries.filter(([, value]) => !isTable(value)).map(([name, value]) => `${key(name)} = ${inline(value)}`)
  const inner = entries.flatMap(([name, value]) => (isTable(value) ? blocks(value, [...path, name]) : []))
  const head = path.length > 0 ? [`[${path.map(key).join('.')}]`] : []
  return lines.length > 0 ? [[...head, ...lines].join('\n'), ...inner] : inner
}

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A TOML key: bare, or quoted if necessary. */
export function key(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name)
}

/** A value on one line. */
export function inline(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (isTable(value)) {
    const cells = Object.entries(value).filter(([, cell]) => cell != null)
    return `{ ${cells.map(([name, cell]) => `${key(name)} = ${inline(cell)}`).join(', ')} }`
  }
  return String(value)
}

/** TOML's basic strings escape as JSON does, and DEL besides. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f')
}

/** One field of the specification: what every column says of it. */
export interface SpecRow {
  path: string
  /** Undefined where a column's algorithm, dataset or partition has no such field. */
  values: (string | undefined)[]
  differs: boolean
}

/** `{a: {b: 1}}` → `[['a.b', '1']]`: the leaves by their dotted paths. */
export function flatten(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, leaf(value)]]
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, path === '' ? key : `${path}.${key}`))
}

function leaf(value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** All fields but the name, by path; each column has the specifications of one run or of a group. */
export function specRows(columns: unknown[][]): SpecRow[] {
  const told = columns.map((specs) => column(specs))
  const paths = new Set(told.flatMap((fields) => [...fields.keys()]))
  paths.delete('name')
  return [...paths].sort().map((path) => {
    const values = told.map((fields) => fields.get(path))
    return { path, values, differs: new Set(values).size > 1 }
  })
}

/** Several values of a group are listed: its seeds. */
function column(specs: unknown[]): Map<string, string> {
  const values = new Map<string, Set<string>>()
  for (const [path, value] of specs.flatMap((spec) => flatten(spec))) {
    values.set(path, (values.get(path) ?? new Set()).add(value))
  }
  return new Map([...values].map(([path, found]) => [path, [...found].join(', ')]))
}

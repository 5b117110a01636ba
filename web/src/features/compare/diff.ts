import { flatten } from '@/lib/tree'

/** One field of the specification, with its value in every column. */
export interface SpecRow {
  path: string
  /** Undefined where a column's algorithm, dataset or partition has no such field. */
  values: (string | undefined)[]
  differs: boolean
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

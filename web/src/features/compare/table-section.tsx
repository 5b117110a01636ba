import { Fragment, useMemo } from 'react'

import { flatten } from '@/lib/tree'
import { Switch } from '@/lib/ui/toggles'

import type { Entry } from './compared-runs'
import { FigureValue } from './metric'
import { Swatch } from './palette'
import { type ResultRow, resultRows } from './result-cells'
import type { CompareUrlState } from './url-state'

interface Props {
  entries: readonly Entry[]
  baseline: Entry | undefined
  view: CompareUrlState
  onView: (change: (view: CompareUrlState) => CompareUrlState) => void
}

/** Results and specifications, a column for each run. */
export function TableSection({ entries, baseline, view, onView }: Props) {
  const all = view.spec === 'all'
  const results = useMemo(() => resultRows(entries), [entries])
  const fields = useMemo(
    () => specRows(entries.map(({ runs }) => runs.map(({ experiment }) => experiment.spec))),
    [entries],
  )
  const shown = all ? fields : fields.filter(({ differs }) => differs)
  const base = entries.findIndex((entry) => entry === baseline)
  return (
    <section aria-labelledby="compare-specs">
      <header className="section-header">
        <h2 id="compare-specs">Results and specifications</h2>
        <Switch
          label="only differences"
          on={!all}
          onToggle={() => {
            onView((before) => ({ ...before, spec: before.spec === 'all' ? undefined : 'all' }))
          }}
        />
      </header>
      <div className="compare-scroll tall" tabIndex={0} role="group" aria-label="Results and specifications">
        <table className="compare-table" data-testid="compare-table">
          <thead>
            <tr>
              <td />
              {entries.map((entry) => (
                <th key={entry.key} scope="col" data-baseline={entry === baseline}>
                  <Swatch place={entry.place} /> {entry.label}
                  {entry === baseline && <span className="muted"> baseline</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {results.map((row) => (
              <Result key={row.title} row={row} base={base} />
            ))}
          </tbody>
          <tbody>
            {shown.map((row) => (
              <Field key={row.path} row={row} base={base} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 && (
        <p className="muted small compare-note" data-testid="compare-same">
          {entries.length > 1
            ? 'The specifications are equal in every field.'
            : 'There is only one run, so nothing differs.'}
        </p>
      )}
    </section>
  )
}

function Result({ row: { title, metric, values }, base }: { row: ResultRow; base: number }) {
  return (
    <tr>
      <th scope="row">{title}</th>
      {values.map((value, index) => (
        // Columns have no other name in a row, and are never reordered.
        <td key={index} className="number" data-baseline={index === base}>
          <FigureValue metric={metric} value={value} baseline={index === base ? undefined : values[base]} />
        </td>
      ))}
    </tr>
  )
}

function Field({ row: { path, values }, base }: { row: SpecRow; base: number }) {
  return (
    <tr data-testid="compare-field">
      <th scope="row">
        <code>
          <Breakable path={path} />
        </code>
      </th>
      {values.map((value, index) => (
        <td key={index} data-baseline={index === base} data-differs={base >= 0 && value !== values[base]}>
          {value ?? <span className="muted">–</span>}
        </td>
      ))}
    </tr>
  )
}

/** A long path breaks at its dots and underscores. */
function Breakable({ path }: { path: string }) {
  return path.split(/(?<=[._])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ))
}

/** One field of the specification, with its value in every column. */
interface SpecRow {
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

import type { Experiment } from '@/api/types'
import { flatten } from '@/lib/tree'

/** The differences from the experiment that is cloned. */
export function ChangesPanel({ original, filled }: { original: Experiment; filled: object }) {
  const changes = changesBetween({ ...original.spec, name: original.name }, filled)
  return (
    <section aria-labelledby="changes" className="spec-panel" data-testid="changes">
      <h2 id="changes">Changed</h2>
      {changes.length === 0 ? (
        <p className="muted small">There are no changes yet. The clone would repeat the same experiment.</p>
      ) : (
        <div className="spec-scroll" tabIndex={0} role="group" aria-labelledby="changes">
          <table>
            <thead>
              <tr>
                <th scope="col">Value</th>
                <th scope="col">Before</th>
                <th scope="col">Now</th>
              </tr>
            </thead>
            <tbody>
              {changes.map(({ path, before, after }) => (
                <tr key={path}>
                  <th scope="row">{path}</th>
                  <td>{before ?? '–'}</td>
                  <td>{after ?? '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

interface Change {
  path: string
  before: string | undefined
  after: string | undefined
}

/** The differences between two specifications with defaults filled in. */
export function changesBetween(before: object, after: object): Change[] {
  const old = new Map(flatten(before))
  const next = new Map(flatten(after))
  return [...new Set([...old.keys(), ...next.keys()])]
    .map((path) => ({ path, before: old.get(path), after: next.get(path) }))
    .filter((change) => change.before !== change.after)
}

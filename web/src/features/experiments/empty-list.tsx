import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { meQuery, onlyReads } from '@/api/account'
import { Command } from '@/lib/ui/copy-button'

/** Shown without any experiment; the next step depends on the user. */
export function NoExperiment() {
  const { data: me } = useQuery(meQuery)
  if (me === undefined) return null
  if (me.projects.length === 0) return <NoProject />
  return (
    <section className="empty">
      <h2>No experiment yet</h2>
      {onlyReads(me) ? (
        <p className="muted">You are a viewer. Experiments that a researcher submits appear here.</p>
      ) : (
        <FirstSteps />
      )}
    </section>
  )
}

function NoProject() {
  return (
    <section className="empty">
      <h2>You are not in a project yet</h2>
      <p className="muted">Experiments belong to projects: ask an administrator to add you to one.</p>
    </section>
  )
}

function FirstSteps() {
  return (
    <>
      <p className="muted">
        <Link to="/new">Write one here</Link>, or submit the demo from a terminal on the server; it appears within
        seconds.
      </p>
      <Command text="ferret submit examples/quickstart.toml" label="command" />
    </>
  )
}

/** Shown when filters leave no experiment. */
export function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <section className="empty">
      <h2>No experiment matches</h2>
      <p className="muted">No experiment fits all filters.</p>
      <button type="button" className="button" onClick={onClear}>
        Clear filters
      </button>
    </section>
  )
}

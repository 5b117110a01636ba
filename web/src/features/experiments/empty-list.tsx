import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { presetsQuery, randomKey, submitExperiment } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import { ProblemNotice } from '@/lib/ui/notice'

/** Shown without any experiment; the next step depends on the user. */
export function NoExperiment() {
  const { data: me } = useQuery(meQuery)
  if (me === undefined) return null
  const [project] = me.projects
  if (project === undefined) return <NoProject />
  return (
    <section className="empty">
      <h2>No experiment yet</h2>
      {onlyReads(me) ? (
        <p className="muted">You are a viewer. Experiments that a researcher submits appear here.</p>
      ) : (
        <FirstSteps project={project} />
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

/** The quickstart, if this server may read its model and data, and the form. */
function FirstSteps({ project }: { project: string }) {
  const { data: presets } = useQuery(presetsQuery)
  if (presets === undefined) return null
  const form = (
    <Link to="/new" className={presets.quickstart === null ? 'button primary' : 'button'}>
      New experiment
    </Link>
  )
  if (presets.quickstart === null) return form
  return (
    <>
      <p className="muted">
        The quickstart tunes a bundled model of a million weights with four simulated clients, in about a minute.
      </p>
      <div className="empty-actions">
        <Quickstart spec={presets.quickstart} project={project} />
        {form}
      </div>
    </>
  )
}

function Quickstart({ spec, project }: { spec: Record<string, unknown>; project: string }) {
  const navigate = useNavigate()
  const [key] = useState(randomKey)
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => submitExperiment(spec, key, project),
    onSuccess: ({ id }) => navigate({ to: '/experiments/$id', params: { id } }),
  })
  return (
    <>
      <button
        type="button"
        className="button primary"
        disabled={isPending}
        onClick={() => {
          mutate()
        }}
      >
        Run the quickstart
      </button>
      {error && <ProblemNotice problem={toProblem(error)} />}
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

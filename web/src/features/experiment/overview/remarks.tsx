import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useRef, useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { editExperiment, type ReadExperiment, readForEdit, requireSame, splitList } from '@/api/experiment-edit'
import type { Experiment, ExperimentChange } from '@/api/types'
import { useLifecycleAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { CopyButton } from '@/lib/ui/copy-button'
import { Field } from '@/lib/ui/field'

// The code of the renderer loads with the first notes.
const Markdown = lazy(() => import('@/lib/ui/markdown'))

const PRIORITY_HINT = 'From 1 to 8. Priority 4 gets four training tasks for each one of an experiment with priority 1.'

/** The id, the tags, each a way to the experiments that have it too, and the notes. */
export function Remarks({ experiment }: { experiment: Experiment }) {
  const { id, cloned_from: original, tags, notes, priority } = experiment
  const reads = onlyReads(useQuery(meQuery).data)
  return (
    <section className="remarks" aria-label="Tags and notes" data-testid="remarks">
      <span className="muted small">
        <code>{id}</code>
        <CopyButton text={id} label="experiment id" />
        {original !== null && (
          <>
            {' cloned from '}
            <Link to="/experiments/$id" params={{ id: original }}>
              <code>{original}</code>
            </Link>
          </>
        )}
      </span>
      {tags.map((tag) => (
        <Link key={tag} to="/" search={{ tag: [tag] }} className="tag" title={`All experiments with the tag ${tag}`}>
          {tag}
        </Link>
      ))}
      {priority > 1 && (
        <span className="muted" title={PRIORITY_HINT}>
          priority {priority}
        </span>
      )}
      {reads === false && <TagsAndNotesButton experiment={experiment} />}
      {notes !== '' && (
        <div className="notes">
          <Suspense>
            <Markdown text={notes} />
          </Suspense>
        </div>
      )}
    </section>
  )
}

function TagsAndNotesButton({ experiment }: { experiment: Experiment }) {
  const { id, name } = experiment
  const read = useRef<Promise<ReadExperiment>>(undefined)
  const seen = useRef(experiment)
  const [begun, setBegun] = useState(experiment)
  const { run, pending, problem } = useLifecycleAction(id, async (change: ExperimentChange) => {
    const reading = read.current ?? readForEdit(id)
    read.current = undefined // the next attempt reads again
    const { experiment: now, etag } = await reading
    const { tags, notes, priority } = seen.current
    seen.current = now // a repeated change replaces what somebody else has written
    requireSame(now, { tags, notes, priority })
    return editExperiment(id, change, etag)
  })
  const submit = (form: FormData) => {
    const notes = form.get('notes')
    return run({
      tags: splitList(form.get('tags')),
      notes: typeof notes === 'string' ? notes : '',
      priority: Number(form.get('priority')),
    })
  }
  return (
    <ActionDialog
      label="Tags, notes…"
      confirm="Save"
      title={`Tags, notes and priority of “${name}”`}
      dismiss="Close"
      pending={pending}
      problem={problem}
      onOpen={() => {
        read.current = readForEdit(id)
        read.current.catch(() => undefined) // saving reports it
        seen.current = experiment
        setBegun(experiment)
      }}
      onSubmit={submit}
    >
      {/* The key resets the inputs if somebody else has edited the experiment meanwhile. */}
      <div key={JSON.stringify([begun.tags, begun.notes, begun.priority])}>
        <Field label="Tags" hint="Separate tags by commas.">
          <input name="tags" type="text" defaultValue={begun.tags.join(', ')} autoComplete="off" />
        </Field>
        <Field label="Notes" hint="In Markdown. HTML is shown as text.">
          <textarea name="notes" rows={8} maxLength={20_000} defaultValue={begun.notes} />
        </Field>
        <Field label="Priority" hint={PRIORITY_HINT}>
          <input name="priority" type="number" min={1} max={8} required defaultValue={begun.priority} />
        </Field>
      </div>
    </ActionDialog>
  )
}

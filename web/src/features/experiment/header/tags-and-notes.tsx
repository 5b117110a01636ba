import { Link } from '@tanstack/react-router'
import { useRef, useState } from 'react'

import { editExperiment, type ReadExperiment, readForEdit, requireSame, splitList } from '@/api/experiment-edit'
import type { Experiment, ExperimentChange } from '@/api/types'
import { useLifecycleAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

interface Props {
  experiment: Experiment
  /** True if this user may only read. */
  reads: boolean
}

const PRIORITY_HINT = 'From 1 to 8. Priority 4 gets four training tasks for each one of an experiment with priority 1.'

/** The tags, each a way to the experiments that have it too, and the notes as they were written. */
export function TagsAndNotes({ experiment, reads }: Props) {
  const { tags, notes, priority } = experiment
  return (
    <div className="remarks" data-testid="remarks">
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
      {!reads && <TagsAndNotesButton experiment={experiment} />}
      {notes !== '' && <p className="notes">{notes}</p>}
    </div>
  )
}

function TagsAndNotesButton({ experiment }: { experiment: Experiment }) {
  const { id, name } = experiment
  const read = useRef<Promise<ReadExperiment>>(undefined)
  const [begun, setBegun] = useState(experiment)
  const { run, pending, problem } = useLifecycleAction(id, async (change: ExperimentChange) => {
    const { experiment: now, etag } = await (read.current ?? readForEdit(id))
    requireSame(now, { tags: begun.tags, notes: begun.notes, priority: begun.priority })
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
        setBegun(experiment)
      }}
      onSubmit={submit}
    >
      {/* The key resets the inputs if somebody else has edited the experiment meanwhile. */}
      <div key={JSON.stringify([begun.tags, begun.notes, begun.priority])}>
        <Field label="Tags" hint="Separate tags by commas.">
          <input name="tags" type="text" defaultValue={begun.tags.join(', ')} autoComplete="off" />
        </Field>
        <Field label="Notes" hint="Notes are shown as plain text.">
          <textarea name="notes" rows={8} maxLength={20_000} defaultValue={begun.notes} />
        </Field>
        <Field label="Priority" hint={PRIORITY_HINT}>
          <input name="priority" type="number" min={1} max={8} required defaultValue={begun.priority} />
        </Field>
      </div>
    </ActionDialog>
  )
}

import { retagExperiment, splitList } from '@/api/experiment-edit'
import type { ListedExperiment } from '@/api/types'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import type { BulkAction } from './bulk-actions'

interface Props {
  selected: readonly ListedExperiment[]
  pending: boolean
  onRun: (label: string, experiments: readonly ListedExperiment[], run: BulkAction['run']) => Promise<unknown>
}

/** Adds tags to all selected experiments, or removes some. */
export function TagButton({ selected, pending, onRun }: Props) {
  const present = [...new Set(selected.flatMap(({ tags }) => tags))].sort()
  const submit = async (form: FormData) => {
    const more = splitList(form.get('more'))
    const fewer = form.getAll('fewer').filter((tag) => typeof tag === 'string')
    if (more.length + fewer.length > 0) await onRun('Tag', selected, ({ id }) => retagExperiment(id, more, fewer))
    return true
  }
  return (
    <ActionDialog
      label="Tag…"
      confirm="Save"
      title={`Tags of ${selected.length === 1 ? `“${selected[0]?.name ?? ''}”` : `${selected.length} experiments`}`}
      dismiss="Close"
      pending={pending}
      problem={undefined}
      onSubmit={submit}
    >
      <Field label="Add" hint="Separate tags by commas.">
        <input name="more" type="text" placeholder="hearts, K search" autoComplete="off" />
      </Field>
      {present.length > 0 && (
        <fieldset className="tag-choice">
          <legend>Remove</legend>
          {present.map((tag) => (
            <label key={tag}>
              <input type="checkbox" name="fewer" value={tag} /> {tag}
            </label>
          ))}
        </fieldset>
      )}
    </ActionDialog>
  )
}

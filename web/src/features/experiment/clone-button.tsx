import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'

import { cloneExperiment } from '@/api/actions'
import { ApiProblem } from '@/api/problem'
import type { Experiment } from '@/api/types'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import { clonePatch } from './clone'
import { useAction } from './use-action'

/** Submits the same specification with changes, and opens what comes of it. */
export function CloneButton({ experiment, primary }: { experiment: Experiment; primary: boolean }) {
  const navigate = useNavigate()
  const clone = useAction((patch: Record<string, unknown>) => cloneExperiment(experiment, patch))
  const [unreadable, setUnreadable] = useState<ApiProblem>()
  const submit = async (form: FormData) => {
    const patch = clonePatch(form)
    setUnreadable(patch instanceof ApiProblem ? patch : undefined)
    if (patch instanceof ApiProblem) return false
    const made = await clone.run(patch)
    if (made !== undefined) await navigate({ to: '/experiments/$id', params: { id: made.id } })
    return made !== undefined
  }

  return (
    <ActionDialog
      label="Clone"
      primary={primary}
      title={`Clone “${experiment.name}”`}
      dismiss="Close"
      pending={clone.pending}
      problem={unreadable ?? clone.problem}
      onSubmit={submit}
    >
      <Field label="Name">
        <input name="name" type="text" maxLength={120} defaultValue={experiment.name} required />
      </Field>
      <Field label="Rounds">
        <input name="rounds" type="number" min={1} step={1} defaultValue={experiment.rounds} required />
      </Field>
      <Field label="Other changes" hint="Part of the specification as JSON; null resets a value to its default.">
        <textarea name="changes" rows={4} spellCheck={false} placeholder='{"algorithm": {"K": 8192}}' />
      </Field>
    </ActionDialog>
  )
}

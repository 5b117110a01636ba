import { useState } from 'react'

import { alertsQuery, createAlert } from '@/api/alerts'
import type { AlertKind, CreatedAlert } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import { EVENT_NAMES, EVENTS } from './alert-card'

interface Props {
  project: string
  /** The experiment that it is about, if it is about one: a suggestion. */
  experiment: string | undefined
  onMade: (alert: CreatedAlert) => void
}

export function CreateAlertButton({ project, experiment, onMade }: Props) {
  const [kind, setKind] = useState<AlertKind>('webhook')
  const create = useAction(
    async (form: FormData) => {
      onMade(await createAlert(project, wanted(form, kind)))
    },
    { changes: alertsQuery(project).queryKey },
  )
  return (
    <ActionDialog
      label="New alert"
      confirm="Create"
      title={`New alert for ${project}`}
      dismiss="Close"
      primary
      pending={create.pending}
      problem={create.problem}
      onSubmit={create.run}
    >
      <Field label="Send by">
        <select
          name="kind"
          value={kind}
          onChange={({ target }) => {
            setKind(target.value === 'email' ? 'email' : 'webhook')
          }}
        >
          <option value="webhook">webhook</option>
          <option value="email">e-mail</option>
        </select>
      </Field>
      {kind === 'webhook' ? (
        <Field
          label="Address"
          hint="Ferret posts signed messages to this address. The path of the address is not shown again."
        >
          <input key="url" name="address" type="url" placeholder="https://…" maxLength={2000} required />
        </Field>
      ) : (
        <Field label="Address" hint="The server needs a mail server, which FERRET_SMTP_HOST sets.">
          <input key="email" name="address" type="email" placeholder="you@example.org" maxLength={254} required />
        </Field>
      )}
      <Field label="Experiment" hint="The id of one experiment. Leave it empty for all experiments of the project.">
        <input name="experiment" type="text" placeholder="exp_…" maxLength={64} defaultValue={experiment} />
      </Field>
      <fieldset className="choices">
        <legend>When an experiment</legend>
        {EVENT_NAMES.map((event) => (
          <label key={event}>
            <input type="checkbox" name="events" value={event} defaultChecked /> {EVENTS[event]}
          </label>
        ))}
      </fieldset>
    </ActionDialog>
  )
}

function wanted(form: FormData, kind: AlertKind) {
  const text = (name: string) => {
    const value = form.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
  const experiment = text('experiment')
  const chosen = form.getAll('events')
  return {
    kind,
    address: text('address'),
    events: EVENT_NAMES.filter((event) => chosen.includes(event)),
    ...(experiment !== '' && { experiment_id: experiment }),
  }
}

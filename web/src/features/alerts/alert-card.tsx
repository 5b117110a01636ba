import { alertsQuery, deleteAlert, testAlert } from '@/api/alerts'
import type { Alert } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Ago } from '@/lib/ui/ago'

import { DeliveryTable } from './delivery-table'
import { EVENTS } from './events'

interface Props {
  alert: Alert
  /** Whether the user may change it. */
  changes: boolean
  now: number
}

/** Who is told of what, and what became of the last messages. */
export function AlertCard({ alert, changes, now }: Props) {
  const { id, kind, address, events, deliveries, created_at: created } = alert
  return (
    <article className="alert-card" aria-labelledby={id} data-testid="alert">
      <header className="section-header">
        <div>
          <h2 id={id}>{address}</h2>
          <p className="muted small">
            {kind === 'email' ? 'e-mail' : 'webhook'} · when an experiment{' '}
            {events.map((event) => EVENTS[event]).join(', ')} · since <Ago at={created} now={now} /> · <code>{id}</code>
          </p>
        </div>
        {changes && <Buttons alert={alert} />}
      </header>
      {deliveries.length === 0 ? (
        <p className="muted">No message yet. A test shows whether they arrive.</p>
      ) : (
        <DeliveryTable deliveries={deliveries} now={now} />
      )}
    </article>
  )
}

function Buttons({ alert }: { alert: Alert }) {
  const changes = alertsQuery(alert.project).queryKey
  const test = useAction(() => testAlert(alert), { changes, toasted: `Testing ${alert.address}` })
  const remove = useAction(() => deleteAlert(alert), { changes })
  return (
    <div className="page-actions">
      <button type="button" className="button" disabled={test.pending} onClick={() => void test.run()}>
        Send a test
      </button>
      <ActionDialog
        label="Delete"
        title={`Tell ${alert.address} no more?`}
        dismiss="Keep it"
        danger
        pending={remove.pending}
        problem={remove.problem}
        onSubmit={() => remove.run()}
      >
        <p>Messages that are still to be sent are dropped too. A new alert has a new key.</p>
      </ActionDialog>
    </div>
  )
}

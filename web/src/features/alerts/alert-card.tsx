import { Link } from '@tanstack/react-router'

import { alertsQuery, deleteAlert, switchAlert, testAlert } from '@/api/alerts'
import type { Alert, AlertEvent, Delivery } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { RelativeTime } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

/** The events that an alert can report, in words. */
export const EVENTS = {
  completed: 'completes all rounds',
  stopped: 'stops early',
  failed: 'fails',
  cancelled: 'is cancelled',
  stalled: 'makes no progress',
} as const satisfies Record<AlertEvent, string>

export const EVENT_NAMES = Object.keys(EVENTS) as AlertEvent[]

interface Props {
  alert: Alert
  /** True if the user may change the alert. */
  changes: boolean
  now: number
}

/** One alert: its address, its events and its last messages. */
export function AlertCard({ alert, changes, now }: Props) {
  const { id, kind, address, events, deliveries, enabled, created_at: created } = alert
  return (
    <article className="alert-card" aria-labelledby={id} data-testid="alert">
      <header className="section-header">
        <div>
          <h2 id={id}>
            {address} {!enabled && <StateChip state="off" />}
          </h2>
          <p className="muted small">
            {kind === 'email' ? 'e-mail' : 'webhook'} · when <About alert={alert} />{' '}
            {events.map((event) => EVENTS[event]).join(', ')} · since <RelativeTime at={created} now={now} /> ·{' '}
            <code>{id}</code>
          </p>
        </div>
        {changes && <Buttons alert={alert} />}
      </header>
      {deliveries.length === 0 ? (
        <p className="muted">No message has been sent yet. A test shows whether messages arrive.</p>
      ) : (
        <DeliveryTable deliveries={deliveries} now={now} />
      )}
    </article>
  )
}

function About({ alert: { experiment_id: id } }: { alert: Alert }) {
  if (id === null) return 'an experiment'
  return (
    <Link to="/experiments/$id" params={{ id }}>
      <code>{id}</code>
    </Link>
  )
}

function Buttons({ alert }: { alert: Alert }) {
  const changes = alertsQuery(alert.project).queryKey
  const test = useAction(() => testAlert(alert), { changes, toasted: `Testing ${alert.address}` })
  const { enabled } = alert
  const toggle = useAction(() => switchAlert(alert, !enabled), {
    changes,
    toasted: `Switching ${alert.address} ${enabled ? 'off' : 'on'}`,
  })
  const remove = useAction(() => deleteAlert(alert), { changes })
  return (
    <div className="page-actions">
      <button type="button" className="button" disabled={test.pending} onClick={() => void test.run()}>
        Send a test
      </button>
      <button
        type="button"
        className="button"
        disabled={toggle.pending}
        title={enabled ? 'No message is sent while the alert is off. Messages that still wait are dropped' : undefined}
        onClick={() => void toggle.run()}
      >
        {enabled ? 'Switch off' : 'Switch on'}
      </button>
      <ActionDialog
        label="Delete"
        title={`Delete the alert to ${alert.address}?`}
        dismiss="Keep it"
        danger
        pending={remove.pending}
        problem={remove.problem}
        onSubmit={() => remove.run()}
      >
        <p>Messages that still wait are dropped too. A new alert gets a new key.</p>
      </ActionDialog>
    </div>
  )
}

const COLUMNS = ['Message', 'State', 'Answer', 'Attempts', 'Created', 'Last tried', 'Next attempt']

/** The last messages of an alert, the newest first. */
function DeliveryTable({ deliveries, now }: { deliveries: readonly Delivery[]; now: number }) {
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label="Last messages">
      <table>
        <TableHead columns={COLUMNS} numbers={['Attempts']} />
        <tbody>
          {deliveries.map((delivery) => (
            <DeliveryRow key={delivery.id} delivery={delivery} now={now} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function DeliveryRow({ delivery, now }: { delivery: Delivery; now: number }) {
  const { event, state, status, error, attempts, created_at: made, tried_at: tried, due_at: due } = delivery
  return (
    <tr data-testid="delivery">
      <th scope="row">{event}</th>
      <td>
        <StateChip state={state} />
      </td>
      <td className="cell-answer">{[status, error].filter((part) => part !== null).join(': ') || '–'}</td>
      <td className="number">{attempts}</td>
      <td className="nowrap">
        <RelativeTime at={made} now={now} />
      </td>
      <td className="nowrap">{tried === null ? '–' : <RelativeTime at={tried} now={now} />}</td>
      <td className="nowrap">{due === null ? '–' : <RelativeTime at={due} now={now} />}</td>
    </tr>
  )
}

import type { Delivery } from '@/api/types'
import { RelativeTime } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

const COLUMNS = ['Message', 'State', 'Answer', 'Attempts', 'Created', 'Last tried', 'Next attempt']

/** The last messages of an alert, the newest first. */
export function DeliveryTable({ deliveries, now }: { deliveries: readonly Delivery[]; now: number }) {
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Last messages">
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

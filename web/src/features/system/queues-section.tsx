import type { System } from '@/api/types'
import { formatCount, formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { TableHead } from '@/lib/ui/table-head'

const COLUMNS = ['Queue', 'Workers', 'Waiting', 'Oldest waits for', 'At the broker']

/** The queues with their workers and waiting tasks. */
export function QueuesSection({ system: { queues, time } }: { system: System }) {
  return (
    <section aria-labelledby="queues">
      <header className="section-header">
        <h2 id="queues">Queues</h2>
      </header>
      <div className="table-scroll" tabIndex={0} role="region" aria-label="Queues">
        <table>
          <TableHead columns={COLUMNS} numbers={COLUMNS.slice(1)} />
          <tbody>
            {queues.map(({ queue, workers, waiting, oldest, messages }) => (
              <tr key={queue} data-testid="queue-row">
                <th scope="row">{queue}</th>
                <td className="number">{formatCount(workers)}</td>
                <td className="number">{formatCount(waiting)}</td>
                <td className="number">
                  {oldest === null ? (
                    '–'
                  ) : (
                    <span title={`Since ${formatTime(oldest)}`}>{formatSeconds(secondsBetween(oldest, time))}</span>
                  )}
                </td>
                <td className="number">{messages === null ? '–' : formatCount(messages)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { covers, meQuery } from '@/api/account'
import { toProblem } from '@/api/problem'
import { systemQuery } from '@/api/queries'
import type { WorkerStatus } from '@/api/types'
import { formatTime } from '@/lib/format'
import { ProblemNotice } from '@/lib/ui/notice'
import { TableHead } from '@/lib/ui/table-head'

const COLUMNS = ['Task', 'Queue', 'Host', 'Process', 'Device', 'Last seen']

/** Workers on the experiment now. Only administrators see the hosts. */
export function WorkersSection({ id }: { id: string }) {
  const { data: me } = useQuery(meQuery)
  if (me === undefined || !covers(me.role, 'admin')) return null
  return (
    <section aria-labelledby="workers">
      <header className="section-header">
        <h2 id="workers">Workers on this experiment</h2>
        <Link to="/system">The whole service</Link>
      </header>
      <Workers id={id} />
    </section>
  )
}

function Workers({ id }: { id: string }) {
  const { data: system, error } = useQuery(systemQuery)
  if (error) return <ProblemNotice problem={toProblem(error)} />
  const workers = system?.workers.filter(({ alive, experiment }) => alive && experiment === id) ?? []
  if (workers.length === 0)
    return <p className="muted">There are no workers now. Edge participants train on their own machines.</p>
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Workers on this experiment">
      <table>
        <TableHead columns={COLUMNS} numbers={['Process', 'Last seen']} />
        <tbody>
          {workers.map((worker) => (
            <WorkerRow key={worker.id} worker={worker} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function WorkerRow({ worker: { task, queue, host, pid, device, seen_at: seen } }: { worker: WorkerStatus }) {
  return (
    <tr data-testid="worker-row">
      <th scope="row">{task?.replace('ferret.', '')}</th>
      <td>{queue}</td>
      <td>{host}</td>
      <td className="number">{pid}</td>
      <td>{device}</td>
      <td className="number">{formatTime(seen)}</td>
    </tr>
  )
}

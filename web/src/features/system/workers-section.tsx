import { Link } from '@tanstack/react-router'

import type { System, WorkerStatus } from '@/api/types'
import { formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'
import { Toggles } from '@/lib/ui/toggles'

import { QUEUES, shownWorkers, type SystemUrlState } from './url-state'

const COLUMNS = ['State', 'Queue', 'Host', 'Process', 'Device', 'Task', 'Uptime', 'Last seen']
const CHOICES = [['all', 'all'] as const, ...QUEUES.map((queue) => [queue, queue] as const)]

interface Props {
  system: System
  view: SystemUrlState
  onView: (change: (view: SystemUrlState) => SystemUrlState) => void
}

/** Every worker process and its task. */
export function WorkersSection({ system, view, onView }: Props) {
  const shown = shownWorkers(system.workers, view)
  const silent = system.workers.filter(({ alive }) => !alive).length
  return (
    <section aria-labelledby="workers">
      <header className="section-header">
        <h2 id="workers">Workers</h2>
        <div className="workers-filter">
          <Toggles
            label="Queue"
            options={CHOICES}
            chosen={view.queue ?? 'all'}
            onChoose={(queue) => {
              onView((before) => ({ ...before, queue: queue === 'all' ? undefined : queue }))
            }}
          />
          <label>
            <input
              type="checkbox"
              checked={view.silent !== undefined}
              onChange={({ target }) => {
                onView((before) => ({ ...before, silent: target.checked ? '1' : undefined }))
              }}
            />{' '}
            include {silent} silent
          </label>
        </div>
      </header>
      {shown.length === 0 ? (
        <p className="muted">
          There are no workers{view.queue && ` for ${view.queue}`}. <code>ferret worker {view.queue ?? 'train'}</code>{' '}
          starts one.
        </p>
      ) : (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="Workers">
          <table>
            <TableHead columns={COLUMNS} numbers={['Process', ...COLUMNS.slice(-2)]} />
            <tbody>
              {shown.map((worker) => (
                <WorkerRow key={worker.id} worker={worker} time={system.time} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function WorkerRow({ worker, time }: { worker: WorkerStatus; time: string }) {
  const { alive, task, queue, host, pid, device, started_at: started, seen_at: seen } = worker
  const state = task === null ? 'idle' : 'active'
  return (
    <tr data-testid="worker-row">
      <td>
        <StateChip state={alive ? state : 'silent'} />
      </td>
      <td>{queue}</td>
      <th scope="row">{host}</th>
      <td className="number">{pid}</td>
      <td>{device}</td>
      <td>
        <Work worker={worker} />
      </td>
      <td className="number" title={`Since ${formatTime(started)}`}>
        {formatSeconds(Math.floor(secondsBetween(started, time)))}
      </td>
      <td className="number" title={formatTime(seen)}>
        {seenAgo(Math.floor(secondsBetween(seen, time)))}
      </td>
    </tr>
  )
}

function seenAgo(seconds: number): string {
  return seconds < 1 ? 'now' : `${formatSeconds(seconds)} ago`
}

/** The worker's task, and a link to its experiment; playground questions have none. */
function Work({ worker: { task, experiment } }: { worker: WorkerStatus }) {
  if (task === null) return '–'
  const name = task.replace('ferret.', '')
  if (experiment === null) return name
  return (
    <>
      {name}{' '}
      <Link to="/experiments/$id" params={{ id: experiment }}>
        <code>{experiment}</code>
      </Link>
    </>
  )
}

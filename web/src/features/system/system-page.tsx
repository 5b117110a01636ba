import './system.css'

import { useQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { systemQuery } from '@/api/queries'
import type { System } from '@/api/types'
import { formatBytes, formatCount, formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { Command } from '@/lib/ui/copy-button'
import { DefinitionItem } from '@/lib/ui/definition-item'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { TableHead } from '@/lib/ui/table-head'
import { useTitle } from '@/lib/use-title'

import { healthIssues } from './health'
import type { SystemUrlState } from './url-state'
import { WorkersSection } from './workers-section'

interface Props {
  view: SystemUrlState
  onView: (change: (view: SystemUrlState) => SystemUrlState) => void
}

/** The state of the whole service, for operators. */
export function SystemPage({ view, onView }: Props) {
  const { data: system, error } = useQuery(systemQuery)
  useTitle('System')
  return (
    <main className="page">
      <header>
        <h1>System</h1>
        {system && (
          <p className="muted">
            Ferret {system.version} · as of <time dateTime={system.time}>{formatTime(system.time)}</time>
          </p>
        )}
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {system && (
        <>
          <Health system={system} />
          <Parts system={system} />
          <QueuesSection system={system} />
          <WorkersSection system={system} view={view} onView={onView} />
        </>
      )}
    </main>
  )
}

function Health({ system }: { system: System }) {
  const found = healthIssues(system)
  if (found.length === 0) return <p role="status">All components work, and every queue has a worker.</p>
  return found.map(({ title, detail, command }) => (
    <Notice key={title} title={title} testId="trouble">
      <p>{detail}</p>
      {command !== undefined && <Command text={command} label="command" />}
    </Notice>
  ))
}

function Parts({ system }: { system: System }) {
  const { parts, database, storage, disk, experiments, unsent } = system
  return (
    <dl className="facts boxed" data-testid="parts">
      <DefinitionItem term="Database">
        {database.kind}, {formatBytes(database.size)}
      </DefinitionItem>
      <DefinitionItem term="Schema">
        {database.revision ?? 'none'}
        {!parts.migrations.ready && ', but this version needs another'}
      </DefinitionItem>
      <DefinitionItem term="Broker">{parts.broker.ready ? 'answers' : 'does not answer'}</DefinitionItem>
      <DefinitionItem term="Storage">
        {storage.place}
        {!parts.storage.ready && ', cannot be used'}
      </DefinitionItem>
      <DefinitionItem term="Disk">
        {formatBytes(disk.free)} free of {formatBytes(disk.total)}
      </DefinitionItem>
      <DefinitionItem term="Experiments">
        {formatCount(experiments.running ?? 0)} running, {formatCount(experiments.queued ?? 0)} queued
      </DefinitionItem>
      <DefinitionItem term="Tasks waiting to be queued">{formatCount(unsent.waiting)}</DefinitionItem>
    </dl>
  )
}

const COLUMNS = ['Queue', 'Workers', 'Waiting', 'Oldest waits for', 'At the broker']

/** The queues with their workers and waiting tasks. */
function QueuesSection({ system: { queues, time } }: { system: System }) {
  return (
    <section aria-labelledby="queues">
      <header className="section-header">
        <h2 id="queues">Queues</h2>
      </header>
      <div className="table-scroll" tabIndex={0} role="group" aria-label="Queues">
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

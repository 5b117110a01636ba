import './system.css'

import { useQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { systemQuery } from '@/api/system'
import type { System } from '@/api/types'
import { formatBytes, formatCount, formatTime } from '@/lib/format'
import { Command } from '@/lib/ui/copy-button'
import { DefinitionItem } from '@/lib/ui/definition-item'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useTitle } from '@/lib/use-title'

import { healthIssues } from './health'
import { QueuesSection } from './queues-section'
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
        {!parts.migrations.ready && ', not the one that this version needs'}
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
      <DefinitionItem term="Calls not yet at the broker">{formatCount(unsent.waiting)}</DefinitionItem>
    </dl>
  )
}

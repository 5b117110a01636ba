import './experiment.css'

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'

import { problemOf, toProblem } from '@/api/problem'
import { experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { capitalised, formatAgo, formatTime } from '@/lib/format'
import { oneOf } from '@/lib/search-params'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { Tabs } from '@/lib/ui/tabs'
import { useTitle } from '@/lib/use-title'

import { CONVERGENCE } from './charts/chart-definitions'
import { Charts } from './charts/charts'
import { CheckpointSection } from './checkpoints/checkpoint-section'
import { EventsTab } from './events/events-tab'
import { Header } from './header/header'
import { useLive } from './live/use-live'
import { ResultStrip } from './overview/result-strip'
import { RoundsTab } from './rounds/rounds-tab'
import { SpecSection } from './specification/spec-section'
import { type ChangeExperimentUrl, type ExperimentUrlState, OTHER_TABS, TABS } from './url-state'

// The code of these tabs loads when one is opened.
const ParticipantsTab = lazy(async () => {
  const { ParticipantsTab } = await import('./participation/participants-tab')
  return { default: ParticipantsTab }
})
const UpdateStatisticsTab = lazy(() => import('./update-statistics/update-statistics-tab'))
const SystemTab = lazy(() => import('./system/system-tab'))
const Playground = lazy(() => import('./playground/playground'))

interface Props {
  id: string
  view: ExperimentUrlState
  onView: (change: (view: ExperimentUrlState) => ExperimentUrlState) => void
}

export function ExperimentPage({ id, view, onView }: Props) {
  const query = useQuery(experimentQuery(id))
  useTitle(query.data?.name ?? id)

  if (query.data === undefined) {
    return (
      <main className="page">
        {query.error && (
          <ProblemNotice problem={toProblem(query.error)}>
            <p>
              <Link to="/">See all experiments</Link>
            </p>
          </ProblemNotice>
        )}
      </main>
    )
  }
  return <Loaded experiment={query.data} view={view} onView={onView} />
}

function Loaded({ experiment, view, onView }: Omit<Props, 'id'> & { experiment: Experiment }) {
  const live = useLive(experiment)
  const { error, stopped } = experiment
  const change = (changes: ExperimentUrlState) => {
    onView((before) => ({ ...before, ...changes }))
  }
  return (
    <main className="page">
      <Header experiment={experiment} live={live} />
      {error && <ProblemNotice problem={problemOf(error, error.status)} />}
      {stopped && (
        <Notice title={`Ended after round ${stopped.round}`} testId="stopped">
          <p>{capitalised(stopped.detail)}.</p>
        </Notice>
      )}
      <StallNotice experiment={experiment} />
      <ResultStrip experiment={experiment} />
      <Tabs
        label="Parts of the experiment"
        tabs={TABS}
        chosen={view.tab ?? 'overview'}
        onChoose={(tab) => {
          change({ tab: oneOf(OTHER_TABS, tab) })
        }}
      >
        <TabContent experiment={experiment} view={view} onView={change} />
      </Tabs>
    </main>
  )
}

/** Shows why an unfinished experiment makes no progress, and the next step. */
function StallNotice({ experiment: { state, stalled } }: { experiment: Experiment }) {
  const now = useNow(10_000)
  if (state === 'paused') {
    return (
      <Notice title="Paused" testId="paused">
        <p>No work is handed out, and the open round keeps its remaining time. Accepted contributions are kept.</p>
        <p>
          <strong>What to do next:</strong> press Resume to continue where it stopped.
        </p>
      </Notice>
    )
  }
  if (!stalled) return null
  return (
    <Notice title="No progress" testId="stalled">
      <p>{stalled.detail}</p>
      <p className="muted small">
        <code>{stalled.code}</code>
        {' · since '}
        <time dateTime={stalled.since} title={formatTime(stalled.since)}>
          {formatAgo(stalled.since, now)}
        </time>
        {' · it continues by itself once this is fixed'}
      </p>
    </Notice>
  )
}

interface TabContentProps {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** The content of the chosen tab. */
function TabContent({ experiment, view, onView }: TabContentProps) {
  const { id } = experiment
  switch (view.tab) {
    case 'rounds':
      return <RoundsTab id={id} chosen={view.round} />
    case 'update':
      return (
        <Suspense fallback={<p className="muted">Loading…</p>}>
          <UpdateStatisticsTab experiment={experiment} view={view} onView={onView} />
        </Suspense>
      )
    case 'participants':
      return (
        <Suspense fallback={<p className="muted">Loading…</p>}>
          <ParticipantsTab experiment={experiment} view={view} onView={onView} />
        </Suspense>
      )
    case 'checkpoints':
      return <CheckpointSection id={id} better={experiment.better} />
    case 'playground':
      return (
        <Suspense fallback={<p className="muted">Loading…</p>}>
          <Playground experiment={experiment} view={view} onView={onView} />
        </Suspense>
      )
    case 'specification':
      return (
        <SpecSection
          experiment={experiment}
          all={view.spec === 'all'}
          onAll={(all) => {
            onView({ spec: all ? 'all' : undefined })
          }}
        />
      )
    case 'events':
      return (
        <EventsTab
          experiment={experiment}
          kinds={view.kind ?? []}
          onKinds={(kind) => {
            onView({ kind: kind.length > 0 ? kind : undefined })
          }}
        />
      )
    case 'system':
      return (
        <Suspense fallback={<p className="muted">Loading…</p>}>
          <SystemTab experiment={experiment} view={view} onView={onView} />
        </Suspense>
      )
    default:
      return <Charts title="Convergence" kinds={CONVERGENCE} experiment={experiment} view={view} onView={onView} />
  }
}

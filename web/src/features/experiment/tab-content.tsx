import { lazy, Suspense } from 'react'

import type { Experiment } from '@/api/types'

import { CONVERGENCE } from './charts/chart-definitions'
import { Charts } from './charts/charts'
import { CheckpointSection } from './checkpoints/checkpoint-section'
import { EventsTab } from './events/events-tab'
import { RoundsTab } from './rounds/rounds-tab'
import { SpecSection } from './specification/spec-section'
import type { ChangeExperimentUrl, ExperimentUrlState } from './url-state'

// The code of these tabs loads when one is opened.
const ParticipantsTab = lazy(async () => {
  const { ParticipantsTab } = await import('./participation/participants-tab')
  return { default: ParticipantsTab }
})
const UpdateStatisticsTab = lazy(() => import('./update-statistics/update-statistics-tab'))
const SystemTab = lazy(() => import('./system/system-tab'))
const Playground = lazy(() => import('./playground/playground'))

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** The content of the chosen tab. */
export function TabContent({ experiment, view, onView }: Props) {
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

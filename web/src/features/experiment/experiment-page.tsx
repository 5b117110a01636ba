import './experiment.css'

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'

import { problemOf, toProblem } from '@/api/problem'
import { experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { capitalised } from '@/lib/format'
import { oneOf } from '@/lib/search-params'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { Tabs } from '@/lib/ui/tabs'
import { useTitle } from '@/lib/use-title'

import { CONVERGENCE } from './charts/chart-definitions'
import { Charts } from './charts/charts'
import { CheckpointSection } from './checkpoints/checkpoint-section'
import { LogTab } from './events/log-tab'
import { Header } from './header/header'
import { StallNotice } from './header/stall-notice'
import { useLive } from './live/use-live'
import { Remarks } from './overview/remarks'
import { ResultStrip } from './overview/result-strip'
import { PrivacySection } from './privacy/privacy-section'
import { RoundsSection } from './rounds/rounds-section'
import { ConfigurationTab } from './specification/configuration-tab'
import { type ChangeExperimentUrl, type ExperimentUrlState, OTHER_TABS, TABS } from './url-state'

// The code of these parts loads when one is shown.
const Cost = lazy(() => import('./cost/cost'))
const Participation = lazy(() => import('./participation/participation'))
const InsideTab = lazy(() => import('./update-statistics/inside-tab'))
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
  const change = (changes: ExperimentUrlState) => {
    onView((before) => ({ ...before, ...changes }))
  }
  return (
    <main className="page run">
      <Header experiment={experiment} live={live} />
      <StallNotice experiment={experiment} />
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

interface TabContentProps {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** The content of the chosen tab. */
function TabContent(props: TabContentProps) {
  const { experiment, view, onView } = props
  switch (view.tab) {
    case 'rounds':
      return (
        <>
          <RoundsSection id={experiment.id} chosen={view.round} />
          <Suspense fallback={<Loading />}>
            <Participation {...props} />
          </Suspense>
        </>
      )
    case 'inside':
      return (
        <Suspense fallback={<Loading />}>
          <InsideTab {...props} />
        </Suspense>
      )
    case 'models':
      return (
        <>
          <Suspense fallback={<Loading />}>
            <Playground {...props} />
          </Suspense>
          <CheckpointSection id={experiment.id} />
        </>
      )
    case 'configuration':
      return (
        <ConfigurationTab
          experiment={experiment}
          all={view.spec === 'all'}
          onAll={(all) => {
            onView({ spec: all ? 'all' : undefined })
          }}
        />
      )
    case 'log':
      return (
        <LogTab
          experiment={experiment}
          kinds={view.kind ?? []}
          onKinds={(kind) => {
            onView({ kind: kind.length > 0 ? kind : undefined })
          }}
        />
      )
    default:
      return <Overview {...props} />
  }
}

function Loading() {
  return <p className="muted">Loading…</p>
}

/** The result, how it came about, and what it cost. */
function Overview(props: TabContentProps) {
  const { experiment } = props
  const { error, stopped } = experiment
  return (
    <>
      {error && <ProblemNotice problem={problemOf(error, error.status)} />}
      {stopped && (
        <Notice title={`Ended after round ${stopped.round}`} testId="stopped">
          <p>{capitalised(stopped.detail)}.</p>
        </Notice>
      )}
      <ResultStrip experiment={experiment} />
      <Remarks experiment={experiment} />
      <Charts title="Convergence" kinds={CONVERGENCE} {...props} />
      <PrivacySection experiment={experiment} />
      <Suspense fallback={<Loading />}>
        <Cost {...props} />
      </Suspense>
    </>
  )
}

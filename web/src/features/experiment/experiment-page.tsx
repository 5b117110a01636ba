import './experiment.css'

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { problemOf, toProblem } from '@/api/problem'
import { experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { capitalised } from '@/lib/format'
import { oneOf } from '@/lib/search-params'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { Tabs } from '@/lib/ui/tabs'
import { useTitle } from '@/lib/use-title'

import { Header } from './header/header'
import { useLive } from './live/use-live'
import { ResultStrip } from './overview/result-strip'
import { StallNotice } from './overview/stall-notice'
import { TabContent } from './tab-content'
import { type ExperimentUrlState, OTHER_TABS, TABS } from './url-state'

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

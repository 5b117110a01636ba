import './experiments.css'

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { meQuery, onlyReads } from '@/api/people'
import { toProblem } from '@/api/problem'
import { experimentsQuery } from '@/api/queries'
import { Command } from '@/lib/ui/command'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/problem-notice'
import { TableHead } from '@/lib/ui/table-head'
import { useNow } from '@/lib/use-now'
import { useTitle } from '@/lib/use-title'

import { CompareBar } from './compare-bar'
import { ExperimentRow } from './experiment-row'
import { FilterBar } from './filter-bar'
import type { Filters } from './filters'
import { useTicks } from './use-ticks'

interface Props {
  filters: Filters
  onFilters: (change: (filters: Filters) => Filters) => void
}

const COLUMNS = ['', 'Experiment', 'State', 'Round', 'Eval loss', 'Rouge-L', 'Bytes per round', 'Created']

export function ExperimentsPage({ filters, onFilters }: Props) {
  useTitle('Experiments')
  const { state = [], name = '', project } = filters
  const projects = useQuery(meQuery).data?.projects ?? []
  const archived = filters.archived === 'only'
  const query = experimentsQuery({ state, name, project, archived })
  const list = useInfiniteQuery({ ...query, placeholderData: keepPreviousData })
  const now = useNow(10_000)
  const ticks = useTicks()
  const filtered = state.length > 0 || name !== '' || project !== undefined || archived
  const experiments = list.data?.pages.flatMap((page) => page.items) ?? []

  return (
    <main className="page">
      <header className="page-header">
        <h1>Experiments</h1>
        <Link to="/new" className="button primary">
          New experiment
        </Link>
      </header>
      <FilterBar filters={filters} projects={projects} onFilters={onFilters} />
      {list.error && <ProblemNotice problem={toProblem(list.error)} />}
      {list.isSuccess && experiments.length === 0 && (filtered ? <NoMatch /> : <NoExperiment />)}
      {experiments.length > 0 && (
        <table className="experiments">
          <TableHead columns={COLUMNS} />
          <tbody>
            {experiments.map((experiment) => (
              <ExperimentRow
                key={experiment.id}
                experiment={experiment}
                told={projects.length > 1}
                now={now}
                ticked={ticks.ids.includes(experiment.id)}
                onTick={() => {
                  ticks.toggle(experiment.id)
                }}
              />
            ))}
          </tbody>
        </table>
      )}
      <MoreButton list={list} />
      <CompareBar ids={ticks.ids} onClear={ticks.clear} />
    </main>
  )
}

function NoExperiment() {
  const { data: me } = useQuery(meQuery)
  if (me === undefined) return null
  if (me.projects.length === 0) return <NoProject />
  return (
    <section className="empty">
      <h2>No experiment yet</h2>
      {onlyReads(me) ? (
        <p className="muted">You look on as a viewer: what a researcher submits appears here.</p>
      ) : (
        <FirstSteps />
      )}
    </section>
  )
}

function NoProject() {
  return (
    <section className="empty">
      <h2>You are in no project yet</h2>
      <p className="muted">Experiments belong to projects: ask an administrator to make you a member of one.</p>
    </section>
  )
}

function FirstSteps() {
  return (
    <>
      <p className="muted">
        <Link to="/new">Write one here</Link>, or submit the demo from a terminal on the server; it appears within
        seconds.
      </p>
      <Command text="ferret submit examples/quickstart.toml" label="command" />
    </>
  )
}

function NoMatch() {
  return (
    <section className="empty">
      <h2>No experiment matches</h2>
      <p className="muted">Remove a filter to see more.</p>
    </section>
  )
}

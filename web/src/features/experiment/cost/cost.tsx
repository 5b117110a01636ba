import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { covers, meQuery } from '@/api/account'
import { toProblem } from '@/api/problem'
import { metricsQuery, roundsQuery, systemQuery } from '@/api/queries'
import { type Experiment, isFinished, type WorkerStatus } from '@/api/types'
import { COST } from '@/features/experiment/charts/chart-definitions'
import { Charts } from '@/features/experiment/charts/charts'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { formatSeconds, formatTime } from '@/lib/format'
import { DefinitionItem } from '@/lib/ui/definition-item'
import { ProblemNotice } from '@/lib/ui/notice'
import { TableHead } from '@/lib/ui/table-head'

import { costFacts, phasesOf } from './round-costs'

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** The experiment's time, memory and machines. */
export default function Cost({ experiment, view, onView }: Props) {
  const { id } = experiment
  return (
    <>
      <PhasesSection id={id} />
      <CostSection id={id} />
      <Charts title="Cost over the rounds" kinds={COST} experiment={experiment} view={view} onView={onView} more />
      {!isFinished(experiment.state) && <WorkersSection id={id} />}
    </>
  )
}

function CostSection({ id }: { id: string }) {
  const metrics = useQuery(metricsQuery(id))
  const facts = costFacts(metrics.data?.series ?? [])
  if (facts.length === 0) return null
  return (
    <section className="cost" aria-labelledby="cost" data-testid="cost">
      <header className="section-header">
        <h2 id="cost">Cost per round</h2>
      </header>
      <dl className="facts boxed">
        {facts.map(({ term, value }) => (
          <DefinitionItem key={term} term={term}>
            {value}
          </DefinitionItem>
        ))}
      </dl>
    </section>
  )
}

/** The duration of each phase of a round. */
function PhasesSection({ id }: { id: string }) {
  const { data: rounds = [], error, isSuccess } = useQuery(roundsQuery(id))
  const phases = phasesOf(rounds)
  return (
    <section aria-labelledby="phases" data-testid="phases">
      <header className="section-header">
        <h2 id="phases">Time per phase of a round</h2>
        {phases.length > 0 && <span className="muted small">Medians</span>}
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {phases.length === 0 ? (
        isSuccess && <p className="muted">No round has closed yet.</p>
      ) : (
        <dl className="facts boxed">
          {phases.map(({ term, usual, longest }) => (
            <DefinitionItem key={term} term={term}>
              <span title={`Longest: ${formatSeconds(longest.seconds)}, round ${longest.round}`}>
                {formatSeconds(usual)}
              </span>
            </DefinitionItem>
          ))}
        </dl>
      )}
    </section>
  )
}

const COLUMNS = ['Task', 'Queue', 'Host', 'Process', 'Device', 'Last seen']

/** Workers on the experiment now. Only administrators see the hosts. */
function WorkersSection({ id }: { id: string }) {
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
  if (system === undefined) return null
  const workers = system.workers.filter(({ alive, experiment }) => alive && experiment === id)
  if (workers.length === 0)
    return <p className="muted">There are no workers now. Edge participants train on their own machines.</p>
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label="Workers on this experiment">
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

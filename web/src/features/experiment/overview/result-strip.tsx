import './result.css'

import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { metricsQuery, roundsQuery } from '@/api/queries'
import type { Experiment, MetricSeries } from '@/api/types'
import { formatBytes, formatCount, formatRatio, formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { DefinitionItem } from '@/lib/ui/definition-item'
import { Notice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'

import { type Change, changes, type Traffic, traffic, type UploadCost, uploadCost } from './result'

/** A smaller ratio is not shown. */
const WORTH_SAYING = 1.5

/** The result and its communication cost, above the curves. */
export function ResultStrip({ experiment }: { experiment: Experiment }) {
  const { data: rounds = [] } = useQuery(roundsQuery(experiment.id))
  const { data: metrics } = useQuery(metricsQuery(experiment.id))
  const found = changes(experiment.metrics, experiment.round)
  const cost = uploadCost(rounds, experiment.shapes)
  return (
    <section className="result" aria-label="Result" data-testid="result">
      {(found.length > 0 || cost) && (
        <div className="result-lead">
          {found.map((change) => (
            <ChangeFigure key={change.label} change={change} />
          ))}
          {cost && <UploadFigure cost={cost} />}
        </div>
      )}
      {experiment.decline && <DeclineNotice decline={experiment.decline} id={experiment.id} />}
      <SummaryList experiment={experiment} series={metrics?.series ?? []} />
    </section>
  )
}

function ChangeFigure({ change: { label, from, to, best } }: { change: Change }) {
  return (
    <Figure label={label} note={from === undefined ? 'the base model' : best && `best ${best}`}>
      {from !== undefined && (
        <>
          <span className="result-from">{from}</span>
          <span className="result-arrow" role="img" aria-label="to">
            →
          </span>
        </>
      )}
      {to}
    </Figure>
  )
}

function DeclineNotice({ decline: { detail, best }, id }: { decline: NonNullable<Experiment['decline']>; id: string }) {
  return (
    <Notice title="Not the best model" testId="decline">
      <p>{detail}.</p>
      {best.round > 0 && (
        <p>
          <strong>What to do next:</strong> export round {best.round}:{' '}
          <code>
            ferret experiment export {id} FOLDER --round {best.round}
          </code>
        </p>
      )}
    </Notice>
  )
}

function UploadFigure({ cost: { perUpload, numbers, allWeights, ratio } }: { cost: UploadCost }) {
  const less = ratio !== undefined && ratio >= WORTH_SAYING
  const counted =
    numbers !== undefined && allWeights !== undefined
      ? `${formatCount(numbers)} numbers × 4 bytes: ${formatBytes(allWeights)} of fp32 weights in every upload of FedAvg`
      : undefined
  return (
    <Figure
      label="Per upload"
      note={
        less &&
        allWeights !== undefined && (
          <span title={counted} data-testid="upload-ratio">
            <strong>≈ {formatRatio(ratio)} less</strong> than sending all weights ({formatBytes(allWeights)})
          </span>
        )
      }
    >
      {formatBytes(perUpload)}
    </Figure>
  )
}

function Figure({ label, note, children }: { label: string; note: ReactNode; children: ReactNode }) {
  return (
    <div className="figure">
      <h2>{label}</h2>
      <p className="figure-value">{children}</p>
      {note && <p className="muted small">{note}</p>}
    </div>
  )
}

function SummaryList({ experiment, series }: { experiment: Experiment; series: MetricSeries[] }) {
  const { algorithm, dataset, participants } = experiment
  const sums = traffic(series, experiment)
  return (
    <dl className="facts">
      <DefinitionItem term="Participants">{participants}</DefinitionItem>
      <DefinitionItem term="Elapsed">
        <Elapsed experiment={experiment} />
      </DefinitionItem>
      <DefinitionItem term="Sent / received">
        <span title={trafficTitle(sums)}>
          {formatBytes(sums.sent)} / {formatBytes(sums.received)}
        </span>
      </DefinitionItem>
      <DefinitionItem term="Algorithm">{algorithm}</DefinitionItem>
      <DefinitionItem term="Dataset">{dataset}</DefinitionItem>
    </dl>
  )
}

function trafficTitle({ besides }: Traffic): string {
  const rounds = 'By all participants, in committed rounds'
  return besides > 0 ? `${rounds}; ${formatBytes(besides)} more in rounds that are open or were abandoned` : rounds
}

/** The time from the start to the end or to now, pauses included. */
function Elapsed({ experiment: { started_at: started, finished_at: finished } }: { experiment: Experiment }) {
  const now = useNow(1000)
  if (started === null) return <span className="muted">not started</span>
  const seconds = secondsBetween(started, finished ?? new Date(now).toISOString())
  return (
    <span title={`Started ${formatTime(started)}; pauses are included`}>
      {formatSeconds(finished === null ? Math.floor(seconds) : seconds)}
    </span>
  )
}

import './result.css'

import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { metricsQuery, roundsQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { formatBytes, formatCount, formatRatio } from '@/lib/format'

import { type Change, changes, traffic, type UploadCost, uploadCost } from './result'
import { SummaryList } from './summary-list'

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
      <SummaryList experiment={experiment} traffic={traffic(metrics?.series ?? [], experiment)} />
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

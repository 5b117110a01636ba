import { useMemo } from 'react'

import { usePlot } from '@/lib/charts/use-plot'
import { formatBytes } from '@/lib/format'
import { TableHead } from '@/lib/ui/table-head'
import { Switch, Toggles } from '@/lib/ui/toggles'

import type { Entry } from './compared-runs'
import { frontierData, frontierKind, frontierOptions, type FrontierPoint, frontierPoints } from './frontier'
import { type Better, FigureValue, type Metric, metricOf } from './metric'
import { Swatch } from './palette'
import type { CompareUrlState } from './url-state'

interface Props {
  /** The shown runs. */
  entries: readonly Entry[]
  metric: Metric
  view: CompareUrlState
  onView: (change: (view: CompareUrlState) => CompareUrlState) => void
}

type Ranked = Metric & { better: Better }

const HEIGHT = 300

/** The chosen metric, or evaluation loss where the chosen one has no best value. */
function ranked(metric: Metric): Ranked {
  const { better } = metric
  return better === undefined ? { ...metricOf('eval_loss'), better: 'low' } : { ...metric, better }
}

/** The best value of each run against its bytes. */
export function FrontierSection({ entries, metric, view, onView }: Props) {
  const way = view.way ?? 'up'
  const total = view.bytes === 'total'
  const shown = useMemo(() => ranked(metric), [metric])
  const points = useMemo(() => frontierPoints(entries, shown, { way, total }), [entries, shown, way, total])
  return (
    <section aria-labelledby="frontier">
      <header className="section-header">
        <h2 id="frontier">Bytes and quality</h2>
        <div className="compare-controls">
          <Toggles
            label="Direction"
            options={[
              ['up', 'Sent'],
              ['down', 'Received'],
            ]}
            chosen={way}
            onChoose={(chosen) => {
              onView((before) => ({ ...before, way: chosen === 'down' ? chosen : undefined }))
            }}
          />
          <Toggles
            label="Bytes"
            options={[
              ['each', 'Each, per round'],
              ['total', 'In all'],
            ]}
            chosen={total ? 'total' : 'each'}
            onChoose={(chosen) => {
              onView((before) => ({ ...before, bytes: chosen === 'total' ? chosen : undefined }))
            }}
          />
          <Switch
            label="log x"
            on={view.scale !== 'linear'}
            onToggle={() => {
              onView((before) => ({ ...before, scale: before.scale === 'linear' ? undefined : 'linear' }))
            }}
          />
        </div>
      </header>
      <Frontier points={points} metric={shown} log={view.scale !== 'linear'} xLabel={xLabel(way, total)} />
    </section>
  )
}

function xLabel(way: 'up' | 'down', total: boolean): string {
  const verb = way === 'up' ? 'Sent' : 'Received'
  return total ? `${verb} by all participants so far` : `${verb} by one participant in a round`
}

interface FrontierProps {
  points: FrontierPoint[]
  metric: Ranked
  log: boolean
  xLabel: string
}

function Frontier({ points, metric, log, xLabel }: FrontierProps) {
  const panel = { points, log, xLabel, yLabel: metric.unit }
  const data = useMemo(() => frontierData(points), [points])
  const kind = frontierKind(panel)
  const { container } = usePlot({ panel, options: frontierOptions, kind, shown: '', height: HEIGHT, data })
  const title = `Best ${metric.label}`
  return (
    <figure className="compare-chart" data-testid="compare-frontier" data-points={points.length}>
      <figcaption>
        <h3>{title}</h3>
        <p className="muted small">Filled points are on the Pareto front: no other run is better with fewer bytes.</p>
      </figcaption>
      <div
        className="compare-plot"
        ref={container}
        role="img"
        aria-label={`${title} against bytes; the table below holds the values`}
      />
      {points.length === 0 && <p className="compare-empty muted">No visible run has both values yet.</p>}
      {points.length > 0 && (
        <details className="data-table">
          <summary>Values</summary>
          <div className="data-table-scroll" tabIndex={0} role="group" aria-label={`${title}, values`}>
            <table>
              <TableHead columns={['Run', xLabel, title, 'On the front']} />
              <tbody>
                {points.map(({ entry, bytes, best, onFront }) => (
                  <tr key={entry.key}>
                    <th scope="row">
                      <Swatch place={entry.place} /> {entry.label}
                    </th>
                    <td>{formatBytes(bytes)}</td>
                    <td>
                      <FigureValue metric={metric} value={best} />
                    </td>
                    <td>{onFront ? 'yes' : 'no'}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </figure>
  )
}

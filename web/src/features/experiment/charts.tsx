import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'

import { metricsQuery } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import type { Range } from '@/lib/chart-data'
import { LineChart } from '@/lib/ui/line-chart'

import { ChartToolbar } from './chart-toolbar'
import { experimentPanels } from './panels'
import type { ChangeView, View } from './view'

interface Props {
  experiment: Experiment
  view: View
  onView: ChangeView
}

export function Charts({ experiment, view, onView }: Props) {
  const { id, started_at: started, created_at: created } = experiment
  const metrics = useQuery(metricsQuery(id))
  const axis = view.x ?? 'round'
  const [zoom, setZoom] = useState<{ axis: string; range: Range } | null>(null)
  const zoomed = zoom?.axis === axis ? zoom.range : undefined
  const { panels, range, missing } = useMemo(
    () =>
      experimentPanels(metrics.data?.series ?? [], started ?? created, {
        axis,
        linear: view.y === 'linear',
        smoothing: view.smooth,
      }),
    [metrics.data, started, created, axis, view.y, view.smooth],
  )

  if (metrics.isPending) return <p className="muted">Loading…</p>
  if (panels.length === 0) return <NothingMeasured experiment={experiment} />
  return (
    <section aria-labelledby="convergence">
      <header className="section-header">
        <h2 id="convergence">Convergence</h2>
        <ChartToolbar
          view={view}
          onView={onView}
          resetZoom={
            zoomed &&
            (() => {
              setZoom(null)
            })
          }
        />
      </header>
      <div className="panels">
        {panels.map((panel) => (
          <LineChart
            key={panel.testId}
            axis={axis}
            range={zoomed ?? range}
            file={`${id}-${panel.testId.replace('chart-', '')}`}
            onZoom={(next) => {
              setZoom(next && { axis, range: next })
            }}
            {...panel}
          />
        ))}
      </div>
      {missing.length > 0 && !isFinished(experiment.state) && (
        <p className="muted small panels-missing">
          No value yet: {missing.map(({ title, why }) => `${title} (${why})`).join('; ')}.
        </p>
      )}
    </section>
  )
}

function NothingMeasured({ experiment: { state } }: { experiment: Experiment }) {
  return (
    <section className="empty" data-testid="no-measurements">
      <h2>{isFinished(state) ? 'Nothing was measured' : 'Nothing is measured yet'}</h2>
      <p className="muted">
        {isFinished(state)
          ? `It was ${state === 'failed' ? 'over' : state} before the base model had been evaluated. The tab Events says what happened.`
          : 'The first point is the base model, before round 1. It appears here by itself.'}
      </p>
    </section>
  )
}

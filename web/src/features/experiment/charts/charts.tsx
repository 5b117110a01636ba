import { ProblemNotice } from '@/lib/ui/notice'
import { toProblem } from '@/api/problem'
import { useQuery } from '@tanstack/react-query'
import { useId, useMemo } from 'react'

import { metricsQuery } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { useZoomed } from '@/api/use-zoomed'
import { type ChangeExperimentUrl, type ExperimentUrlState, OTHER_AXES } from '@/features/experiment/url-state'
import { type Smoothing, SMOOTHINGS, type XAxis } from '@/lib/charts/chart-data'
import { DownsampledNote } from '@/lib/charts/chart-foot'
import { LineChart } from '@/lib/charts/line-chart'
import { formatZoom, zoomRange } from '@/lib/charts/zoom'
import { oneOf } from '@/lib/search-params'
import { Switch, Toggles } from '@/lib/ui/toggles'

import { chartDataFromSeries, type ChartDefinition } from './chart-definitions'

interface Props {
  title: string
  kinds: readonly ChartDefinition[]
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
  /** True below other charts, which have the options and the remark on an experiment without values. */
  more?: boolean
}

export function Charts({ title, kinds, experiment, view, onView, more = false }: Props) {
  const heading = useId()
  const { id, started_at: started, created_at: created } = experiment
  const metrics = useQuery(metricsQuery(id))
  const axis = view.x ?? 'round'
  const logX = hasLogX(view)
  const zoom = useMemo(() => zoomRange(view.span), [view.span])
  const start = started ?? created
  const known = useMemo(() => [{ id, curves: metrics.data, start }], [id, metrics.data, start])
  const [curves] = useZoomed(known, axis, zoom)
  const { panels, range, missing } = useMemo(
    () =>
      chartDataFromSeries(kinds, curves?.series ?? [], start, {
        axis,
        linear: view.y === 'linear',
        logX,
        smoothing: view.smooth,
        zoom,
      }),
    [kinds, curves, start, axis, view.y, logX, view.smooth, zoom],
  )

  if (more && panels.length === 0) return null
  if (metrics.isPending) return <p className="muted">Loading…</p>
  if (panels.length === 0 && metrics.error) return <ProblemNotice problem={toProblem(metrics.error)} />
  if (panels.length === 0) return <NothingMeasured experiment={experiment} />
  return (
    <section aria-labelledby={heading}>
      <header className="section-header">
        <h2 id={heading}>{title}</h2>
        {!more && <ChartToolbar scaled={kinds.some(({ log }) => log)} view={view} onView={onView} />}
      </header>
      <div className="panels">
        {panels.map((panel) => (
          <LineChart
            key={panel.testId}
            axis={axis}
            logX={logX}
            range={range}
            file={`${id}-${panel.testId.replace('chart-', '')}`}
            onZoom={(next) => {
              onView({ span: formatZoom(next) })
            }}
            {...panel}
          />
        ))}
      </div>
      <DownsampledNote rounds={curves?.rounds_per_point ?? 1} />
      {missing.length > 0 && !isFinished(experiment.state) && (
        <p className="muted small panels-missing">
          No value yet: {missing.map(({ title, why }) => `${title} (${why})`).join('; ')}.
        </p>
      )}
    </section>
  )
}

/** A time of day has no logarithm. */
function hasLogX({ x, xscale }: ExperimentUrlState): boolean {
  return xscale === 'log' && x !== 'clock'
}

function NothingMeasured({ experiment: { state } }: { experiment: Experiment }) {
  return (
    <section className="empty" data-testid="no-measurements">
      <h2>{isFinished(state) ? 'No measurements' : 'No measurements yet'}</h2>
      <p className="muted">
        {isFinished(state)
          ? `The experiment ${state === 'failed' ? 'failed' : `was ${state}`} before the base model was evaluated. The tab Log shows what happened.`
          : 'The first point is the base model, before round 1. It appears here automatically.'}
      </p>
    </section>
  )
}

const AXES: [XAxis, string][] = [
  ['round', 'Round'],
  ['time', 'Elapsed'],
  ['clock', 'Clock'],
  ['bytes', 'Bytes sent'],
]

const SMOOTH: ['none' | Smoothing, string][] = [
  ['none', 'None'],
  ['light', 'Light'],
  ['medium', 'Medium'],
  ['strong', 'Strong'],
]

interface ChartToolbarProps {
  /** True if one of the charts can be logarithmic. */
  scaled: boolean
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** Options for all charts. */
function ChartToolbar({ scaled, view, onView }: ChartToolbarProps) {
  return (
    <div className="chart-toolbar">
      {view.span !== undefined && (
        <button
          type="button"
          className="button quiet"
          onClick={() => {
            onView({ span: undefined })
          }}
        >
          Reset zoom
        </button>
      )}
      {scaled && (
        <Switch
          label="log loss"
          on={view.y === undefined}
          onToggle={() => {
            onView({ y: view.y === undefined ? 'linear' : undefined })
          }}
        />
      )}
      {view.x !== 'clock' && (
        <Switch
          label="log x"
          on={hasLogX(view)}
          onToggle={() => {
            onView({ xscale: hasLogX(view) ? undefined : 'log', span: undefined })
          }}
        />
      )}
      <Toggles
        label="Smoothing"
        shown
        options={SMOOTH}
        chosen={view.smooth ?? 'none'}
        onChoose={(smoothing) => {
          onView({ smooth: oneOf(SMOOTHINGS, smoothing) })
        }}
      />
      <Toggles
        label="Over"
        shown
        options={AXES}
        chosen={view.x ?? 'round'}
        onChoose={(axis) => {
          onView({ x: oneOf(OTHER_AXES, axis), span: undefined })
        }}
      />
    </div>
  )
}

import 'uplot/dist/uPlot.min.css'
import '@/lib/charts/line-chart.css'

import { useMemo, useState } from 'react'

import { SMOOTHINGS } from '@/lib/charts/chart-data'
import { DataTable, DownsampledNote } from '@/lib/charts/chart-foot'
import { usePlot } from '@/lib/charts/use-plot'
import { formatZoom, zoomRange } from '@/lib/charts/zoom'
import { oneOf } from '@/lib/search-params'
import { Switch, Toggles } from '@/lib/ui/toggles'

import { X_AXES } from './axes'
import type { Entry } from './compared-runs'
import { columnsOf, curveOf, type CurvePoint, overlayTable } from './curves'
import { type Metric, metricOf } from './metric'
import { type Overlay, overlayData, overlayKind, overlayOptions, type Pointed } from './overlay-drawing'
import type { CompareUrlState } from './url-state'

interface Props {
  /** The shown runs. */
  entries: readonly Entry[]
  metric: Metric
  /** The metrics to choose from. */
  names: readonly string[]
  view: CompareUrlState
  onView: (change: (view: CompareUrlState) => CompareUrlState) => void
}

const HEIGHT = 340
const AXES = (['round', 'time', 'bytes'] as const).map((axis) => [axis, X_AXES[axis].name] as const)

/** One metric of all runs in one chart. */
export function OverlaySection({ entries, metric, names, view, onView }: Props) {
  const axis = view.x ?? 'round'
  const roundsPerPoint = Math.max(1, ...entries.flatMap(({ runs }) => runs.map((run) => run.roundsPerPoint ?? 1)))
  const lines = useMemo(
    () =>
      entries.map((entry) => ({ label: entry.label, place: entry.place, curve: curveOf(entry, metric.name, axis) })),
    [entries, metric, axis],
  )
  return (
    <section aria-labelledby="overlay">
      <header className="section-header">
        <h2 id="overlay">Curves</h2>
        <div className="compare-controls">
          <select
            aria-label="Metric"
            value={metric.name}
            onChange={(event) => {
              const { value } = event.target
              onView((before) => ({ ...before, metric: value }))
            }}
          >
            {[...new Set([...names, metric.name])].map((name) => (
              <option key={name} value={name}>
                {metricOf(name).label}
              </option>
            ))}
          </select>
          {view.span !== undefined && (
            <button
              type="button"
              className="button quiet"
              onClick={() => {
                onView((before) => ({ ...before, span: undefined }))
              }}
            >
              Reset zoom
            </button>
          )}
          <select
            aria-label="Smoothing"
            value={view.smooth ?? ''}
            onChange={(event) => {
              const { value } = event.target
              onView((before) => ({ ...before, smooth: oneOf(SMOOTHINGS, value) }))
            }}
          >
            <option value="">not smoothed</option>
            {SMOOTHINGS.map((smoothing) => (
              <option key={smoothing} value={smoothing}>
                smoothed: {smoothing}
              </option>
            ))}
          </select>
          <Toggles
            label="Horizontal axis"
            options={AXES}
            chosen={axis}
            onChoose={(x) => {
              onView((before) => ({ ...before, x: x === 'round' ? undefined : x, span: undefined }))
            }}
          />
          <Switch
            label="log x"
            on={view.xscale === 'log'}
            onToggle={() => {
              onView((before) => ({ ...before, xscale: before.xscale === 'log' ? undefined : 'log', span: undefined }))
            }}
          />
          <Switch
            label="log y"
            on={view.y === 'log'}
            onToggle={() => {
              onView((before) => ({ ...before, y: before.y === 'log' ? undefined : 'log' }))
            }}
          />
        </div>
      </header>
      <OverlayChart lines={lines} metric={metric} view={view} onView={onView} />
      <DownsampledNote rounds={roundsPerPoint} />
    </section>
  )
}

interface OverlayProps extends Pick<Props, 'metric' | 'view' | 'onView'> {
  lines: { label: string; place: number; curve: CurvePoint[] }[]
}

function OverlayChart({ lines, metric, view, onView }: OverlayProps) {
  const [pointed, setPointed] = useState<Pointed>()
  const log = view.y === 'log'
  const columns = useMemo(
    () =>
      columnsOf(
        lines.map(({ curve }) => curve),
        log,
        view.smooth,
      ),
    [lines, log, view.smooth],
  )
  const overlay: Overlay = {
    ...{
      lines,
      columns,
      log,
      logX: view.xscale === 'log',
      axis: view.x ?? 'round',
      unit: metric.unit,
      zoom: zoomRange(view.span),
    },
    onPoint: setPointed,
    onZoom: (range) => {
      onView((before) => ({ ...before, span: formatZoom(range) }))
    },
  }
  const { container } = usePlot({
    panel: overlay,
    options: overlayOptions,
    kind: overlayKind(overlay),
    shown: view.span ?? '',
    height: HEIGHT,
    data: useMemo(() => overlayData(columns), [columns]),
  })
  const points = lines.reduce((sum, { curve }) => sum + curve.length, 0)
  const table = useMemo(() => overlayTable(lines), [lines])
  return (
    <figure className="compare-chart" data-testid="compare-overlay" data-points={points}>
      <figcaption>
        <h3>{metric.label}</h3>
        <p className="small">{pointed && readout(pointed, metric)}</p>
      </figcaption>
      <div
        className="compare-plot"
        ref={container}
        role="img"
        aria-label={`${metric.label} of ${lines.length} runs; the table below holds the values`}
      />
      {points === 0 && <p className="compare-empty muted">No visible run has a value of this metric yet.</p>}
      {points > 0 && <DataTable caption={metric.label} data={table.data} lines={table.names} format={metric.format} />}
    </figure>
  )
}

function readout({ label, round, value }: Pointed, metric: Metric) {
  return (
    <>
      <span className="muted">
        {label}, round {round}
      </span>{' '}
      <strong>{metric.format(value)}</strong>
    </>
  )
}

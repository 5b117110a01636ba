import { useMemo, useState, useSyncExternalStore } from 'react'

import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { formatCounted } from '@/lib/format'
import { HeatMap } from '@/lib/heat-map/heat-map'
import { MOST_ZOOM, type Place } from '@/lib/heat-map/layout'
import { type Domain, shades } from '@/lib/heat-map/scale'
import { oneOf } from '@/lib/search-params'
import { onThemeChange } from '@/lib/theme'
import { Toggles } from '@/lib/ui/toggles'

import {
  CELL_METRICS,
  type CellMetric,
  coloured,
  css,
  FIGURES,
  notANumberColour,
  NUMERIC_CELL_METRICS,
  stateColours,
} from './cell-metrics'
import { CellTable } from './cell-table'
import { cellText, spoken } from './cell-text'
import { type Matrix, STATE_LABELS, STATES } from './participation-matrix'

interface Props {
  id: string
  matrix: Matrix
  /** True once the matrix has loaded. */
  loaded: boolean
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
  onOpen: (participant: string | undefined, round: number | undefined) => void
  /** Loads earlier rounds; undefined without earlier rounds. */
  earlier: (() => void) | undefined
}

/** All participants over the rounds. */
export function HeatMapSection({ id, matrix, loaded, view, onView, onOpen, earlier }: Props) {
  const { names, rounds } = matrix
  const empty = names.length === 0
  return (
    <section aria-labelledby="participation" data-testid="participation" data-cells={names.length * rounds.length}>
      <header className="section-header">
        <h2 id="participation">Participation</h2>
        {!empty && <Toolbar view={view} onView={onView} earlier={earlier} />}
      </header>
      {empty ? (
        loaded && <p className="muted">No participant has been selected for a round yet.</p>
      ) : (
        <Filled id={id} matrix={matrix} view={view} onOpen={onOpen} />
      )}
    </section>
  )
}

function Toolbar({ view, onView, earlier }: Pick<Props, 'view' | 'onView' | 'earlier'>) {
  const zoom = view.zoom ?? 0
  const zoomTo = (next: number) => {
    onView({ zoom: next === 0 ? undefined : next })
  }
  return (
    <div className="chart-toolbar">
      {earlier && (
        <button type="button" className="button quiet" onClick={earlier}>
          Load earlier rounds
        </button>
      )}
      <Toggles
        label="Colour by"
        shown
        options={CELL_METRICS}
        chosen={view.cells ?? 'state'}
        onChoose={(metric) => {
          onView({ cells: oneOf(NUMERIC_CELL_METRICS, metric) })
        }}
      />
      <div className="toggles joined" role="group" aria-label="Zoom">
        <button
          type="button"
          aria-label="Smaller cells"
          disabled={zoom === 0}
          onClick={() => {
            zoomTo(zoom - 1)
          }}
        >
          −
        </button>
        <button
          type="button"
          aria-label="Larger cells"
          disabled={zoom === MOST_ZOOM}
          onClick={() => {
            zoomTo(zoom + 1)
          }}
        >
          +
        </button>
      </div>
    </div>
  )
}

function Filled({ id, matrix, view, onOpen }: Pick<Props, 'id' | 'matrix' | 'view' | 'onOpen'>) {
  const { names, displayNames, rounds } = matrix
  const metric = view.cells ?? 'state'
  const dark = useDark()
  const [cursor, setCursor] = useState<Place>()
  const { cells, domain } = useMemo(() => coloured(matrix, metric, dark), [matrix, metric, dark])
  const columnNames = useMemo(() => rounds.map(String), [rounds])
  const shown = cursor && cursor.row < names.length && cursor.column < rounds.length ? cursor : undefined
  const size = `${formatCounted(names.length, 'participant')} × ${formatCounted(rounds.length, 'round')}`
  return (
    <>
      <Readout matrix={matrix} cursor={shown} otherwise={size} />
      <HeatMap
        label={`Participants over rounds, ${size}, coloured by ${metric}`}
        cells={cells}
        rowNames={displayNames}
        columnNames={columnNames}
        zoom={view.zoom ?? 0}
        cursor={shown}
        onCursor={setCursor}
        spoken={(place) => spoken(cellText(matrix, place))}
        onOpen={({ row, column }) => {
          onOpen(names[row], rounds[column])
        }}
        onOpenRow={(row) => {
          onOpen(names[row], undefined)
        }}
      />
      <Legend metric={metric} domain={domain} dark={dark} />
      <CellTable id={id} matrix={matrix} />
    </>
  )
}

/** The cell under the cursor, or else the size of the matrix. */
function Readout({ matrix, cursor, otherwise }: { matrix: Matrix; cursor: Place | undefined; otherwise: string }) {
  if (cursor === undefined) return <p className="readout cell-readout muted">{otherwise}</p>
  const { displayName, round, state, bytes, duration, loss, reasons } = cellText(matrix, cursor)
  return (
    <p className="readout cell-readout" data-testid="cell-readout">
      <bdi dir="auto" className="cell-readout-name">
        {displayName}
      </bdi>
      <span>round {round}</span>
      <span className="readout-value">{state}</span>
      <span>
        <span className="muted">sent </span>
        {bytes}
      </span>
      <span>
        <span className="muted">trained </span>
        {duration}
      </span>
      <span>
        <span className="muted">loss </span>
        {loss}
      </span>
      {reasons !== '' && <code className="cell-readout-reasons">{reasons}</code>}
    </p>
  )
}

function useDark(): boolean {
  return useSyncExternalStore(onThemeChange, () => document.documentElement.dataset.theme === 'dark')
}

interface LegendProps {
  metric: CellMetric
  domain: Domain | undefined
  dark: boolean
}

const MARKS = { accepted: '', leased: '•', pending: '', expired: '−', rejected: '×' }

/** The meaning of the colours. */
function Legend({ metric, domain, dark }: LegendProps) {
  const colours = stateColours(dark)
  if (metric === 'state') {
    return (
      <ul className="legend" aria-label="Legend">
        {STATES.map((state) => (
          <Entry key={state} colour={css(colours[state])} mark={MARKS[state]} text={STATE_LABELS[state]} />
        ))}
        <Entry colour="transparent" mark="" text="not selected" />
      </ul>
    )
  }
  const { title, format } = FIGURES[metric]
  return (
    <ul className="legend" aria-label="Legend">
      <li>
        {title}
        {domain === undefined ? ': no values' : <Ramp domain={domain} dark={dark} format={format} />}
      </li>
      <Entry colour={css(colours.pending)} mark="" text="not reported" />
      <Entry colour={css(colours.rejected)} mark="×" text="rejected" />
      {metric === 'loss' && <Entry colour={css(notANumberColour(dark))} mark="−" text="not a number" />}
    </ul>
  )
}

function Entry({ colour, mark, text }: { colour: string; mark: string; text: string }) {
  return (
    <li>
      <span className="legend-swatch" style={{ background: colour }} aria-hidden>
        {mark}
      </span>
      {text}
    </li>
  )
}

function Ramp({ domain, dark, format }: { domain: Domain; dark: boolean; format: (value: number) => string }) {
  const { low, high, log } = domain
  if (low === high) return <span className="legend-ramp-ends">{format(low)}</span>
  return (
    <>
      <span className="legend-ramp-ends">≤ {format(low)}</span>
      <span
        className="legend-ramp"
        style={{ background: `linear-gradient(to right, ${shades(dark).map(css).join(', ')})` }}
        aria-hidden
      />
      <span className="legend-ramp-ends">≥ {format(high)}</span>
      {log && <span className="muted">logarithmic</span>}
    </>
  )
}

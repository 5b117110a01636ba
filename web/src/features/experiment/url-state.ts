import { type Smoothing, SMOOTHINGS, X_AXES, type XAxis } from '@/lib/charts/chart-data'
import { parseZoom } from '@/lib/charts/zoom'
import { MOST_ZOOM } from '@/lib/heat-map/layout'
import { numberWithin, oneOf, positiveInteger, type Search, someOf, wholeNumber } from '@/lib/search-params'

import { EVENT_KINDS, type EventKind } from './events/event-text'
import { NUMERIC_CELL_METRICS, type NumericCellMetric } from './participation/cell-metrics'
import { type Filter, FILTERS, type Order, ORDERS } from './participation/participant-summary'

export const TABS = [
  ['overview', 'Overview'],
  ['rounds', 'Rounds & participants'],
  ['inside', 'Inside'],
  ['models', 'Models'],
  ['configuration', 'Configuration'],
  ['log', 'Log'],
] as const
type Tab = (typeof TABS)[number][0]

/** The state in the address: `?tab=rounds&round=7`. Defaults are left out; without a round the newest is shown. */
export interface ExperimentUrlState {
  tab?: Exclude<Tab, 'overview'> | undefined
  x?: Exclude<XAxis, 'round'> | undefined
  /** Losses are logarithmic where they can be. */
  y?: 'linear' | undefined
  /** The horizontal axis is logarithmic. */
  xscale?: 'log' | undefined
  smooth?: Smoothing | undefined
  /** The part of the horizontal axis that is shown, in its unit: "12,40". */
  span?: string | undefined
  round?: number | undefined
  /** The metric that colours the participation matrix; the state by default. */
  cells?: NumericCellMetric | undefined
  /** Zoom steps of the cells above the fitting size. */
  zoom?: number | undefined
  /** The filter on participants; all by default. */
  who?: Filter | undefined
  /** The sort column of the participants; the name by default. */
  order?: Exclude<Order, 'name'> | undefined
  /** The participant shown in the drawer. */
  participant?: string | undefined
  /** The kinds of events that are shown; all by default. */
  kind?: EventKind[] | undefined
  /** Shows the specification with its defaults. */
  spec?: 'all' | undefined
  /** The playground's model (0 is the base model) and sampling options. Questions are never in the address. */
  model?: number | undefined
  temperature?: number | undefined
  tokens?: number | undefined
  seed?: number | undefined
}

export type ChangeExperimentUrl = (changes: ExperimentUrlState) => void

export const OTHER_AXES = X_AXES.filter((axis) => axis !== 'round')
export const OTHER_TABS = TABS.map(([tab]) => tab).filter((tab) => tab !== 'overview')

const OTHER_ORDERS = ORDERS.filter((order) => order !== 'name')

function zoomOf(value: unknown): number | undefined {
  const zoom = positiveInteger(value)
  return zoom === undefined ? undefined : Math.min(MOST_ZOOM, zoom)
}

/** A name as in paths; anything else is undefined. */
function nameOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[a-z0-9][a-z0-9._-]{0,63}$/i.test(value) ? value : undefined
}

export function parseExperimentUrl(search: Search): ExperimentUrlState {
  const kind = someOf(EVENT_KINDS, search.kind)
  // Every key is named, even if undefined: the router keeps keys of the address that are missing here.
  return {
    tab: oneOf(OTHER_TABS, search.tab),
    x: oneOf(OTHER_AXES, search.x),
    y: oneOf(['linear'], search.y),
    xscale: oneOf(['log'], search.xscale),
    smooth: oneOf(SMOOTHINGS, search.smooth),
    span: parseZoom(search.span),
    round: positiveInteger(search.round),
    cells: oneOf(NUMERIC_CELL_METRICS, search.cells),
    zoom: zoomOf(search.zoom),
    who: oneOf(FILTERS, search.who),
    order: oneOf(OTHER_ORDERS, search.order),
    participant: nameOf(search.participant),
    kind: kind.length > 0 ? kind : undefined,
    spec: oneOf(['all'], search.spec),
    model: wholeNumber(search.model),
    temperature: numberWithin(search.temperature, 0, 2),
    tokens: positiveInteger(search.tokens),
    seed: wholeNumber(search.seed),
  }
}

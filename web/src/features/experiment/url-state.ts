import { X_AXES, type XAxis } from '@/lib/charts/chart-data'
import { type Smoothing, SMOOTHINGS } from '@/lib/charts/smoothing'
import { parseZoom } from '@/lib/charts/zoom'
import { MOST_ZOOM } from '@/lib/heat-map/layout'
import { numberWithin, oneOf, positiveInteger, type Search, someOf, wholeNumber } from '@/lib/search-params'

import { EVENT_KINDS, type EventKind } from './events/event-text'
import { NUMERIC_CELL_METRICS, type NumericCellMetric } from './participation/cell-metrics'
import { type Filter, FILTERS, type Order, ORDERS } from './participation/participant-summary'

export const TABS = [
  ['overview', 'Overview'],
  ['rounds', 'Rounds'],
  ['update', 'Update'],
  ['participants', 'Participants'],
  ['checkpoints', 'Checkpoints'],
  ['playground', 'Playground'],
  ['specification', 'Specification'],
  ['events', 'Events'],
  ['system', 'System'],
] as const
export type Tab = (typeof TABS)[number][0]

/** What the page's address holds: `?tab=rounds&round=7`. What is as usual is not mentioned; without a round the newest is shown. */
export interface ExperimentUrlState {
  tab?: Exclude<Tab, 'overview'> | undefined
  x?: Exclude<XAxis, 'round'> | undefined
  /** Losses are logarithmic where they can be. */
  y?: 'linear' | undefined
  smooth?: Smoothing | undefined
  /** The part of the horizontal axis that is shown, in its unit: "12,40". */
  span?: string | undefined
  round?: number | undefined
  /** What colours the participants over rounds; their state if nothing is named. */
  cells?: NumericCellMetric | undefined
  /** By how many steps their cells are larger than fits. */
  zoom?: number | undefined
  /** Which participants are listed; all if nothing is named. */
  who?: Filter | undefined
  /** By which column they are sorted; by name if nothing is. */
  order?: Exclude<Order, 'name'> | undefined
  /** Whose rounds are shown beside the page. */
  participant?: string | undefined
  /** Of which kinds events are shown; all if there are none. */
  kind?: EventKind[] | undefined
  /** The specification with what is as by default. */
  spec?: 'all' | undefined
  /** Whose model is asked in the playground, 0 is the base model's; and how. What is asked is in no address. */
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

/** As names in paths are. */
function nameOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[a-z0-9][a-z0-9._-]{0,63}$/i.test(value) ? value : undefined
}

export function parseExperimentUrl(search: Search): ExperimentUrlState {
  const kind = someOf(EVENT_KINDS, search.kind)
  // Named even if undefined: the router keeps what an address holds unless it is told otherwise.
  return {
    tab: oneOf(OTHER_TABS, search.tab),
    x: oneOf(OTHER_AXES, search.x),
    y: oneOf(['linear'], search.y),
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

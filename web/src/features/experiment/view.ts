import { X_AXES, type XAxis } from '@/lib/chart-data'
import { oneOf, positiveInteger, type Search } from '@/lib/search-params'

/** What the page's address holds: `?x=bytes&round=7`. Without a round the newest is shown. */
export interface View {
  x?: Exclude<XAxis, 'round'> | undefined
  round?: number | undefined
}

const OTHER_AXES = X_AXES.filter((axis) => axis !== 'round')

export function parseView(search: Search): View {
  // Named even if undefined: the router keeps what an address holds unless it is told otherwise.
  return { x: oneOf(OTHER_AXES, search.x), round: positiveInteger(search.round) }
}

/** The axis in the address; rounds are the rule and need no mention. */
export function withAxis({ round }: View, axis: XAxis): View {
  return { ...(axis !== 'round' && { x: axis }), ...(round !== undefined && { round }) }
}

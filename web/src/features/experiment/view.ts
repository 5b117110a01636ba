import { X_AXES, type XAxis } from '@/lib/chart-data'
import { oneOf, positiveInteger, type Search } from '@/lib/search-params'

/** What the page's address holds: `?x=bytes&round=7`. Without a round the newest is shown. */
export interface View {
  x?: Exclude<XAxis, 'round'>
  round?: number
}

const OTHER_AXES = X_AXES.filter((axis) => axis !== 'round')

export function parseView(search: Search): View {
  const x = oneOf(OTHER_AXES, search.x)
  const round = positiveInteger(search.round)
  return { ...(x !== undefined && { x }), ...(round !== undefined && { round }) }
}

/** The axis in the address; rounds are the rule and need no mention. */
export function withAxis({ round }: View, axis: XAxis): View {
  return { ...(axis !== 'round' && { x: axis }), ...(round !== undefined && { round }) }
}

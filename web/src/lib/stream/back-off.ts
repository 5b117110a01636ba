const FIRST_MILLISECONDS = 5000
const LONGEST_MILLISECONDS = 30_000

/** The wait before the next try after a number of failures. It doubles each time, up to half a minute. */
export function backOff(failures: number, random: () => number = Math.random): number {
  const wait = Math.min(FIRST_MILLISECONDS * 2 ** Math.max(0, failures), LONGEST_MILLISECONDS)
  // Browsers that lost the same server do not come back at the same instant.
  return wait * (1 - random() / 4)
}

interface Asked {
  status: string
  /** When the last good answer came; 0 when none has come yet. */
  dataUpdatedAt: number
  errorUpdateCount: number
}

/** The time until the next refetch of a query. It grows with the time that the query has failed. */
export function politeInterval(
  { status, dataUpdatedAt, errorUpdateCount }: Asked,
  every: number,
  now = Date.now(),
): number {
  if (status !== 'error') return every
  if (dataUpdatedAt === 0) return backOff(errorUpdateCount - 1)
  return Math.min(Math.max(now - dataUpdatedAt, every), LONGEST_MILLISECONDS)
}
